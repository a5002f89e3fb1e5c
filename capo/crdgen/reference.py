"""Generates pages of ``docs/reference`` from the source; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from api import documented
from api.v1beta2.conditions import ConditionType, Reason

_INTRO: Final = """\
<!-- Generated from api/v1beta2/conditions.py by `capo crds --write`; do not edit. -->
# Conditions

`kubectl describe` and `clusterctl describe cluster --show-conditions all` show them. Those that the Go provider has
too keep its meaning; those marked *ours* are added. The next step of a reason that is the name of an
[error](errors.md) is that of the error. [`capo explain`](cli.md#capo-explain) finds the reason that matters, and prints
its meaning and next step.

An OpenStackMachine that is created or deleted shows the waits that are expected after 30 s, because each costs a write,
and most are over before; failures and what a user has to do are shown at once.
"""
_TYPES: Final = ("Type", "Meaning")
_REASONS: Final = ("Reason", "Meaning and next step")
_OURS: Final = "Ours: "


def conditions_page() -> str:
    """Return the page of all condition types and reasons."""
    types = [(f"`{ConditionType[name]}`", _marked(text)) for name, text in documented.meanings(ConditionType).items()]
    reasons = [(f"`{Reason[name]}`", _marked(text)) for name, text in documented.meanings(Reason).items()]
    return "\n".join((_INTRO, *_table("Types", _TYPES, types), "", *_table("Reasons", _REASONS, reasons), ""))


def _table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = (columns, tuple("---" for _ in columns), *rows)
    return [f"## {title}", "", *(f"| {' | '.join(line)} |" for line in lines)]


def _marked(meaning: str) -> str:
    head, separator, rest = meaning.partition(_OURS)
    return f"*Ours*: {rest}" if separator and not head else meaning
