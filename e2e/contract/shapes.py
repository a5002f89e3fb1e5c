"""The shape of a JSON value: keys and types, no values. Pure.

A stored shape: ``"string"``, ``"null|string"``; an object is an object, a list is a list of its items'
shape, ``[]`` when it was always empty. An optional key ends in ``?``; a key whose value is not always the
object or list in the shape ends in the other types: ``image|string``, ``fault|null?``. An object whose keys are
data has the one key ``*``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

FREE_KEYS: Final = frozenset({"addresses", "extra_specs", "metadata", "volume_image_metadata"})
"""Objects whose keys are data."""
_STRUCTURES: Final = frozenset({"array", "object"})


@dataclass
class Shape:
    """The shape of one value, merged over all its occurrences.

    Args:
        kinds: JSON types.
        seen: number of times that it was an object.
        keys: shape of each key and how often it was present.
        items: shape of a list's items, None while every list was empty.
    """

    kinds: set[str] = field(default_factory=set)
    seen: int = 0
    keys: dict[str, tuple[Shape, int]] = field(default_factory=dict)
    items: Shape | None = None

    def add(self, value: Any, name: str = "") -> Shape:
        """Merge one more value of a key with this name; return self."""
        self.kinds.add(kind_of(value))
        if isinstance(value, dict):
            self._add_object(value, has_free_keys=name in FREE_KEYS)
        elif isinstance(value, list):
            for each in value:
                self.items = (self.items or Shape()).add(each)
        return self

    def _add_object(self, value: Mapping[str, Any], *, has_free_keys: bool) -> None:
        self.seen += 1
        for key, each in value.items():
            known = "*" if has_free_keys else key
            shape, times = self.keys.get(known, (Shape(), 0))
            self.keys[known] = (shape.add(each, key), times + 1)

    def written(self) -> Any:
        """Return the shape in its stored form."""
        if "object" in self.kinds:
            return {self._written_key(key): self.keys[key][0].written() for key in sorted(self.keys)}
        if "array" in self.kinds:
            return [self.items.written()] if self.items else []
        return "|".join(sorted(self.kinds))

    @classmethod
    def read(cls, written: Any, others: frozenset[str] = frozenset()) -> Shape:
        """Parse a stored shape.

        Args:
            others: additional types of the value.
        """
        shape = cls(set(_kinds_of(written) | others))
        if isinstance(written, dict):
            shape.seen = 1
            for name, each in written.items():
                key = _key(name)
                shape.keys[key.name] = (cls.read(each, key.others), 0 if key.is_optional else 1)
        elif isinstance(written, list) and written:
            shape.items = cls.read(written[0])
        return shape

    def _written_key(self, key: str) -> str:
        shape, times = self.keys[key]
        others = sorted(shape.kinds - _STRUCTURES) if shape.kinds & _STRUCTURES else []
        return "|".join([key, *others]) + ("?" if times < self.seen and key != "*" else "")


class _Key(NamedTuple):
    """A key of a stored shape, parsed."""

    name: str
    others: frozenset[str]
    is_optional: bool


def _key(written: str) -> _Key:
    name, *others = written.removesuffix("?").split("|")
    return _Key(name, frozenset(others), written.endswith("?"))


def kind_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names: Mapping[type, str] = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def complaints(recorded: Any, value: Any, where: str = "body", others: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the parts of a value that do not match a stored shape.

    Args:
        others: additional types of the value.
    """
    kind = kind_of(value)
    if kind in others:
        return
    expected = _kinds_of(recorded) | others
    if kind not in expected:
        yield f"{where} is {kind}, recorded as {'|'.join(sorted(expected))}"
    elif isinstance(value, dict):
        yield from _object_complaints(recorded, value, where)
    elif isinstance(value, list):
        yield from _list_complaints(recorded, value, where)


def _kinds_of(recorded: Any) -> set[str]:
    if isinstance(recorded, dict):
        return {"object"}
    return {"array"} if isinstance(recorded, list) else set(recorded.split("|"))


def _object_complaints(recorded: Mapping[str, Any], value: Mapping[str, Any], where: str) -> Iterator[str]:
    known = {_key(written).name: (shape, _key(written)) for written, shape in recorded.items()}
    for key, each in value.items():
        shape, described = known.get(key) or known.get("*") or (None, None)
        if described is None:
            yield f"{where}.{key} is not in the recording"
        else:
            yield from complaints(shape, each, f"{where}.{key}", described.others)
    for key, (_, described) in known.items():
        if key not in value and key != "*" and not described.is_optional:
            yield f"{where}.{key} is missing"


def _list_complaints(recorded: list[Any], value: list[Any], where: str) -> Iterator[str]:
    if value and not recorded:
        yield f"{where}[] has items, recorded as always empty"
    for each in value if recorded else ():
        yield from complaints(recorded[0], each, f"{where}[]")


def unseen(recorded: Any, seen: Any, where: str = "body") -> Iterator[str]:
    """Yield the keys, types and items of one stored shape that another one lacks."""
    if isinstance(recorded, dict) and isinstance(seen, dict):
        yield from _unseen_keys(recorded, seen, where)
    elif isinstance(recorded, list) and isinstance(seen, list):
        if recorded and not seen:
            yield f"{where}[] was always empty"
        elif recorded:
            yield from unseen(recorded[0], seen[0], f"{where}[]")
    elif missing := _kinds_of(recorded) - _kinds_of(seen):
        yield f"{where} was never {'|'.join(sorted(missing))}"


def _unseen_keys(recorded: Mapping[str, Any], seen: Mapping[str, Any], where: str) -> Iterator[str]:
    others = {_key(written).name: (shape, _key(written)) for written, shape in seen.items()}
    for written, shape in recorded.items():
        described = _key(written)
        place = f"{where}.{described.name}"
        if described.name not in others:
            yield f"{place} was never there"
            continue
        other_shape, other = others[described.name]
        if missing := described.others - other.others - _kinds_of(other_shape):
            yield f"{place} was never {'|'.join(sorted(missing))}"
        if described.is_optional and not other.is_optional:
            yield f"{place} was always there"
        yield from unseen(shape, other_shape, place)
