"""A plan as text: a line for each write, then where it stops, then the numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from capo.operations.console import Cell, Console
from capo.operations.errors import ExitStatus
from capo.operations.plan import changes
from capo.operations.plan.changes import Change
from capo.operations.plan.planning import Outcome

NO_CHANGE: Final = "no change: the cloud and the management cluster are as the objects ask for"
_STYLES: Final = {changes.CREATE: "good", changes.UPDATE: "warning", changes.DELETE: "bad"}
_COLUMNS: Final = ("ACTION", "KIND", "NAME", "OBJECT", "STEP", "CAUSE")
_WIDE: Final = (*_COLUMNS, "SYSTEM", "REQUEST")
MAX_VALUE: Final = 60


def show(console: Console, outcome: Outcome) -> ExitStatus:
    """Print a plan and return the exit status of the command."""
    for text in outcome.unknown:
        console.warn(f"not known: {text}")
    if console.wants_data:
        console.data(outcome.to_json())
        return status_of(outcome)
    if outcome.changes:
        rows = [_row(each, outcome.assigned, is_wide=console.is_wide) for each in outcome.changes]
        console.table(_WIDE if console.is_wide else _COLUMNS, rows)
        console.line()
    for stop in outcome.stops:
        words = changes.with_words(stop.message, outcome.assigned)
        console.line(f"not ready at the end of the plan: {stop.object}: {stop.reason}: {words}", "warning")
    console.line(_summary(outcome))
    return status_of(outcome)


def status_of(outcome: Outcome) -> ExitStatus:
    """Return the exit status: incomplete if changes are missing or an object is not ready at the end, else if any."""
    if outcome.stops or not outcome.is_whole:
        return ExitStatus.INCOMPLETE
    return ExitStatus.FOUND if outcome.changes else ExitStatus.DONE


def _summary(outcome: Outcome) -> str:
    if not outcome.changes:
        is_all = not outcome.stops and outcome.is_whole
        return NO_CHANGE if is_all else "no change that the controllers can make"
    counts = outcome.counts()
    return f"plan: {counts['create']} to create, {counts['update']} to update, {counts['delete']} to delete"


def _row(change: Change, assigned: Mapping[str, str], *, is_wide: bool) -> list[str | Cell]:
    name = changes.with_words(change.name or change.id, assigned)
    row: list[str | Cell] = [
        Cell(change.action, _STYLES[change.action]),
        change.kind,
        name,
        change.actor,
        change.step,
        cause(change, assigned),
    ]
    request = changes.with_words(f"{change.method} {change.path}", assigned)
    return [*row, change.system, request] if is_wide else row


def cause(change: Change, assigned: Mapping[str, str]) -> str:
    """Return why a write is sent: in words, and for an update the fields with their values before and after."""
    edits = _edits(change, assigned) if change.action == changes.UPDATE else ""
    return "; ".join(each for each in (change.cause, edits) if each)


def _edits(change: Change, assigned: Mapping[str, str]) -> str:
    shown = []
    for name, (before, after) in change.fields.items():
        old, new = (_text(changes.with_words(each, assigned)) for each in (before, after))
        shown.append(f"{name}: {old} -> {new}" if before is not None else f"{name}: {new}")
    return ", ".join(shown)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."
