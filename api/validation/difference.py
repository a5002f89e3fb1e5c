"""Where two specs differ, and the messages for the differences."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pydantic

from api.model import Model
from capo.json_types import Json

MISSING: Final = object()
"""Marks an absent value."""
LONGEST: Final = 200
"""Characters of a value that a message shows."""
MOST: Final = 50
"""Faults, and warnings, that an answer lists: more are of no use, and each costs time and memory."""
MORE_WARNINGS: Final = f"spec: there are more warnings; the first {MOST} are listed"


@dataclass(frozen=True)
class Fault:
    """One field with a value that is not allowed.

    Args:
        field: path, as ``spec.ports[0].network``.
        message: the bad value, the reason and the permitted values.
        reason: of the cause in ``metav1.Status``.
    """

    field: str
    message: str
    reason: str = "FieldValueInvalid"


@dataclass(frozen=True)
class Change:
    """One place where old and new differ; either may be missing."""

    path: str
    old: Any
    new: Any

    def fault(self, advice: str) -> Fault:
        """Return the refusal of this change.

        Args:
            advice: the permitted change.
        """
        if self.new is MISSING:
            return Fault(self.path, f"Forbidden: cannot be removed, was {shown(self.old)}; {advice}", _FORBIDDEN)
        if self.old is MISSING:
            return Fault(self.path, f"Forbidden: cannot be added, would be {shown(self.new)}; {advice}", _FORBIDDEN)
        return Fault(self.path, f"Invalid value: {shown(self.new)}: cannot change from {shown(self.old)}; {advice}")


_FORBIDDEN: Final = "FieldValueForbidden"


def faults_of(found: Iterator[Change], advice: Callable[[str], str]) -> list[Fault]:
    """Return the refusals of changes; beyond a limit only the first ones, with a note that there are more.

    Args:
        advice: returns the permitted change at a path.
    """
    faults = [change.fault(advice(change.path)) for change in itertools.islice(found, MOST)]
    if next(found, None) is not None:
        faults.append(Fault("spec", f"Forbidden: more fields cannot change; the first {MOST} are listed", _FORBIDDEN))
    return faults


def normal(model: type[Model], *specs: Any) -> tuple[Json, ...]:
    """Return specs without values that mean the same as absence: empty lists, defaults, empty text without a meaning.

    If the model cannot read one of them, stored under other rules, all are returned unchanged.
    """
    try:
        read = [model.model_validate(spec) for spec in specs]
    except pydantic.ValidationError:
        return tuple(spec if isinstance(spec, dict) else {} for spec in specs)
    return tuple(spec.model_dump(mode="json", by_alias=True, exclude_defaults=True) for spec in read)


def changes(old: Any, new: Any, path: str, *, written: tuple[Any, Any] = (MISSING, MISSING)) -> Iterator[Change]:
    """Yield each place where two values differ, as deep as both have it.

    Args:
        written: the two values as the user sees them, with defaults, which the compared ones may lack.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            below = f"{path}.{name[:LONGEST]}"
            yield from changes(old.get(name, MISSING), new.get(name, MISSING), below, written=_below(written, name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from changes(*pair, f"{path}[{index}]", written=_below(written, index))
    elif old != new:
        yield Change(path, *(seen if side is MISSING else side for side, seen in zip((old, new), written, strict=True)))


def _below(pair: tuple[Any, Any], key: str | int) -> tuple[Any, Any]:
    """Return the two values at a key; ``MISSING`` for an absent one."""

    def child(value: Any) -> Any:
        match value, key:
            case dict(), str():
                return value.get(key, MISSING)
            case list(), int():
                return value[key] if key < len(value) else MISSING
        return MISSING

    return child(pair[0]), child(pair[1])


def taken(old: Json, new: Json, *names: str) -> Json:
    """Return the old object with the new object's values of these fields, absent ones removed."""
    rest = {name: value for name, value in old.items() if name not in names}
    return rest | {name: new[name] for name in names if name in new}


def inside(obj: Any, *path: str) -> Any:
    """Return the value at a path, ``{}`` if there is none."""
    return functools.reduce(lambda value, name: value.get(name) or {} if isinstance(value, dict) else {}, path, obj)


def shown(value: Any) -> str:
    """Return a value for a message, cut to ``LONGEST`` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
