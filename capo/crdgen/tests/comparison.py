"""Compares the constraints of two CustomResourceDefinitions of one kind; pure.

Descriptions are not compared, nor the order of lists without one. A path is written as a field path: ``spec.tags[]`` is
an entry of a list, ``status.capacity{}`` a value of a map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from capo.json_types import Json

_UNORDERED = frozenset({"required", "enum"})


@dataclass(frozen=True)
class Difference:
    """A keyword with different values; None where one of the two lacks it."""

    version: str
    path: str
    keyword: str
    theirs: Any
    ours: Any


def differences(theirs: Json, ours: Json) -> list[Difference]:
    """Return all differences of two CRDs in the versions that both have."""
    found = [Difference("", "", key, a, b) for key, a, b in _unlike(_frame(theirs), _frame(ours))]
    versions = {version["name"]: version for version in theirs["spec"]["versions"]}
    for version in ours["spec"]["versions"]:
        if version["name"] in versions:
            found += _of_version(version["name"], versions[version["name"]], version)
    return found


def missing_versions(theirs: Json, ours: Json) -> set[str]:
    """Return the names of the versions that only theirs has."""
    return {v["name"] for v in theirs["spec"]["versions"]} - {v["name"] for v in ours["spec"]["versions"]}


def _frame(crd: Json) -> Json:
    return {"name": crd["metadata"]["name"], **{k: v for k, v in crd["spec"].items() if k != "versions"}}


def _of_version(name: str, theirs: Json, ours: Json) -> Iterator[Difference]:
    for key, a, b in _unlike(_version_frame(theirs), _version_frame(ours)):
        yield Difference(name, "", key, a, b)
    schemas = (theirs["schema"]["openAPIV3Schema"], ours["schema"]["openAPIV3Schema"])
    for path, key, a, b in _of_schema("", *schemas):
        yield Difference(name, path, key, a, b)


def _version_frame(version: Json) -> Json:
    frame = {key: value for key, value in version.items() if key != "schema"}
    columns = frame.get("additionalPrinterColumns", [])
    frame["additionalPrinterColumns"] = [{k: v for k, v in c.items() if k != "description"} for c in columns]
    return frame


def _of_schema(path: str, theirs: Json, ours: Json) -> Iterator[tuple[str, str, Any, Any]]:
    for key, a, b in _unlike(_keywords(theirs), _keywords(ours)):
        yield path, key, a, b
    ours_below, theirs_below = dict(_below(path, ours)), dict(_below(path, theirs))
    for child in sorted(ours_below.keys() | theirs_below.keys()):
        if child not in ours_below:
            yield child, "", theirs_below[child], None
        elif child not in theirs_below:
            yield child, "", None, ours_below[child]
        else:
            yield from _of_schema(child, theirs_below[child], ours_below[child])


def _keywords(schema: Json) -> Json:
    keywords = {k: v for k, v in schema.items() if k not in {"properties", "items", "additionalProperties"}}
    keywords.pop("description", None)
    return {k: sorted(v) if k in _UNORDERED else v for k, v in keywords.items()}


def _below(path: str, schema: Json) -> Iterator[tuple[str, Json]]:
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}" if path else name, child
    if "items" in schema:
        yield f"{path}[]", schema["items"]
    if "additionalProperties" in schema:
        yield f"{path}{{}}", schema["additionalProperties"]


def _unlike(theirs: Json, ours: Json) -> Iterator[tuple[str, Any, Any]]:
    for key in sorted(theirs.keys() | ours.keys()):
        if theirs.get(key) != ours.get(key):
            yield key, theirs.get(key), ours.get(key)
