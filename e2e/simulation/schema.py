"""A structural schema as the API server applies it: pruning, defaults, validation, rules.

Unchanged values are not checked again, which the API server calls ratcheting. The texts are the API server's for
everything that the tests compare with it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo.json_types import Json
from e2e.simulation import rules
from e2e.simulation.refusals import Cause
from e2e.simulation.rules import Rule

MISSING: Final = object()
NOT_CHECKED: Final = Cause(
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_BLOCKING: Final = frozenset(
    {"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueNotSupported", "FieldValueTooLong", "FieldValueTooMany"}
)
_IPV4: Final = re.compile(r"((25[0-5]|2[0-4]\d|1?\d?\d)(\.|$)){4}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_PYTHON: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


@dataclass
class Faults:
    """The faults of an object, and the rules that are evaluated if the object is otherwise valid.

    Args:
        skipped: prefix of the paths that messages omit.
    """

    causes: list[Cause] = field(default_factory=list)
    asked: list[tuple[Rule, Any, Any, str]] = field(default_factory=list)
    skipped: str = ""

    def invalid(self, path: str, value: Any, text: str, reason: str = "FieldValueInvalid") -> None:
        """Record that a value is invalid."""
        name = path.removeprefix(self.skipped)
        self.causes.append(Cause(path, f"Invalid value: {json.dumps(value)}: {name} in body {text}", reason))

    def too_many(self, path: str, count: int, limit: int) -> None:
        """Record that a value has more members than allowed."""
        text = f"Too many: {count}: must have at most {limit} item{'' if limit == 1 else 's'}"
        self.causes.append(Cause(path, text, "FieldValueTooMany"))

    def settled(self) -> list[Cause]:
        """Evaluate the rules, unless a fault prevents it; return all faults."""
        if any(cause.reason in _BLOCKING for cause in self.causes):
            return [*self.causes, NOT_CHECKED]
        broken = [asked for asked in self.asked if not asked[0].check(asked[1], asked[2])]
        return self.causes + [
            Cause(path + rule.field, f"Invalid value: {rule.message(value, old)}") for rule, value, old, path in broken
        ]


class Node:
    """The schema of one value."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.type: str = schema.get("type", "")
        self.properties = {name: Node(child) for name, child in (schema.get("properties") or {}).items()}
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.defaults = {name: child.default for name, child in self.properties.items() if child.default is not MISSING}
        self.default: Any = schema.get("default", MISSING)
        self.items = Node(schema["items"]) if "items" in schema else None
        free = schema.get("additionalProperties")
        self.free = Node(free) if isinstance(free, dict) else None
        self.is_open = bool(free or schema.get("x-kubernetes-preserve-unknown-fields") or not self.properties)
        self.rules = [rules.read_rule(one) for one in schema.get("x-kubernetes-validations") or ()]
        self.list_type: str = schema.get("x-kubernetes-list-type", "atomic")
        self.keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.enum, self.format = schema.get("enum"), schema.get("format")
        self.pattern = re.compile(schema["pattern"]) if "pattern" in schema else None
        self.limits = {name: schema[name] for name in _LIMITS if name in schema}

    def completed(self, value: Any) -> Any:
        """Return a value without unknown fields and with defaults; the value itself if nothing changes."""
        if isinstance(value, dict) and (self.properties or self.free):
            return self._completed_object(value)
        if isinstance(value, list) and self.items and (self.items.properties or self.items.items):
            made = [self.items.completed(one) for one in value]
            return value if all(new is old for new, old in zip(made, value, strict=True)) else made
        return value

    def _completed_object(self, value: Json) -> Json:
        made = {}
        is_same = True
        for name, old in value.items():
            child = self.properties.get(name, self.free)
            if child is None and not self.is_open:
                is_same = False
            elif old is None and child is not None:
                is_same = False  # null equals absence where it is not allowed
            else:
                made[name] = new = child.completed(old) if child else old
                is_same = is_same and new is old
        for name, default in self.defaults.items():
            if name not in made:
                made[name] = default
                is_same = False
        return value if is_same else made

    def check(self, value: Any, old: Any, path: str, faults: Faults) -> None:
        """Record the faults of a value.

        Args:
            old: the old value, ``MISSING`` if there is none or it cannot be determined.
        """
        if old is not MISSING and (value is old or value == old):
            return
        if not self._has_type(value):
            kind = _type_of(value)
            faults.invalid(path, kind, f'must be of type {self.type}: "{kind}"', "FieldValueTypeInvalid")
            return
        match value:
            case dict():
                self._check_object(value, old, path, faults)
            case list():
                self._check_list(value, old, path, faults)
            case str():
                self._check_text(value, path, faults)
            case int() | float():
                self._check_number(value, path, faults)
        faults.asked += [
            (rule, value, old, path) for rule in self.rules if old is not MISSING or not rule.is_transition
        ]

    def _has_type(self, value: Any) -> bool:
        if not self.type:
            return True
        if isinstance(value, bool):
            return self.type == "boolean"
        return isinstance(value, _PYTHON[self.type])

    def _check_object(self, value: Json, old: Any, path: str, faults: Faults) -> None:
        start = f"{path}." if path else ""
        count = len(value)
        if count > self.limits.get("maxProperties", count):
            faults.too_many(path, count, self.limits["maxProperties"])
        if count < self.limits.get("minProperties", 0):
            text = f"should have at least {self.limits['minProperties']} properties"
            faults.invalid(path, count, text)
        for name in self.required:
            if name not in value:
                faults.causes.append(Cause(start + name, "Required value", "FieldValueRequired"))
        before = old if isinstance(old, dict) else {}
        for name, one in value.items():
            if child := self.properties.get(name, self.free):
                child.check(one, before.get(name, MISSING), start + name, faults)

    def _check_list(self, value: list[Any], old: Any, path: str, faults: Faults) -> None:
        count = len(value)
        if count > self.limits.get("maxItems", count):
            faults.too_many(path, count, self.limits["maxItems"])
        if count < self.limits.get("minItems", 0):
            faults.invalid(path, count, f"should have at least {self.limits['minItems']} items")
        if self.list_type != "atomic":
            seen: list[Any] = []
            for place, key in enumerate(self._keys_of(value)):
                if key in seen:
                    text = f"Duplicate value: {json.dumps(key, separators=(',', ':'))}"
                    faults.causes.append(Cause(f"{path}[{place}]", text, "FieldValueDuplicate"))
                seen.append(key)
        if self.items:
            for place, (one, before) in enumerate(zip(value, self._before(value, old), strict=True)):
                self.items.check(one, before, f"{path}[{place}]", faults)

    def _keys_of(self, value: list[Any]) -> list[Any]:
        if self.list_type != "map":
            return value
        return [{key: one.get(key) for key in self.keys} if isinstance(one, dict) else one for one in value]

    def _before(self, value: list[Any], old: Any) -> Iterator[Any]:
        """Yield the old value of each member; only lists with keys have one."""
        if self.list_type != "map" or not isinstance(old, list):
            yield from (MISSING for _ in value)
            return
        keys = self._keys_of(old)
        for key in self._keys_of(value):
            yield old[keys.index(key)] if key in keys else MISSING

    def _check_text(self, value: str, path: str, faults: Faults) -> None:
        if len(value) < self.limits.get("minLength", 0):
            faults.invalid(path, value, f"should be at least {self.limits['minLength']} chars long")
        longest = self.limits.get("maxLength")
        if longest is not None and len(value) > longest:
            text = f"Too long: may not be more than {longest} bytes"
            faults.causes.append(Cause(path, text, "FieldValueTooLong"))
        if self.pattern and not self.pattern.search(value):
            faults.invalid(path, value, f"should match '{self.pattern.pattern}'")
        if self.enum and value not in self.enum:
            listed = ", ".join(json.dumps(one) for one in self.enum)
            text = f"Unsupported value: {json.dumps(value)}: supported values: {listed}"
            faults.causes.append(Cause(path, text, "FieldValueNotSupported"))
        if self.format and not _has_format(value, self.format):
            text = f"must be of type {self.format}: {json.dumps(value)}"
            faults.invalid(path, value, text, "FieldValueTypeInvalid")

    def _check_number(self, value: float, path: str, faults: Faults) -> None:
        if value < self.limits.get("minimum", value):
            faults.invalid(path, value, f"should be greater than or equal to {self.limits['minimum']}")
        if value > self.limits.get("maximum", value):
            faults.invalid(path, value, f"should be less than or equal to {self.limits['maximum']}")


_NAMES: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_LIMITS: Final = (
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)


def _type_of(value: Any) -> str:
    return _NAMES[type(value)]


def _has_format(value: str, format_: str) -> bool:
    match format_:
        case "uuid":
            try:
                return bool(uuid.UUID(value))
            except ValueError:
                return False
        case "ipv4":
            return bool(_IPV4.fullmatch(value))
        case "date-time":
            return bool(_TIME.fullmatch(value))
    return True
