"""Maps results of steps to conditions, in the shape of ``metav1.Condition``; pure.

Source: docs/reference/contract.md, C-30 to C-37; the order and the handling of ``lastTransitionTime`` are those of the
Go provider (docs/explanation/go-provider.md, G-3).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from capo.engine.steps import Blocked, Done, Failed, NotNeeded, NotObserved, Plan, Result, Results, Wait
from capo.errors import BlockedError, CapoError
from capo.redaction import redact

S = TypeVar("S")

READY: Final = "Ready"
MAX_MESSAGE: Final = 32768
_REQUEST = re.compile(r"req-[0-9a-f-]{36}")
_FIRST: Final = ("Available", "Ready")
_LAST: Final = ("Paused", "Deleting")


@dataclass(frozen=True)
class Condition:
    """The value of one condition, without generation and transition time."""

    type: str
    status: str
    reason: str
    message: str = ""


def from_results(plan: Plan[S], results: Results) -> list[Condition]:
    """Return the conditions of a forward walk's results; steps that were Held or Unseen change none."""
    shown = (_of_step(step.condition, step.failure_reason, results[step.condition]) for step in plan.steps)
    return [condition for condition in shown if condition]


def from_removal(plan: Plan[S], results: Results) -> list[Condition]:
    """Return the conditions of steps that are still being removed; a completed removal sets none to True."""
    left = {step for step, result in results.items() if isinstance(result, Wait | Failed)}
    return [condition for condition in from_results(plan, results) if condition.type in left]


def _of_step(type_: str, failure_reason: str | None, result: Result) -> Condition | None:
    match result:
        case Done():
            return Condition(type_, "True", "Ready", result.message)
        case Wait():
            return Condition(type_, result.status, result.reason, result.message)
        case Failed():
            return Condition(type_, "False", _reason(failure_reason, result.error), result.error.sentence)
        case Blocked() | NotObserved() | NotNeeded():
            return None


def _reason(failure_reason: str | None, error: CapoError) -> str:
    """Return the Go provider's reason, which is that of a failed create, unless a deletion is blocked."""
    return error.reason if isinstance(error, BlockedError) else failure_reason or error.reason


def summary(plan: Plan[S], results: Results) -> Condition | None:
    """Return ``Ready`` from all vital steps: the first failure, else the first wait; None if it is unknown."""
    vital = [(s, results[s.condition]) for s in plan.steps if s.is_vital]
    for step, result in vital:
        if isinstance(result, Failed):
            return Condition(READY, "False", "OpenStackError", f"{step.condition}: {result.error.sentence}")
    for step, result in vital:
        if isinstance(result, Wait):
            return Condition(READY, result.status, result.reason, f"{step.condition}: {result.message}")
    if any(isinstance(result, NotObserved | Blocked) for _, result in vital):
        return None
    return Condition(READY, "True", "Ready")


def merged(
    existing: Iterable[Mapping[str, Any]],
    wanted: Iterable[Condition],
    *,
    dropped: Iterable[str],
    now_s: float,
    generation: int,
) -> list[dict[str, Any]]:
    """Return the list to store: wanted conditions over existing ones; unchanged ones keep their generation and time.

    If several have one type, the last is used: a controller's report overrides the conditions of its steps. A message
    that differs in its request id alone counts as unchanged, so that a persistent fault costs no write.

    Args:
        dropped: condition types that no longer apply.
        now_s: seconds since 1970.
    """
    by_type = {c["type"]: dict(c) for c in existing if c["type"] not in set(dropped)}
    for condition in {each.type: each for each in wanted}.values():
        by_type[condition.type] = _stored(by_type.get(condition.type), condition, now_s, generation)
    return sorted(by_type.values(), key=_rank)


def _stored(old: Mapping[str, Any] | None, new: Condition, now_s: float, generation: int) -> dict[str, Any]:
    stored: dict[str, Any] = {
        "type": new.type,
        "status": new.status,
        "reason": new.reason,
        "message": redact(new.message)[:MAX_MESSAGE],
        "observedGeneration": generation,
        "lastTransitionTime": timestamp(now_s),
    }
    if old and old.get("status") == new.status:
        stored["lastTransitionTime"] = old.get("lastTransitionTime") or stored["lastTransitionTime"]
        if old.get("reason") == new.reason and _sameness(old.get("message", "")) == _sameness(stored["message"]):
            stored["message"] = old.get("message", "")
    return stored


def _sameness(message: str) -> str:
    return _REQUEST.sub("req-", message)


def _rank(condition: Mapping[str, Any]) -> tuple[int, int, str]:
    name = condition["type"]
    if name in _FIRST:
        return (0, _FIRST.index(name), name)
    return (2, _LAST.index(name), name) if name in _LAST else (1, 0, name)


def timestamp(seconds: float) -> str:
    """Return a ``metav1.Time`` in whole seconds."""
    return datetime.datetime.fromtimestamp(int(seconds), tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(timestamp_: str) -> float:
    """Return seconds since 1970 of a ``metav1.Time``; 0 if it is none."""
    try:
        return datetime.datetime.fromisoformat(timestamp_).timestamp()
    except ValueError:
        return 0.0


def find(conditions: Iterable[Mapping[str, Any]], type_: str) -> Mapping[str, Any] | None:
    """Return the condition of a type, None if there is none."""
    return next((c for c in conditions if c.get("type") == type_), None)


def is_true(conditions: Iterable[Mapping[str, Any]], type_: str) -> bool:
    """Return whether a condition exists and is True."""
    found = find(conditions, type_)
    return found is not None and found.get("status") == "True"
