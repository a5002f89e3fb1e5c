"""Checks the fields of our objects as kubectl and the API server do: by the definitions of their kinds."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from capo.crdgen import files
from capo.json_types import Json, Object

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "string": str,
}


def shape_faults(obj: Object) -> Iterator[str]:
    """Yield a phrase for each part that has another type in an object of any kind."""
    metadata = obj["metadata"]
    for name in ("name", "namespace", "uid"):
        if not isinstance(metadata.get(name) or "", str):
            yield f"metadata.{name}: must be of type string"
    for name in ("labels", "annotations"):
        texts = metadata.get(name) or {}
        if not isinstance(texts, dict) or not all(isinstance(each, str) for each in texts.values()):
            yield f"metadata.{name}: must have texts"
    for name in ("ownerReferences", "finalizers"):
        if not isinstance(metadata.get(name) or [], list):
            yield f"metadata.{name}: must be of type array"
    for name in ("spec", "status", "data", "stringData"):
        if not isinstance(obj.get(name) or {}, dict):
            yield f"{name}: must be of type object"


def faults(obj: Object) -> Iterator[str]:
    """Yield a phrase for each field that the definition lacks, or whose type is another; none of other kinds."""
    found = _schemas().get((str(obj["apiVersion"]), str(obj["kind"])))
    if found is not None:
        # The API server knows the fields of metadata itself.
        yield from _faults({name: value for name, value in obj.items() if name != "metadata"}, found, "")


def _faults(value: Any, schema: Json, path: str) -> Iterator[str]:
    wanted = str(schema.get("type"))
    is_other = wanted in _TYPES and not isinstance(value, _TYPES[wanted])
    if value is None:
        return
    if is_other or (isinstance(value, bool) and wanted in ("integer", "number")):
        yield f"{path}: must be of type {wanted}"
        return
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _faults(each, schema.get("items") or {}, f"{path}[{number}]")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _field_faults(name, each, schema, f"{path}.{name}" if path else str(name))


def _field_faults(name: str, value: Any, schema: Json, path: str) -> Iterator[str]:
    known, more = schema.get("properties"), schema.get("additionalProperties")
    if known and name in known:
        yield from _faults(value, known[name], path)
    elif isinstance(more, dict):
        yield from _faults(value, more, path)
    elif known:
        yield f'unknown field "{path}"'


@functools.lru_cache(maxsize=1)
def _schemas() -> Mapping[tuple[str, str], Json]:
    """Return the schema of each of our kinds, by API version and kind."""
    return {
        (f"{each['spec']['group']}/{version['name']}", each["spec"]["names"]["kind"]): version["schema"][
            "openAPIV3Schema"
        ]
        for each in files.load()
        for version in each["spec"]["versions"]
    }
