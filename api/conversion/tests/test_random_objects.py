"""Random objects of the Go provider's schemas survive a round trip: nothing is lost, and no outdated value is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import jsonschema
import pytest

from api import conversion
from api.conversion import NEWER, OLDER
from api.conversion.annotation import ANNOTATION
from api.conversion.tests import losses
from api.conversion.tests.random_objects import Maker, changed, paths
from capo.crdgen.tests import go_provider
from capo.json_types import Json

pytestmark = pytest.mark.slow

ROUNDS = 100
VERSIONS = pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
KINDS = pytest.mark.parametrize("kind", conversion.KINDS)


@cache
def go_providers(kind: str) -> Json:
    return go_provider.crd(kind)


def schema(kind: str, version: str) -> Json:
    found = next(v for v in go_providers(kind)["spec"]["versions"] if v["name"] == version)
    whole: Json = found["schema"]["openAPIV3Schema"]
    return whole


def objects(kind: str, version: str, *, rounds: int = ROUNDS) -> list[tuple[Random, Json]]:
    return [(random, made(kind, version, random)) for random in map(Random, range(rounds))]


def made(kind: str, version: str, random: Random) -> Json:
    return Maker(random, density=random.choice((0.2, 0.5, 0.9))).object_of(go_providers(kind), version)


def other(version: str) -> str:
    return NEWER if version == "v1beta1" else OLDER


def this(version: str) -> str:
    return OLDER if version == "v1beta1" else NEWER


def left_of(version: str) -> Callable[[Json], Json]:
    return losses.lost_from_older if version == "v1beta1" else losses.lost_from_newer


def bare(obj: Json) -> Json:
    """Return the object without the annotation."""
    metadata = dict(obj["metadata"])
    annotations = {key: value for key, value in metadata.pop("annotations", {}).items() if key != ANNOTATION}
    return obj | {"metadata": metadata | ({"annotations": annotations} if annotations else {})}


@KINDS
@VERSIONS
def test_an_object_that_goes_there_and_back_is_the_same(kind: str, version: str) -> None:
    for _, obj in objects(kind, version):
        there = conversion.convert(obj, other(version))

        assert conversion.convert(there, this(version)) == obj


@KINDS
@VERSIONS
def test_without_what_is_kept_only_what_is_listed_is_lost(kind: str, version: str) -> None:
    left = left_of(version)
    for _, obj in objects(kind, version):
        back = conversion.convert(bare(conversion.convert(obj, other(version))), this(version))

        assert left(bare(back)) == left(obj)


@KINDS
@VERSIONS
def test_nothing_is_kept_of_an_object_that_loses_nothing(kind: str, version: str) -> None:
    for _, obj in objects(kind, version):
        back = bare(conversion.convert(bare(conversion.convert(obj, other(version))), this(version)))

        again = conversion.convert(back, other(version))

        assert ANNOTATION not in again["metadata"].get("annotations", {})


@KINDS
@VERSIONS
def test_a_change_made_in_the_other_version_is_seen_in_this_one(kind: str, version: str) -> None:
    left = left_of(version)
    for random, obj in objects(kind, version):
        part = random.choice([name for name in ("spec", "status") if name in obj] or ["metadata"])
        there = conversion.convert(obj, other(version))
        edited = there | {part: changed(there.get(part), random)} if part != "metadata" else there

        seen = conversion.convert(edited, this(version))

        # What is read has all of the change, and nothing from before it.
        fresh = conversion.convert(bare(edited), this(version))
        assert left(bare(seen)) == left(bare(fresh)), edited


@KINDS
@VERSIONS
def test_an_edit_of_what_was_read_is_stored_as_it_was_made(kind: str, version: str) -> None:
    stored_as = losses.lost_from_older if version == "v1beta2" else losses.lost_from_newer
    for random, obj in objects(kind, version):
        if "spec" not in obj:
            continue
        read = conversion.convert(obj, other(version))
        edited = read | {"spec": changed(read["spec"], random)}

        stored = conversion.convert(edited, this(version))
        again = conversion.convert(bare(stored), other(version))

        assert stored_as(bare(again)) == stored_as(bare(edited))


@KINDS
def test_writing_back_what_was_read_changes_nothing(kind: str) -> None:
    for _, obj in objects(kind, "v1beta1"):
        stored = conversion.convert(obj, NEWER)

        assert conversion.convert(conversion.convert(stored, OLDER), NEWER) == stored


@KINDS
def test_what_v1beta1_clients_read_they_may_write(kind: str) -> None:
    wanted = schema(kind, "v1beta1")
    validator = jsonschema.Draft202012Validator(wanted)
    for _, obj in objects(kind, "v1beta2", rounds=30):
        older = with_defaults(conversion.convert(obj, OLDER), wanted)
        faults = [error.message for error in validator.iter_errors(older)]

        assert faults == []


@KINDS
@VERSIONS
def test_an_object_has_after_conversion_only_fields_of_its_version(kind: str, version: str) -> None:
    """The API server would drop the others silently."""
    target = schema(kind, "v1beta2" if version == "v1beta1" else "v1beta1")["properties"]
    for _, obj in objects(kind, version):
        there = conversion.convert(obj, other(version))

        for part in ("spec", "status"):
            assert [*strangers(there.get(part), target.get(part, {}), part)] == []


def strangers(value: Any, schema: Json, path: str) -> Iterator[str]:
    """Yield the paths of fields that a schema does not have."""
    match value:
        case list():
            for entry in value:
                yield from strangers(entry, schema["items"], f"{path}[]")
        case dict():
            known, rest = schema.get("properties", {}), schema.get("additionalProperties")
            for name, child in value.items():
                if name in known or rest:
                    yield from strangers(child, known.get(name, rest), f"{path}.{name}")
                else:
                    yield f"{path}.{name}"


def with_defaults(value: Any, schema: Json) -> Any:
    """Return the value as the API server completes it before it validates."""
    if isinstance(value, list):
        return [with_defaults(entry, schema["items"]) for entry in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    defaults = {name: child["default"] for name, child in properties.items() if "default" in child}
    return {
        name: with_defaults(child, properties.get(name) or schema.get("additionalProperties") or {})
        for name, child in (defaults | value).items()
    }


@KINDS
@VERSIONS
def test_every_field_of_the_schema_was_tried(kind: str, version: str) -> None:
    maker = Maker(Random(1), density=0.9)
    for _ in range(ROUNDS):
        maker.object_of(go_providers(kind), version)

    wanted = set().union(
        *(paths(part, name) for name, part in schema(kind, version)["properties"].items() if name in ("spec", "status"))
    )
    assert maker.seen == wanted
