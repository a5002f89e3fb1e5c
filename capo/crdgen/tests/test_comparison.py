from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capo.crdgen import definitions
from capo.crdgen.additions import ADDITIONS, CLEARER, FIELDS, LIMITS, RULES
from capo.crdgen.tests import comparison, go_provider
from capo.crdgen.tests.comparison import Difference

PAGE = Path(definitions.__file__).resolve().parents[2] / "docs" / "reference" / "additions.md"
CONVERSION = Difference(
    "", "", "conversion", None, definitions.manifest(definitions.DEFINITIONS[0])["spec"]["conversion"]
)
"""The Go provider adds it when its release is built, not to the files that are compared."""


def crd(schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    served = {"name": "v1", "schema": {"openAPIV3Schema": schema}} | version
    return {"metadata": {"name": "things.example.org"}, "spec": {"group": "example.org", "versions": [served]}}


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [
        pytest.param({"description": "a"}, {"description": "b"}, [], id="descriptions are free"),
        pytest.param({"enum": ["a", "b"]}, {"enum": ["b", "a"]}, [], id="order of an enum is free"),
        pytest.param(
            {"properties": {"a": {"maxLength": 1}}},
            {"properties": {"a": {"maxLength": 2}}},
            [Difference("v1", "a", "maxLength", 1, 2)],
            id="keyword",
        ),
        pytest.param(
            {"properties": {"a": {"items": {"type": "string"}}}},
            {"properties": {"a": {"items": {"type": "integer"}}}},
            [Difference("v1", "a[]", "type", "string", "integer")],
            id="entry of a list",
        ),
        pytest.param(
            {"properties": {"description": {"type": "string"}}},
            {"properties": {}},
            [Difference("v1", "description", "", {"type": "string"}, None)],
            id="field that we lack, even one called description",
        ),
        pytest.param(
            {"additionalProperties": {}},
            {"additionalProperties": {"format": "int32"}},
            [Difference("v1", "{}", "format", None, "int32")],
            id="value of a map",
        ),
    ],
)
def test_differences_are_found(theirs: dict[str, Any], ours: dict[str, Any], expected: list[Difference]) -> None:
    assert comparison.differences(crd(theirs), crd(ours)) == expected


def test_differences_beside_the_schema_are_found() -> None:
    found = comparison.differences(crd({}, subresources={"status": {}}), crd({}))

    assert found == [Difference("v1", "", "subresources", {"status": {}}, None)]


def test_the_page_lists_the_additions() -> None:
    rows = [f"| {a.kind} | {a.version} | `{a.path}` | {a.purpose} |" for a in ADDITIONS]

    assert [line for line in PAGE.read_text().splitlines() if line.startswith("| OpenStack")] == rows


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda a: f"{a.kind}.{a.path}")
def test_an_addition_is_optional_and_in_the_status(addition: tuple[str, str, str, str]) -> None:
    kind, version, path, _ = addition
    crd = next(definitions.manifest(d) for d in definitions.DEFINITIONS if d.kind == kind)
    schema = next(v for v in crd["spec"]["versions"] if v["name"] == version)["schema"]["openAPIV3Schema"]
    *parents, name = path.split(".")
    for parent in parents:
        schema = schema["properties"][parent]

    assert path.partition(".")[0] == "status"
    assert name in schema["properties"]
    assert name not in schema.get("required", [])


@pytest.mark.parametrize("definition", definitions.DEFINITIONS, ids=lambda d: d.kind)
def test_the_schema_is_the_go_providers_but_for_the_additions(definition: definitions.Definition) -> None:
    ours = definitions.manifest(definition)
    theirs = go_provider.crd(definition.kind)
    listed = {(a.version, a.path) for a in ADDITIONS if a.kind == definition.kind}

    found = [d for d in comparison.differences(theirs, ours) if not is_known_rule(d) and d != CONVERSION]
    found = [d for d in found if field_of(d) is None and not has_more_columns(d)]
    # A status that the Go provider does not have at all has its subresource.
    found = [d for d in found if not ((d.version, "status") in listed and d.keyword == "subresources")]

    assert [d for d in found if (d.version, d.path) not in listed or d.theirs is not None] == []
    assert listed == {(d.version, d.path) for d in found}
    assert comparison.missing_versions(theirs, ours) == set()


def has_more_columns(difference: Difference) -> bool:
    """Return whether the columns of ``kubectl get`` begin with the Go provider's; ours follow."""
    theirs, ours = difference.theirs or [], difference.ours or []
    return difference.keyword == "additionalPrinterColumns" and ours[: len(theirs)] == theirs


def field_of(difference: Difference) -> str | None:
    """Return the listed place of an optional field of a spec; None if it is not listed."""
    is_added = difference.keyword == "" and difference.theirs is None and difference.path.startswith("spec.")
    if not is_added or "default" in difference.ours:
        return None
    return next((field.place for field in FIELDS if is_at(difference.path, field.place)), None)


def test_every_field_that_is_listed_is_in_a_schema_and_optional() -> None:
    pairs = [(go_provider.crd(d.kind), definitions.manifest(d)) for d in definitions.DEFINITIONS]
    found = [d for pair in pairs for d in comparison.differences(*pair)]

    assert {place for d in found if (place := field_of(d))} == {field.place for field in FIELDS}
    # A required field is a difference of its parent.
    assert [d for d in found if d.keyword == "required"] == []


def is_known_rule(difference: Difference) -> bool:
    return is_added_rule(difference) or is_clearer_rule(difference) or limit_of(difference) is not None


def limit_of(difference: Difference) -> str | None:
    """Return the listed place for the limit of a text; None if it is not listed."""
    if difference.keyword != "maxLength" or difference.theirs is not None or not difference.path.startswith("spec."):
        return None
    listed = ((place, limit.most) for limit in LIMITS for place in limit.places)
    return next((place for place, most in listed if is_at(difference.path, place) and difference.ours == most), None)


def is_at(path: str, place: str) -> bool:
    """Return whether a path ends with these names; the first one may be the end of a name in CamelCase."""
    return path.endswith(place) and (place[0].isupper() or path[: -len(place)][-1:] in ("", "."))


def is_clearer_rule(difference: Difference) -> bool:
    """Return whether rules are listed as equivalents of the Go provider's with another text."""
    if difference.keyword != "x-kubernetes-validations" or not (difference.theirs and difference.ours):
        return False
    theirs, ours = ([rule["message"] for rule in rules] for rules in (difference.theirs, difference.ours))
    return theirs == ours and any(difference.path.endswith(rule.place) and [rule.message] == ours for rule in CLEARER)


def is_added_rule(difference: Difference) -> bool:
    """Return whether the schema is stricter in one of the listed ways."""
    added = added_rules(difference)
    return bool(added) and all(is_listed(difference.path, rule["message"]) for rule in added)


def added_rules(difference: Difference) -> list[Any]:
    """Return the rules that are added to the Go provider's; none if one of its rules is missing or different."""
    if difference.keyword != "x-kubernetes-validations":
        return []
    theirs = {rule["message"] for rule in difference.theirs or ()}
    added = [rule for rule in difference.ours or () if rule["message"] not in theirs]
    return added if len(added) + len(theirs) == len(difference.ours or ()) else []


def is_listed(path: str, message: str) -> bool:
    return any(path.endswith(rule.place) and message == rule.message for rule in RULES)


def test_every_rule_that_is_listed_is_in_a_schema() -> None:
    pairs = ((go_provider.crd(d.kind), definitions.manifest(d)) for d in definitions.DEFINITIONS)
    found = [d for pair in pairs for d in comparison.differences(*pair) if is_added_rule(d)]

    assert {rule["message"] for d in found for rule in added_rules(d)} == {rule.message for rule in RULES}


def test_every_rule_that_says_more_is_in_a_schema() -> None:
    pairs = ((go_provider.crd(d.kind), definitions.manifest(d)) for d in definitions.DEFINITIONS)
    found = [d for pair in pairs for d in comparison.differences(*pair) if is_clearer_rule(d)]

    assert {rule["message"] for d in found for rule in d.ours} == {rule.message for rule in CLEARER}


def test_every_limit_that_is_listed_is_in_a_schema() -> None:
    pairs = ((go_provider.crd(d.kind), definitions.manifest(d)) for d in definitions.DEFINITIONS)
    found = {limit_of(d) for pair in pairs for d in comparison.differences(*pair)} - {None}

    assert found == {place for limit in LIMITS for place in limit.places}


@pytest.mark.parametrize(
    ("path", "keyword", "theirs", "ours", "is_known"),
    [
        pytest.param("spec.identityRef.name", "maxLength", None, 253, True, id="as it is listed"),
        pytest.param("spec.identityRef.name", "maxLength", None, 63, False, id="another length"),
        pytest.param("spec.identityRef.name", "pattern", None, "a", False, id="another keyword"),
        pytest.param("spec.identityRef.name", "maxLength", 300, 253, False, id="a limit of the Go provider"),
        pytest.param(
            "status.identityRef.name", "maxLength", None, 253, False, id="in the status, which must be writable"
        ),
        pytest.param("spec.surname", "maxLength", None, 253, False, id="a field that is not listed"),
        pytest.param("spec.ports[].description", "maxLength", None, 255, False, id="a text that is cut to fit"),
    ],
)
def test_a_limit_is_known_only_as_it_is_listed(
    path: str, keyword: str, theirs: int | None, ours: int | str, is_known: bool
) -> None:
    assert (limit_of(Difference("v1", path, keyword, theirs, ours)) is not None) == is_known


def test_the_page_lists_the_rules() -> None:
    rows = [f"| `{r.place}` | {r.message} | {r.instead_of} |" for r in RULES]
    rows += [f"| `{r.place}` | {r.message} | {r.reason} |" for r in CLEARER]
    rows += [f"| {', '.join(f'`{place}`' for place in r.places)} | {r.most} | {r.reason} |" for r in LIMITS]

    rows = [f"| `{f.place}` | {f.purpose} | {f.when_pruned} |" for f in FIELDS] + rows

    assert [line for line in PAGE.read_text().splitlines() if line.startswith("| `")] == rows
