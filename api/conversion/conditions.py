"""Conditions: Cluster API v1beta1 had a severity and no generation, and needed neither reason nor message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from api.conversion.json_ops import Change, mapping
from api.v1beta2.conditions import Reason
from capo.json_types import Json

FILLED_IN: Final = {"True": Reason.READY.value}
"""Reason, by status, for a condition without one, which v1beta2 does not allow."""


def to_newer(generation: int) -> Change:
    """Return the conversion of one condition to v1beta2.

    Args:
        generation: of the object, 0 if it is unknown.
    """
    observed = {"observedGeneration": generation} if generation else {}

    def change(value: Any) -> Json:
        condition = {name: part for name, part in mapping(value).items() if name != "severity"}
        return condition | {"reason": _reason(condition), "message": condition.get("message") or ""} | observed

    return change


def to_older(value: Any) -> Json:
    """Return one condition in v1beta1."""
    condition = {name: part for name, part in mapping(value).items() if name != "observedGeneration"}
    condition["reason"] = _reason(condition)
    if not condition.get("message"):
        condition.pop("message", None)
    return condition


def _reason(condition: Json) -> str:
    reason = condition.get("reason")
    return str(reason) if reason else FILLED_IN.get(str(condition.get("status")), Reason.NO_REASON_REPORTED.value)


def kept(fresh: list[Json], before: list[Any], normal: Callable[[Any], Json]) -> list[Json]:
    """Return the conditions, each replaced by its stored version if that has the same values.

    Args:
        normal: converts a condition to the other version and back.
    """
    by_type = {condition.get("type"): condition for condition in before if isinstance(condition, dict)}

    def choose(condition: Json) -> Json:
        old = by_type.get(condition.get("type"))
        return old if old is not None and normal(old) == condition else condition

    return [choose(condition) for condition in fresh]


def keep_newer(fresh: Json, before: Json, generation: int) -> Json:
    """Return a status of v1beta2 in which unchanged conditions keep their stored generation."""
    change = to_newer(generation)
    return _kept_in(fresh, before, lambda condition: change(to_older(condition)))


def keep_older(fresh: Json, before: Json, generation: int) -> Json:
    """Return a status of v1beta1 in which unchanged conditions keep their stored severity."""
    change = to_newer(generation)
    return _kept_in(fresh, before, lambda condition: to_older(change(condition)))


def _kept_in(fresh: Json, before: Json, normal: Callable[[Any], Json]) -> Json:
    now, then = fresh.get("conditions"), before.get("conditions")
    if not isinstance(now, list) or not isinstance(then, list):
        return fresh
    return fresh | {"conditions": kept(now, then, normal)}


def is_ready(status: Json) -> bool:
    """Return whether the condition ``Ready`` is True, which v1beta1 has as a field of its own."""
    return any(
        isinstance(condition, dict) and condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
