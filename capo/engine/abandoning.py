"""Abandons the cloud resources of an object whose deletion cannot finish, at an admin's request; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo import names
from capo.ledger import Ledger

STUCK_S: Final = 900.0
"""Seconds after which the Events of a failing deletion name the abandon annotation."""
MAX_NAMED: Final = 10


def is_asked_for(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is being deleted and its abandon annotation holds its own owner id.

    The value binds the annotation to one object: on a copy of the object, or in a template, it has no effect.
    """
    owner, asked_for = _owner_id(obj), (obj["metadata"].get("annotations") or {}).get(names.ABANDON_ANNOTATION)
    return bool(owner and asked_for == owner and obj["metadata"].get("deletionTimestamp"))


def farewell(obj: Mapping[str, Any]) -> str:
    """Return the message of the last Event of an object whose finalizer is removed."""
    return f"removed the finalizer as {names.ABANDON_ANNOTATION} asks for; not deleted: {_left(obj)}"


def way_out(obj: Mapping[str, Any], *, waited_s: float) -> str | None:
    """Return how to end a deletion that fails; None if it has not failed for long or the object has no owner id.

    Args:
        waited_s: since this process first saw the deletion timestamp.
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
    """Return the owner id without its checksum; empty if there is none."""
    annotated: str = (obj["metadata"].get("annotations") or {}).get(names.OWNER_ID_ANNOTATION) or ""
    return annotated.partition(".")[0]


def _left(obj: Mapping[str, Any]) -> str:
    ledger = Ledger.read(obj.get("status"))
    known = [f"{r.kind} {r.id}" for r in sorted(ledger.records.values(), key=lambda r: r.role)]
    known += [f"{p.kind} whose creation was not answered" for p in ledger.pending.values()]
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    return f"{', '.join(known[:MAX_NAMED])}{more}" if known else "nothing that is recorded"
