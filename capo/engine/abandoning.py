"""The way out of a deletion that can never be proven: an admin gives up what an object has in the cloud; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo import names
from capo.ledger import Ledger

STUCK_S: Final = 900.0
"""How long after a deletion was asked for the way out is named, if it fails."""
MAX_NAMED: Final = 10


def is_asked_for(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is being deleted, and its annotation names its own owner id.

    The value binds it to one object: one that is copied, or left in a template, has no effect on another.
    """
    owner, asked_for = _owner_id(obj), (obj["metadata"].get("annotations") or {}).get(names.ABANDON_ANNOTATION)
    return bool(owner and asked_for == owner and obj["metadata"].get("deletionTimestamp"))


def farewell(obj: Mapping[str, Any]) -> str:
    """Return what the last Event says of an object whose finalizer goes."""
    return f"removed the finalizer as {names.ABANDON_ANNOTATION} asks for; not deleted: {_left(obj)}"


def way_out(obj: Mapping[str, Any], *, waited_s: float) -> str | None:
    """Return how a deletion that fails can be ended; None for one that has not failed for long, or has no owner id.

    Args:
        waited_s: since this process first saw that the deletion was asked for.
    """
    asked, owner = obj["metadata"].get("deletionTimestamp"), _owner_id(obj)
    if not asked or not owner or waited_s < STUCK_S:
        return None
    annotation = f"{names.ABANDON_ANNOTATION}={owner}"
    return (
        "deletion keeps failing and is retried; if the cloud will never answer again, annotate the object with"
        f" {annotation} to remove the finalizer; that leaves behind: {_left(obj)}"
    )


def _owner_id(obj: Mapping[str, Any]) -> str:
    """Return the owner id without what checks it; empty when there is none."""
    annotated: str = (obj["metadata"].get("annotations") or {}).get(names.OWNER_ID_ANNOTATION) or ""
    return annotated.partition(".")[0]


def _left(obj: Mapping[str, Any]) -> str:
    ledger = Ledger.read(obj.get("status"))
    known = [f"{r.kind} {r.id}" for r in sorted(ledger.records.values(), key=lambda r: r.role)]
    known += [f"{p.kind} whose creation was not answered" for p in ledger.pending.values()]
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    return f"{', '.join(known[:MAX_NAMED])}{more}" if known else "nothing that is recorded"
