"""Small changes of JSON data; unchanged parts are shared and never changed in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from capo.json_types import Json

Change = Callable[[Any], Any]

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1


class ConversionError(Exception):
    """An object cannot be converted; the message names the place and the cause."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def below(self, parent: str) -> Self:
        """Return the same error with its path one level further up."""
        separator = "" if not self.path or self.path.startswith("[") else "."
        self.path = f"{parent}{separator}{self.path}"
        return self

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def mapping(value: Any, path: str = "") -> Json:
    """Return the value, which must be an object."""
    if not isinstance(value, dict):
        raise ConversionError(f"must be an object, is {_named(value)}", path)
    return value


def flag(value: Any) -> bool:
    """Return the value, which must be true or false."""
    if not isinstance(value, bool):
        raise ConversionError(f"must be true or false, is {_named(value)}")
    return value


def inverted(value: Any) -> bool:
    """Return the opposite of true or false."""
    return not flag(value)


def nested(parent: Json, key: str, change: Change) -> Json:
    """Return the object with one of its values changed; a null is left out."""
    if key not in parent:
        return parent
    if parent[key] is None:
        return {name: value for name, value in parent.items() if name != key}
    try:
        return parent | {key: change(parent[key])}
    except ConversionError as error:
        raise error.below(key) from None


def entries(change: Change) -> Change:
    """Return a change of every entry of a list."""

    def change_all(values: Any) -> list[Any]:
        if not isinstance(values, list):
            raise ConversionError(f"must be a list, is {_named(values)}")
        changed = []
        for index, value in enumerate(values):
            try:
                changed.append(change(value))
            except ConversionError as error:
                raise error.below(f"[{index}]") from None
        return changed

    return change_all


def at(path: str, change: Change) -> Change:
    """Return a change of the value at a path of an object, such as ``template.spec``."""
    first, _, rest = path.partition(".")
    inner = at(rest, change) if rest else change
    return lambda value: nested(mapping(value), first, inner)


def renamed(parent: Json, names: Mapping[str, str]) -> Json:
    """Return the object with some of its names replaced."""
    return {names.get(name, name): value for name, value in parent.items()}


def without_nulls(value: Json) -> Json:
    """Return an object without the fields that are null, at any depth: null means absence."""
    return _said(value) if _has_null(value) else value


def _has_null(value: Json) -> bool:
    """Return whether there is a null, which is rare: the API server drops them, too."""
    rest: list[Json | list[Any]] = [value]
    while rest:
        node = rest.pop()
        for child in node.values() if isinstance(node, dict) else node:
            if child is None:
                return True
            if isinstance(child, dict | list):
                rest.append(child)
    return False


def _said(value: Any) -> Any:
    match value:
        case dict():
            return {name: _said(child) for name, child in value.items() if child is not None}
        case list():
            return [_said(child) for child in value]
    return value


def narrowed(value: Any) -> Any:
    """Return the value with every number clamped to 32 bits, the range of v1beta2.

    A number out of range in a stored object would make the Go provider fail on each list of the kind.
    """
    return value if _fits(value) else _clamped(value)


def _fits(value: Any) -> bool:
    """Return whether nothing has to be changed, which is the usual case and faster than a copy."""
    rest = [value]
    while rest:
        match rest.pop():
            case dict() as children:
                rest.extend(children.values())
            case list() as children:
                rest.extend(children)
            case int() as number if not INT32_MIN <= number <= INT32_MAX:
                return False
    return True


def _clamped(value: Any) -> Any:
    match value:
        case dict():
            return {name: _clamped(child) for name, child in value.items()}
        case list():
            return [_clamped(child) for child in value]
        case bool():
            return value
        case int():
            return min(max(value, INT32_MIN), INT32_MAX)
    return value


def _named(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
