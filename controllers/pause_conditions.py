"""The ``Paused`` condition, the same for all kinds (C-38 to C-41)."""

from __future__ import annotations

from typing import Final

from capo.contract import rules
from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.context import Skip
from capo.json_types import Object

PAUSED: Final = "Paused"
NOT_PAUSED: Final = Condition(PAUSED, "False", "NotPaused")


def stop(obj: Object, cluster: Object | None) -> Skip | None:
    """Return the gate that shows why the object is paused; None when it is not."""
    cause = rules.pause_cause(obj, cluster)
    return Skip([Condition(PAUSED, "True", "Paused", cause)]) if cause else None


def ownerless(obj: Object) -> Skip:
    """Return the gate of an object without owners: clear a stale Paused condition, report nothing else."""
    shown = (obj.get("status") or {}).get("conditions") or ()
    is_over = conditions.is_true(shown, PAUSED) and rules.pause_cause(obj, None) is None
    return Skip([NOT_PAUSED] if is_over else [])
