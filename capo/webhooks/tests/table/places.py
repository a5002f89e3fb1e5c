"""Finds every rule and bound in the generated CRDs, by kind, version and path.

A path is written as ``spec.ports[].network``: ``[]`` is an entry of a list, ``{}`` a value of a map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from capo.crdgen import files
from capo.json_types import Json

KEY: Final = "key"
"""The key of a map in concrete paths."""
PARTS: Final = ("spec", "status")
NO_BOUNDS: Final = frozenset(
    {"description", "properties", "items", "additionalProperties", "default", "x-kubernetes-map-type"}
)
"""Keywords that refuse nothing."""
MERGE_ONLY: Final = frozenset({"atomic", "map"})
"""Types of lists that define how they are merged; duplicates of a map's keys are a bound of its own."""


@dataclass(frozen=True)
class Version:
    """A kind in one version, as the API server has it."""

    kind: str
    name: str
    crd: Any

    @property
    def api_version(self) -> str:
        """Return group and version."""
        return f"{self.crd['spec']['group']}/{self.name}"

    @property
    def is_namespaced(self) -> bool:
        """Return whether objects live in namespaces."""
        return bool(self.crd["spec"]["scope"] == "Namespaced")

    @property
    def root(self) -> Json:
        """Return the schema of the whole object."""
        (served,) = [version for version in self.crd["spec"]["versions"] if version["name"] == self.name]
        schema: Json = served["schema"]["openAPIV3Schema"]
        return schema

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Bound:
    """One demand of a schema.

    Args:
        detail: the field of ``required``, the message of a CEL rule; empty for others.
    """

    path: str
    keyword: str
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.path, self.keyword, self.detail)))


@cache
def versions() -> list[Version]:
    """Return all kinds in all served versions."""
    return [
        Version(crd["spec"]["names"]["kind"], version["name"], crd)
        for crd in files.load()
        for version in crd["spec"]["versions"]
        if version["served"]
    ]


def schemas(version: Version) -> Iterator[tuple[str, Json]]:
    """Yield every part of spec and status with its path."""
    for part in PARTS:
        if part in version.root["properties"]:
            yield from _below(part, version.root["properties"][part])


def _below(path: str, schema: Json) -> Iterator[tuple[str, Json]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _below(f"{path}.{name}", child)
    for keyword, step in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in schema:
            yield from _below(path + step, schema[keyword])


def bounds(version: Version) -> list[Bound]:
    """Return every bound of a version's schema, of any keyword."""
    return [bound for path, schema in schemas(version) for bound in _of(path, schema)]


def _of(path: str, schema: Json) -> Iterator[Bound]:
    for keyword in sorted(schema.keys() - NO_BOUNDS):
        match keyword, schema[keyword]:
            case "required", names:
                yield from (Bound(path, keyword, name) for name in names)
            case "x-kubernetes-validations", rules:
                yield from (Bound(path, keyword, rule["message"]) for rule in rules)
            case "x-kubernetes-list-type", kind if kind in MERGE_ONLY:
                continue
            case _:
                yield Bound(path, keyword)


def steps(path: str) -> list[str]:
    """Return the steps of a path: names, ``[]`` and ``{}``."""
    return re.findall(r"[^.\[\]{}]+|\[\]|\{\}", path)


def concrete(path: str) -> str:
    """Return a path as an error names it, in the first entry of each list."""
    return path.replace("[]", "[0]").replace("{}", f".{KEY}")


def child(schema: Json, step: str) -> Json:
    """Return the schema one step down."""
    found: Json
    match step:
        case "[]":
            found = schema["items"]
        case "{}":
            found = schema["additionalProperties"]
        case name:
            found = schema["properties"][name]
    return found


def at(version: Version, path: str) -> Json:
    """Return the schema at a path."""
    schema = version.root
    for step in steps(path):
        schema = child(schema, step)
    return schema
