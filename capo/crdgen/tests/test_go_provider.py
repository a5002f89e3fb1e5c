from __future__ import annotations

from typing import Any

import pytest
import yaml

from capo.crdgen import definitions
from capo.crdgen.tests import comparison, go_provider

OURS: dict[str, Any] = definitions.manifest(definitions.DEFINITIONS[1])


@pytest.mark.compare
def test_the_facts_are_those_of_the_go_providers_files() -> None:
    stored = go_provider.FILE.read_text(encoding="utf-8")

    assert go_provider.written(go_provider.read(go_provider.FOLDER)) == stored, "write them: python -m tools.compat"


@pytest.mark.compare
@pytest.mark.parametrize("kind", go_provider.kinds())
def test_a_definition_of_the_facts_differs_from_the_file_only_in_rules_that_we_do_not_have(kind: str) -> None:
    name = go_provider.crd(kind)["spec"]["names"]["plural"]
    path = go_provider.FOLDER / "crds" / f"infrastructure.cluster.x-k8s.io_{name}.yaml"

    found = comparison.differences(yaml.safe_load(path.read_text()), go_provider.crd(kind))

    assert {difference.keyword for difference in found} <= {"x-kubernetes-validations"}


@pytest.mark.parametrize("number", range(len(OURS["spec"]["versions"])))
def test_a_schema_is_the_same_after_it_was_a_list_of_fields(number: int) -> None:
    version = OURS["spec"]["versions"][number]
    fields = go_provider.read_version(version)["fields"]

    again = OURS | {"spec": OURS["spec"] | {"versions": [version | {"schema": go_provider.schema_of(fields)}]}}

    assert fields[""] == {"type": "object"}
    assert comparison.differences(OURS, again) == []


def test_a_rule_is_known_by_its_text_if_we_have_it_and_by_its_digest_otherwise() -> None:
    ours = next(go_provider.rules(OURS))
    rules = [ours, {"rule": "self == 'other'", "message": "other"}]
    fields = go_provider.read_version({"schema": {"openAPIV3Schema": {"x-kubernetes-validations": rules}}})["fields"]

    schema = go_provider.schema_of(fields)["openAPIV3Schema"]

    known, unknown = schema["x-kubernetes-validations"]
    assert known == ours
    assert unknown["rule"].startswith(go_provider.UNKNOWN)
    go_provider.drop_unknown_rules(schema)
    assert schema["x-kubernetes-validations"] == [ours]


def test_the_shape_of_a_manifest_has_its_fields_and_no_text_that_its_author_chose() -> None:
    schema = {"properties": {"id": {"format": "uuid"}, "kind": {"enum": ["SomethingLong"]}}}
    given = {
        "id": "2b0a1f2e-3c4d-4e5f-8a6b-7c8d9e0f1a2b",
        "kind": "SomethingLong",
        "names": ["name of somebody", "another of somebody", "name of somebody"],
        "cidr": "192.168.100.0/24",
        "protocol": "vrrp",
        "enabled": None,
        "port": 6443,
        "placeholder": "<network of somebody>",
    }

    assert go_provider.Shape().of(given, schema) == given | {
        "id": go_provider.SOME_ID,
        "names": ["text-1", "text-2", "text-1"],
    }
