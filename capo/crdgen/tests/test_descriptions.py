"""``kubectl explain`` is documentation: what every description in the CRDs must contain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from api import validation
from capo.crdgen.tests import go_provider
from capo.json_types import Json
from capo.webhooks.tests.table import places, samples
from capo.webhooks.tests.table.places import Version

VERSIONS = pytest.mark.parametrize("version", places.versions(), ids=str)
STORED = [version for version in places.versions() if version.kind in validation.KINDS and version.name != "v1beta1"]
CHANGE = re.compile(r"Cannot change|May change|May be added later|Can be set once")
CONDITIONAL = re.compile(r"once|only|but (for|to|from)|not be removed")
"""States under which condition a field may change; such cases have tests of their own."""
FORMATS = {"uuid": "UUID", "ipv4": "IP address", "date-time": "RFC 3339"}
UNITS = re.compile(r"GiB|bytes|[Ss]econds|[Pp]ort|[Pp]robes|How many|IP version|integer|generation")
CIDR = re.compile(r"CIDRs?$|IPPrefix$|^cidr$")
ADDRESS = re.compile(r"IPs?$|^ip$|^host$|gatewayIP")


def described(version: Version) -> Iterator[tuple[str, Json, Json]]:
    """Yield path, schema and parent's schema of every field of spec and status."""
    for path, schema in places.schemas(version):
        for name, field in schema.get("properties", {}).items():
            yield f"{path}.{name}", field, schema


@VERSIONS
def test_every_field_is_described_in_whole_sentences(version: Version) -> None:
    silent = [path for path, field, _ in described(version) if not re.search(r"[.]$", field.get("description", ""))]

    assert silent == []


@VERSIONS
def test_every_optional_field_of_a_spec_says_its_default_or_what_is_set_in_its_place(version: Version) -> None:
    silent = []
    for path, field, parent in described(version):
        name, text = path.rpartition(".")[2], field["description"]
        if not path.startswith("spec.") or (name in parent.get("required", ()) and "default" not in field):
            continue
        wanted = "ither this or" if parent.get("maxProperties") == 1 else "Default"
        if wanted not in text:
            silent.append((path, text))

    assert silent == []


@VERSIONS
def test_every_field_of_a_spec_says_once_when_it_may_change_and_none_of_a_status_does(version: Version) -> None:
    wrong = [
        (path, field["description"])
        for path, field, _ in described(version)
        if len(CHANGE.findall(field["description"])) != path.startswith("spec.")
    ]

    assert wrong == []


@VERSIONS
def test_what_has_a_format_or_a_unit_says_it(version: Version) -> None:
    silent = []
    for path, field, _ in described(version):
        text, name = field["description"], path.rpartition(".")[2]
        inner = field.get("items", field)
        if inner.get("format") in FORMATS and FORMATS[inner["format"]] not in text:
            silent.append((path, text))
        if inner.get("type") == "integer" and not UNITS.search(text):
            silent.append((path, text))
        if inner.get("type") == "string" and CIDR.search(name) and "CIDR" not in text:
            silent.append((path, text))
        if (
            inner.get("type") == "string"
            and ADDRESS.search(name)
            and not re.search(r"ddress|virtual IP|Virtual IP", text)
        ):
            silent.append((path, text))

    assert silent == []


@pytest.mark.parametrize("version", STORED, ids=str)
def test_a_field_says_of_its_change_what_the_webhook_does(version: Version) -> None:
    wrong = []
    for path, field, _ in described(version):
        (sentence, *_) = re.findall(r"(?:Cannot change|May change|May be|Can be).*$", field["description"]) or [""]
        if not path.startswith("spec.") or CONDITIONAL.search(sentence) or path.count("{}"):
            continue
        old, new = changed(version, path, field)
        is_refused = bool(validation.faults_of_update(version.kind, old, new, is_dry_run=False))
        if old != new and is_refused != sentence.startswith("Cannot change"):
            wrong.append((path, sentence))

    assert [pair for pair in wrong if not pair[0].endswith("identityRef.region")] == []  # that is a rule of the schema


def changed(version: Version, path: str, field: Json) -> tuple[Json, Json]:
    """Return an object before and after a change of one field."""
    value = samples.given(field)

    def having(one: Any) -> Json:
        parts: Json = samples.having(version.root, places.steps(path), lambda _: one)
        return {"apiVersion": version.api_version, "kind": version.kind, "metadata": {"name": "a"}} | parts

    return having(value), having(samples.changed(field, value))


@VERSIONS
def test_descriptions_are_in_our_own_words(version: Version) -> None:
    theirs = go_provider.known_descriptions()

    assert {text for text in go_provider.descriptions(version.crd) if go_provider.digest(text) in theirs} == set()
