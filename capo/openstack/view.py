"""Typed views of what OpenStack's services return: each field has one name and one type, whatever the answer calls it.

A view refers to the answer and copies nothing, so lists of thousands of resources stay as they are. Usage::

    class Port(View):
        device_id = text("device_id")
        fixed_ips = views(FixedIP, "fixed_ips")

    Port(answer["port"]).device_id

A field that is absent, null or of another type reads as its empty value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Self, TypeVar, overload

from capo.json_types import Body

T = TypeVar("T")


class View:
    """A resource, or a part of one, as its service returned it.

    Lists are searched by views of their items, so creating one costs as little as possible.
    """

    __slots__ = ("body",)

    def __init__(self, body: Body) -> None:
        self.body = body

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, View) and self.body == other.body

    __hash__ = None  # type: ignore[assignment]  # it refers to a body, which has no hash

    @classmethod
    def kept(cls, body: Body) -> Body:
        """Return the part of an answer that the fields of the view read, to be cached instead of the whole."""
        keys = {field.path[0] for field in vars(cls).values() if isinstance(field, Field)}
        return {key: value for key, value in body.items() if key in keys}

    def __repr__(self) -> str:
        # Answers may contain user data.
        return f"{type(self).__name__}({self.body.get('id')!r})"


V = TypeVar("V", bound=View)


class Field(Generic[T]):
    """A field of a view; created by the functions below.

    Args:
        path: its key in the answer, after the keys of the objects around it.
        typed: returns a value as the field's type, and the empty value for any other.
    """

    __slots__ = ("_key", "_more", "_typed", "path")

    def __init__(self, path: tuple[str, ...], typed: Callable[[Any], T]) -> None:
        self.path = path
        self._key, *self._more = path
        self._typed = typed

    @overload
    def __get__(self, view: None, owner: type[View]) -> Self: ...

    @overload
    def __get__(self, view: View, owner: type[View]) -> T: ...

    def __get__(self, view: View | None, owner: type[View]) -> Self | T:
        if view is None:
            return self
        value: Any = view.body.get(self._key)
        for key in self._more:
            value = value.get(key) if isinstance(value, Mapping) else None
        return self._typed(value)


def text(*path: str) -> Field[str]:
    """Return a field with a text; empty without one."""
    return Field(path, lambda value: value if isinstance(value, str) else "")


def optional_text(*path: str) -> Field[str | None]:
    """Return a field with a text; None without one, or if it is empty."""
    return Field(path, lambda value: value if isinstance(value, str) and value else None)


def flag(*path: str) -> Field[bool | None]:
    """Return a field that is true or false."""
    return Field(path, lambda value: value if isinstance(value, bool) else None)


def number(*path: str) -> Field[int | None]:
    """Return a field with a whole number."""
    return Field(path, lambda value: value if isinstance(value, int) and not isinstance(value, bool) else None)


def texts(*path: str) -> Field[tuple[str, ...]]:
    """Return a field with texts; what is no text is left out."""
    return Field(path, _texts)


def optional_texts(*path: str) -> Field[tuple[str, ...] | None]:
    """Return a field with texts; None if the answer has no list."""
    return Field(path, lambda value: _texts(value) if isinstance(value, list | tuple) else None)


def optional_mapping(*path: str) -> Field[Mapping[str, Any] | None]:
    """Return a field with an object whose keys are data."""
    return Field(path, lambda value: value if isinstance(value, Mapping) else None)


def objects(*path: str) -> Field[tuple[Body, ...]]:
    """Return a field with objects, as they were returned."""
    return Field(path, lambda value: tuple(each.body for each in _views(View, value)))


def views(of: type[V], *path: str) -> Field[tuple[V, ...]]:
    """Return a field with objects, as views."""
    return Field(path, lambda value: _views(of, value))


def optional_views(of: type[V], *path: str) -> Field[tuple[V, ...] | None]:
    """Return a field with objects, as views; None if the answer has no list."""
    return Field(path, lambda value: _views(of, value) if isinstance(value, list | tuple) else None)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def _views(of: type[V], value: Any) -> tuple[V, ...]:
    return tuple(of(each) for each in value if isinstance(each, Mapping)) if isinstance(value, list | tuple) else ()
