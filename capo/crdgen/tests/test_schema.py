from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import pytest

from api.meta import KubernetesObject
from api.model import Model
from api.schema import (
    AtomicList,
    Defaulted,
    Int32,
    NamedList,
    Names,
    NonEmpty,
    Quantity,
    Required,
    Rule,
    Schema,
    SetList,
    Tag,
    Uuid,
)
from capo.crdgen import definitions, schema


class Part(Model):
    """A part
    of it."""

    crd: ClassVar[Schema] = Schema(
        min_properties=1, rules=(Rule("has(self.name)", "name it", told="'name ' + self.from", field="name"),)
    )

    name: NonEmpty
    """Its name."""
    from_: Defaulted[Literal["A", "B"]] = "A"
    """Where from."""


class Sample(Model):
    """Everything that a field can be."""

    text: str = ""
    """Text
    in two lines."""
    maybe: Uuid | None = None
    """Maybe."""
    lenient: Required[NonEmpty] = ""
    """Required by the server only."""
    number: Annotated[int, Schema(minimum=0, maximum=9)]
    """Number."""
    small: Int32 | None = None
    """Small."""
    flag: Defaulted[bool] = True
    """Flag."""
    empty: Defaulted[tuple[str, ...]] = ()
    """Empty."""
    tags: SetList[Tag] = ()
    """Tags."""
    parts: NamedList[Part] = ()
    """Parts."""
    ports: Annotated[AtomicList[int], Schema(max_items=1)] = ()
    """Ports."""
    part: Part | None = None
    """The part."""
    labels: Mapping[str, str] = {}
    """Labels."""
    capacity: Mapping[str, Quantity] = {}
    """Capacity."""


class Sampled(KubernetesObject):
    """A kind."""

    names: ClassVar[Names] = Names("sampleds")

    spec: Sample
    """The sample."""


PART = {
    "type": "object",
    "minProperties": 1,
    "x-kubernetes-validations": [
        {
            "rule": "has(self.name)",
            "message": "name it",
            "messageExpression": "'name ' + self.from",
            "fieldPath": ".name",
        }
    ],
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "Its name."},
        "from": {"type": "string", "enum": ["A", "B"], "default": "A", "description": "Where from."},
    },
}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("text", {"type": "string", "description": "Text in two lines."}),
        ("maybe", {"type": "string", "format": "uuid", "description": "Maybe."}),
        ("lenient", {"type": "string", "minLength": 1, "description": "Required by the server only."}),
        ("number", {"type": "integer", "minimum": 0, "maximum": 9, "description": "Number."}),
        ("small", {"type": "integer", "format": "int32", "description": "Small."}),
        ("flag", {"type": "boolean", "default": True, "description": "Flag."}),
        ("empty", {"type": "array", "items": {"type": "string"}, "default": [], "description": "Empty."}),
        (
            "tags",
            {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "pattern": "^[^,]+$"},
                "x-kubernetes-list-type": "set",
                "description": "Tags.",
            },
        ),
        (
            "parts",
            {
                "type": "array",
                "items": PART | {"description": "A part of it."},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "description": "Parts.",
            },
        ),
        (
            "ports",
            {
                "type": "array",
                "items": {"type": "integer"},
                "maxItems": 1,
                "x-kubernetes-list-type": "atomic",
                "description": "Ports.",
            },
        ),
        ("part", PART | {"description": "The part."}),
        ("labels", {"type": "object", "additionalProperties": {"type": "string"}, "description": "Labels."}),
    ],
)
def test_each_type_becomes_a_structural_schema(field: str, expected: dict[str, Any]) -> None:
    spec = schema.kind_schema(Sampled)["properties"]["spec"]

    assert spec["properties"][field] == expected


def test_a_quantity_is_number_or_text() -> None:
    value = schema.kind_schema(Sampled)["properties"]["spec"]["properties"]["capacity"]["additionalProperties"]

    assert value["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert value["x-kubernetes-int-or-string"] is True
    assert "type" not in value


def test_required_is_what_has_no_default_or_is_marked() -> None:
    assert schema.kind_schema(Sampled)["properties"]["spec"]["required"] == ["lenient", "number"]


def test_the_root_requires_nothing() -> None:
    root = schema.kind_schema(Sampled)

    assert "required" not in root
    assert root["properties"]["metadata"] == {"type": "object"}


class Puzzle(Model):
    """A model without a structural schema."""

    either: int | str = 0
    """Either."""


class Puzzling(KubernetesObject):
    """A kind."""

    names: ClassVar[Names] = Names("puzzlings")

    spec: Puzzle
    """The puzzle."""


def test_a_type_without_structural_schema_is_refused() -> None:
    with pytest.raises(TypeError, match=r"int \| str"):
        schema.kind_schema(Puzzling)


@pytest.mark.parametrize("definition", definitions.DEFINITIONS, ids=lambda d: d.kind)
def test_every_schema_is_structural(definition: definitions.Definition) -> None:
    for version in definitions.manifest(definition)["spec"]["versions"]:
        for path, part in walk(version["schema"]["openAPIV3Schema"], version["name"]):
            assert "type" in part or part.get("x-kubernetes-int-or-string"), path
            assert not part.keys() & {"title", "$ref", "oneOf", "allOf", "definitions"}, path
            assert "anyOf" not in part or part.get("x-kubernetes-int-or-string"), path


def walk(part: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, part
    for name, child in part.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in part:
            yield from walk(part[name], f"{path}.{name}")
