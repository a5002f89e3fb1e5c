"""The requirements of the definitions on an object, as the API server checks them: defaults, structure, CEL rules.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", "Validation".
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from capo.json_types import Json
from e2e.misoperation import cel


class Cause(NamedTuple):
    """One reason of a refusal."""

    field: str
    message: str


UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
}


def _is_ipv4(value: Any) -> bool:
    try:
        ipaddress.IPv4Address(value)
    except ValueError:
        return False
    return True


FORMATS: Final[dict[str, Callable[[Any], bool]]] = {
    "uuid": lambda value: bool(UUID.fullmatch(value)),
    "ipv4": _is_ipv4,
    "int32": lambda value: -(2**31) <= value < 2**31,
    "int64": lambda value: -(2**63) <= value < 2**63,
}


def _has_no_duplicates(value: list[Any], kind: str) -> bool:
    return kind != "set" or len({json.dumps(item, sort_keys=True) for item in value}) == len(value)


def _has_no_duplicate_keys(value: list[Any], keys: list[str]) -> bool:
    return len({json.dumps([item.get(key) for key in keys]) for item in value}) == len(value)


BOUNDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "type": lambda value, bound: TYPES[bound](value),
    "format": lambda value, bound: FORMATS[bound](value),
    "enum": lambda value, bound: value in bound,
    "pattern": lambda value, bound: bool(re.search(bound, value)),
    "minLength": lambda value, bound: len(value) >= bound,
    "maxLength": lambda value, bound: len(value) <= bound,
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "minItems": lambda value, bound: len(value) >= bound,
    "maxItems": lambda value, bound: len(value) <= bound,
    "minProperties": lambda value, bound: len(value) >= bound,
    "maxProperties": lambda value, bound: len(value) <= bound,
    "x-kubernetes-list-type": _has_no_duplicates,
    "x-kubernetes-list-map-keys": _has_no_duplicate_keys,
}
"""Whether a value satisfies a bound; a keyword that is missing here and in ``OTHERS`` fails a test."""
OTHERS: Final = frozenset(
    {
        *("description", "default", "properties", "items", "additionalProperties", "required"),
        *("x-kubernetes-validations", "x-kubernetes-map-type"),
    }
)
"""Keywords that are no bounds, or are handled by the walk itself."""


def defaulted(schema: Json, value: Any) -> Any:
    """Return a value with the defaults of its schema, and without nulls."""
    match value:
        case list():
            return [defaulted(schema["items"], item) for item in value]
        case dict():
            properties = schema.get("properties", {})
            below = schema.get("additionalProperties", {})
            kept = {name: part for name, part in value.items() if part is not None}
            added = {n: p["default"] for n, p in properties.items() if "default" in p and n not in kept}
            return {name: defaulted(properties.get(name, below), part) for name, part in (kept | added).items()}
    return value


def causes(schema: Json, value: Any, path: str, *, old: Any = None) -> list[Cause]:
    """Return why the API server refuses a value; CEL rules are evaluated only if the value is otherwise valid."""
    return list(_structure(schema, value, path)) or list(_rules(schema, value, path, old=old))


def _structure(schema: Json, value: Any, path: str) -> Iterator[Cause]:
    if not TYPES[schema["type"]](value):
        yield Cause(path, f"Invalid value: must be of type {schema['type']}")
        return
    for keyword, bound in schema.items():
        if keyword in BOUNDS and not BOUNDS[keyword](value, bound):
            yield Cause(path, f"Invalid value: {json.dumps(value)}: breaks {keyword} {bound}")
    for name in schema.get("required", ()):
        if name not in value:
            yield Cause(f"{path}.{name}", "Required value")
    for below, child, part in _children(schema, value, path):
        yield from _structure(child, part, below)


def _rules(schema: Json, value: Any, path: str, *, old: Any) -> Iterator[Cause]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if cel.TRANSITION in rule["rule"] and old is None:
            continue
        if not cel.PREDICATES[rule["rule"]](value, old or {}):
            yield Cause(path + rule.get("fieldPath", ""), f"Invalid value: {rule['message']}")
    for below, child, part in _children(schema, value, path):
        # Entries of lists are not correlated: a transition rule below one is not evaluated for it.
        before = old.get(below.rpartition(".")[2]) if isinstance(old, dict) else None
        yield from _rules(child, part, below, old=before)


def _children(schema: Json, value: Any, path: str) -> Iterator[tuple[str, Json, Any]]:
    if isinstance(value, list):
        yield from ((f"{path}[{i}]", schema["items"], item) for i, item in enumerate(value))
    elif isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties")
        for name, part in value.items():
            if child := known.get(name, rest):
                yield f"{path}.{name}", child, part
