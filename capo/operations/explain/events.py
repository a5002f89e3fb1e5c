"""What happened to the objects of a story: their Events, the newest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from capo.json_types import Json, Object
from capo.kube.event_objects import CORE_EVENT
from capo.operations.access import Management
from capo.operations.explain.related import Part

MAX_EVENTS: Final = 20


@dataclass(frozen=True)
class Happening:
    """An Event, or a series of equal ones.

    Args:
        at: when it happened last, RFC 3339.
        uid: of the object.
    """

    at: str
    type: str
    reason: str
    message: str
    count: int
    object: str
    uid: str


def read(management: Management, parts: Iterable[Part]) -> list[Happening]:
    """Return the Events of these objects, the newest first.

    Raises:
        OperatorError: the user may not list them.
    """
    existing = [each for each in parts if each.obj]
    found = [each for part in existing for each in _of(management, part)]
    # The API server lists Events of one second in their order.
    return sorted(reversed(found), key=lambda each: each.at, reverse=True)[:MAX_EVENTS]


def _of(management: Management, part: Part) -> list[Happening]:
    uid = str(part.metadata["uid"])
    # Events of an object are in several versions of its kind, but of one uid.
    events = management.list(CORE_EVENT, part.namespace, field_selector=f"involvedObject.uid={uid}")
    return [_happening(each, str(part)) for each in events if (each.get("involvedObject") or {}).get("uid") == uid]


def _happening(event: Json, about: str) -> Happening:
    series: Object = event.get("series") or {}
    # The times that are set depend on the group through which an Event was written.
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    at = next(filter(None, times), event["metadata"].get("creationTimestamp")) or ""
    return Happening(
        at=f"{at[:19]}Z" if at else "",
        type=event.get("type") or "",
        reason=event.get("reason") or "",
        message=event.get("message") or "",
        count=int(series.get("count") or event.get("count") or 1),
        object=about,
        uid=event["involvedObject"]["uid"],
    )
