"""Columns of ``kubectl get`` that several kinds have.

A kind begins with the columns of the Go provider, in their order, so that scripts which read columns by position go on
to work; ours follow. An API server prints the first value that a path finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from api.schema import Column

AGE: Final = Column("Age", ".metadata.creationTimestamp", "Time since creation", type="date")
ADDRESS: Final = Column(
    "Address", '.status.addresses[?(@.type=="InternalIP")].address', "First internal address of the server", priority=1
)
_STATE: Final = "State"
_FLAVOR: Final = ".flavor..['id','name']"
_FLAVOR_AS_TEXT: Final = "['flavorID','flavor']"


def flavor(spec: str = ".spec", *, name: str = "Flavor", priority: int = 1) -> Column:
    """Return a column with the flavor of a machine's spec at a path, by id or name."""
    return Column(name, f"{spec}{_FLAVOR}", "Flavor, by id or name", priority=priority)


def image(spec: str = ".spec", *, name: str = "Image", priority: int = 1) -> Column:
    """Return a column with the image of a machine's spec at a path, by id or name."""
    return Column(name, f"{spec}.image..['id','name']", "Image, by id or name", priority=priority)


def state(condition: str = "Ready") -> Column:
    """Return a column with the reason of a condition: ``Ready``, or why it is not."""
    return Column(_STATE, _of(condition, "reason"), f"Reason of the condition {condition}: Ready, or why it is not")


def changed(condition: str = "Ready") -> Column:
    """Return a wide column with the time since a condition changed."""
    text = f"Time since the condition {condition} changed"
    return Column("Changed", _of(condition, "lastTransitionTime"), text, type="date", priority=1)


def with_flavor_as_text(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns for a version in which a spec has ``flavor`` or ``flavorID``, both texts."""
    return tuple(replace(each, json_path=each.json_path.replace(_FLAVOR, _FLAVOR_AS_TEXT)) for each in columns)


def beside_ready(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns for a version that has the column ``Ready``: the state is a wide one."""
    return tuple(replace(each, priority=1) if each.name == _STATE else each for each in columns)


def _of(condition: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{condition}")].{field}'
