"""Behaviour of all kinds on the real API server: applied twice, shared by clients, pruned, deleted."""

from __future__ import annotations

import json

import pytest

from api import conversion
from api.conversion.annotation import ANNOTATION
from capo.json_types import Json
from capo.webhooks.tests.clients import Client, ok
from capo.webhooks.tests.table import places, samples
from capo.webhooks.tests.table.places import Version
from capo.webhooks.tests.table.test_bounds import VERSIONS, an

pytestmark = pytest.mark.integration

CONVERTED = [version for version in places.versions() if version.kind in conversion.KINDS]
BY_NAME = {(version.kind, version.name): version for version in CONVERTED}
OTHER = {"v1beta1": "v1beta2", "v1beta2": "v1beta1"}


def full(version: Version) -> Json:
    """Return a spec with every field that other fields do not exclude."""
    spec: Json = samples.full(version.root["properties"]["spec"])
    return spec


@VERSIONS
def test_a_full_object_is_applied_without_a_warning_of_the_api_server(client: Client, version: Version) -> None:
    answer = client.apply(version.name, version.kind, full(version), name=client.namespace, params={"dryRun": "All"})

    assert answer.status_code == 201, answer.text
    warnings = answer.headers.get("Warning", "").split("299 - ")
    assert [text for text in warnings if text and not text.startswith('"spec')] == []  # ours begin with the field


@VERSIONS
def test_what_was_applied_is_read_back_and_applied_again_without_a_write(client: Client, version: Version) -> None:
    spec = full(version)
    first = ok(client.apply(version.name, version.kind, spec, name=client.namespace))

    again = ok(client.apply(version.name, version.kind, spec, name=client.namespace))

    assert first["spec"] == spec
    assert again == first


@VERSIONS
def test_a_client_that_sends_its_whole_manifest_as_a_patch_writes_nothing_the_second_time(
    client: Client, version: Version
) -> None:
    """``kubectl apply`` without ``--server-side`` sends a merge patch like this, and an annotation of its own."""
    manifest = an(version, {"spec": full(version)}, name=client.namespace)
    kept = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(manifest)}
    whole = manifest | {"metadata": {"name": client.namespace, "annotations": kept}}
    first = ok(client.create(whole, is_kept=True))

    again = ok(client.merge(version.name, version.kind, client.namespace, whole))

    assert again == first


@pytest.mark.parametrize("version", CONVERTED, ids=str)
def test_a_label_of_a_client_of_the_other_version_leaves_everything_else(client: Client, version: Version) -> None:
    other = OTHER[version.name]
    first = ok(client.apply(version.name, version.kind, full(version)))

    ok(client.merge(other, version.kind, "one", {"metadata": {"labels": {"a": "b"}}}))
    read = client.read(version.name, version.kind, "one")
    again = ok(client.apply(version.name, version.kind, full(version)))

    assert read["spec"] == first["spec"]
    assert read["metadata"]["generation"] == first["metadata"]["generation"]
    assert again["metadata"]["resourceVersion"] == read["metadata"]["resourceVersion"]
    assert ANNOTATION not in read["metadata"].get("annotations", {}) or version.kind == "OpenStackClusterTemplate"


CHANGES: dict[str, Json] = {
    "OpenStackCluster": {"controlPlaneAvailabilityZones": ["az-9"], "bastion": {"enabled": False}},
    "OpenStackMachine": {"providerID": "openstack:///changed", "identityRef": {"cloudName": "changed"}},
}
"""What may change, in either version, beside fields that one version cannot express."""


@pytest.mark.parametrize("version", [v for v in CONVERTED if v.kind in CHANGES], ids=str)
def test_clients_of_both_versions_take_turns_and_neither_takes_back_what_the_other_wrote(
    client: Client, version: Version
) -> None:
    kind, mine, theirs = version.kind, version.name, OTHER[version.name]
    ok(client.apply(mine, kind, full(version)))
    status = samples.full(places.at(BY_NAME[kind, theirs], "status"))
    ok(client.merge(theirs, kind, "one", {"status": status}, subresource="status"))
    ok(client.merge(theirs, kind, "one", {"spec": CHANGES[kind]}))
    written = client.read(theirs, kind, "one")

    ok(client.put(mine, kind, client.read(mine, kind, "one") | {"metadata": labelled(client, version)}))

    read = {name: client.read(name, kind, "one") for name in OTHER}
    assert read[theirs]["spec"] == written["spec"]
    assert read[theirs]["status"] == written["status"]
    for name in OTHER:
        assert overlaid(read[name]["spec"], CHANGES[kind]) == read[name]["spec"]
        assert read[name]["metadata"]["labels"] == {"turn": "mine"}


def labelled(client: Client, version: Version) -> Json:
    metadata: Json = client.read(version.name, version.kind, "one")["metadata"]
    return metadata | {"labels": {"turn": "mine"}}


def overlaid(value: Json, change: Json) -> Json:
    return {
        **value,
        **{k: overlaid(value[k], part) if isinstance(part, dict) else part for k, part in change.items()},
    }


@VERSIONS
@pytest.mark.parametrize(
    ("how", "status", "is_warned"), [("Ignore", 201, False), ("Warn", 201, True), ("Strict", 400, False)]
)
def test_an_unknown_field_is_pruned_unless_the_client_asks_for_strict_validation(
    client: Client, version: Version, how: str, status: int, *, is_warned: bool
) -> None:
    spec: Json = samples.least(version.root["properties"]["spec"])
    body = an(version, {"spec": spec | {"cloudsFromTheFuture": 3}})

    params = {"fieldValidation": how, "dryRun": "All"}
    answer = client.session.post(client.path(version.name, version.kind), json=body, params=params, timeout=120)

    assert answer.status_code == status, answer.text
    assert ('unknown field \\"spec.cloudsFromTheFuture\\"' in answer.headers.get("Warning", "")) == is_warned
    assert "cloudsFromTheFuture" not in answer.json().get("spec", {})


@VERSIONS
def test_an_object_can_be_deleted_in_any_version(client: Client, version: Version) -> None:
    ok(client.apply(version.name, version.kind, full(version), name=client.namespace))

    assert client.delete(version.name, version.kind, client.namespace).status_code == 200
    assert client.session.get(client.path(version.name, version.kind, client.namespace)).status_code == 404
