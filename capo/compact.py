"""Compact copies of JSON values: recurring texts are shared, and fields that nothing reads are left out.

A field that was left out is not absent. Reading it raises, so that "was not kept" is never taken for "does not exist".
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Self

from capo.json_types import Body

MAX_SHARED: Final = 128
"""Characters up to which equal texts are shared: names, ids, times, words. Longer ones hardly recur."""
_NONE: Final = object()


class NotKeptError(RuntimeError):
    """A field was read that the kind does not declare as kept: a fault of the program."""


def shared(value: Any) -> Any:
    """Return a copy of a JSON value in which equal texts, also of other values, are one object."""
    if isinstance(value, str):
        return sys.intern(value) if type(value) is str and len(value) <= MAX_SHARED else value
    if isinstance(value, Mapping):
        return {shared(name): shared(each) for name, each in value.items()}
    return [shared(each) for each in value] if isinstance(value, list) else value


class Kept(dict[str, Any]):
    """A JSON object of which only declared fields are kept; reading another one raises.

    A copy such as ``{**body, ...}`` is an ordinary dictionary, which cannot raise: it is for storing alone.
    """

    __slots__ = ()
    fields: ClassVar[frozenset[str]] = frozenset()

    def __missing__(self, name: str) -> Any:
        self._expect(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or self._expect(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a declared field, or the default if the object lacks it."""
        value = dict.get(self, name, _NONE)
        if value is not _NONE:
            return value
        self._expect(name)
        return default

    def _expect(self, name: object) -> bool:
        """Return False for a declared field.

        Raises:
            NotKeptError: it is not declared.
        """
        if name not in self.fields:
            raise NotKeptError(f"{name!r} is read, but not kept; kept are {', '.join(sorted(self.fields))}")
        return False


class Shape:
    """Which fields of JSON objects are kept.

    Args:
        paths: names of fields; ``a.b`` keeps b alone of the object a, or of each object in the list a. A field that is
            named without a part is kept as a whole.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        parts: dict[str, list[str]] = {}
        for path in paths:
            name, _, rest = path.partition(".")
            parts.setdefault(sys.intern(name), []).extend([rest] if rest else [])
        self._parts = {name: Shape(inner) if inner else None for name, inner in parts.items()}
        self._kept = type("Kept", (Kept,), {"__slots__": (), "fields": frozenset(self._parts)})

    @classmethod
    def of(cls, paths: Iterable[str]) -> Self | None:
        """Return the shape of these paths, None if there are none: everything is kept."""
        found = tuple(paths)
        return cls(found) if found else None

    def keep(self, body: Body) -> Body:
        """Return what is kept of an object; of what was kept before, all."""
        if isinstance(body, self._kept):
            return body
        kept: Body = self._kept({name: _kept(part, body[name]) for name, part in self._parts.items() if name in body})
        return kept


def _kept(part: Shape | None, value: Any) -> Any:
    if part is None:
        return shared(value)
    if isinstance(value, Mapping):
        return part.keep(value)
    return [_kept(part, each) for each in value] if isinstance(value, list) else value
