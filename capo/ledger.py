"""``status.resources``: what an object has made in the cloud, and what it was about to make.

The ledger is the memory of the create protocol (``docs/adr/0001-ownership-and-create-protocol.md``): an entry in
``pending`` is written before the create call, an entry in ``records`` after it. It holds ids only, no
state of the cloud.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

NOTED_S: Final = 10
"""How much longer a create must have been waited for before that is worth a write."""
_ROUNDING_S: Final = 0.05
"""So much later whole seconds are over for certain."""


@dataclass(frozen=True)
class Record:
    """An id by role, such as ``server`` or ``port-0``."""

    kind: str
    role: str
    id: str


@dataclass(frozen=True)
class Pending:
    """A create call whose id is not known.

    Args:
        since: when it was begun, or its answer was lost, as RFC 3339: for people. It is a date of the clock that some
            process had, so no time is worked out from it.
        waited_s: what the status says of how long no process was sending it. Each process adds its own time to it.
        since_s: nobody sends it since then, in the steady seconds of this process, with ``waited_s`` counted in.
    """

    kind: str
    role: str
    since: str
    waited_s: int = 0
    since_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Location:
    """Where resources are. Source: ADR 0005.

    Args:
        auth_host: host of the Identity service, with the port unless it is the scheme's own.
        region: whose end points are used; empty when the catalogue names none, several joined by commas when the
            credentials name none and the services are in different ones.
    """

    auth_host: str
    project_id: str
    region: str

    def __str__(self) -> str:
        """Return the location as the annotation names it that accepts a move."""
        return f"{self.auth_host}/{self.project_id}/{self.region}"

    def to_status(self) -> dict[str, str]:
        """Return the location as it stands in ``status.resources``."""
        return {"authHost": self.auth_host, "projectID": self.project_id, "region": self.region}


@dataclass
class Ledger:
    """The records of one object, as one pass sees and changes them.

    Attributes:
        location: where everything in ``records`` and ``pending`` is; None while that is not proven. It outlasts the
            last of them, and then says nothing.
    """

    records: dict[str, Record] = field(default_factory=dict)
    pending: dict[str, Pending] = field(default_factory=dict)
    location: Location | None = None

    @classmethod
    def read(
        cls,
        status: Mapping[str, Any] | None,
        *,
        now_s: float = 0.0,
        window_s: float = math.inf,
        known: Mapping[str, Pending] = MappingProxyType({}),
    ) -> Ledger:
        """Return the ledger that an object's status holds; empty when there is none.

        Args:
            now_s: steady seconds. A pending create that is not known was another process's, which died over it: until
                now at the latest it may have sent it, unless that was waited for already.
            window_s: no more counts as waited than this, so that a list of this process has to come after it.
            known: what was pending at the end of this process's last pass over the object, by role.
        """
        resources = (status or {}).get("resources") or {}
        records = (Record(r["kind"], r["role"], r["id"]) for r in resources.get("records") or ())
        saved = (
            Pending(p["kind"], p["role"], p["since"], max(0, p.get("waitedSeconds") or 0))
            for p in resources.get("pending") or ()
        )
        pending = (_counted(each, known.get(each.role), now_s - min(each.waited_s, window_s)) for each in saved)
        return cls({r.role: r for r in records}, {p.role: p for p in pending}, _location(resources))

    @property
    def has_entries(self) -> bool:
        """Whether anything is recorded or pending."""
        return bool(self.records or self.pending)

    def to_status(self) -> dict[str, Any]:
        """Return the two lists as they stand in ``status.resources``, sorted by role, and where all of it is."""
        entries = {
            "pending": [_shown(p) for p in sorted(self.pending.values(), key=lambda p: p.role)],
            "records": [
                {"kind": r.kind, "role": r.role, "id": r.id}
                for r in sorted(self.records.values(), key=lambda r: r.role)
            ],
        }
        return entries | ({"location": self.location.to_status()} if self.location and self.has_entries else {})

    def id_of(self, role: str) -> str | None:
        """Return the recorded id of a role, None when there is none."""
        record = self.records.get(role)
        return record.id if record else None

    def knows(self, role: str) -> bool:
        """Return whether a role is recorded, or its create call is pending."""
        return role in self.records or role in self.pending

    def of_kind(self, kind: str) -> list[Record]:
        """Return the records of one kind, by role."""
        return sorted((r for r in self.records.values() if r.kind == kind), key=lambda r: r.role)

    def intend(self, kind: str, role: str, now_s: float, wall_s: float | None = None) -> None:
        """Note that a resource is about to be created, or that the answer was lost: nothing was waited for yet.

        Args:
            now_s: steady seconds.
            wall_s: seconds since 1970, for the date that people read; None when they are the same.
        """
        self.pending[role] = Pending(kind, role, _timestamp(now_s if wall_s is None else wall_s), since_s=now_s)

    def note_waiting(self, now_s: float, *, window_s: float) -> bool:
        """Note how long each pending create was waited for where that is worth a write; tell whether any is.

        So the next process goes on from there: one that is restarted over and over gets past the window, too.
        """
        longer = {
            role: replace(pending, waited_s=waited_s)
            for role, pending in self.pending.items()
            if (waited_s := int(min(now_s - pending.since_s, window_s))) >= pending.waited_s + NOTED_S
        }
        self.pending.update(longer)
        return bool(longer)

    def waiting_due_s(self, now_s: float, *, window_s: float) -> float | None:
        """Return in how many seconds :meth:`note_waiting` has something to note; None when nothing is waited for."""
        due = (
            pending.since_s + pending.waited_s + NOTED_S - now_s
            for pending in self.pending.values()
            if pending.waited_s + NOTED_S < window_s
        )
        return min((max(0.0, due_s) + _ROUNDING_S for due_s in due), default=None)

    def record(self, kind: str, role: str, resource_id: str) -> None:
        """Note the id of a resource, and that nothing is pending for its role."""
        self.pending.pop(role, None)
        self.records[role] = Record(kind, role, resource_id)

    def drop(self, role: str) -> None:
        """Forget a role: its resource is proven gone."""
        self.records.pop(role, None)
        self.pending.pop(role, None)


def _location(resources: Mapping[str, Any]) -> Location | None:
    known = resources.get("location")
    return Location(known["authHost"], known["projectID"], known.get("region") or "") if known else None


def _timestamp(seconds: float) -> str:
    # Whole seconds, rounded up: an ambiguous create must never be decided early.
    moment = datetime.datetime.fromtimestamp(math.ceil(seconds), tz=datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(pending: Pending) -> dict[str, Any]:
    shown = {"kind": pending.kind, "role": pending.role, "since": pending.since}
    return {**shown, "waitedSeconds": pending.waited_s} if pending.waited_s else shown


def _counted(saved: Pending, known: Pending | None, since_s: float) -> Pending:
    """Return what a status says is pending with the time since when this process knows that nobody sends it.

    Args:
        known: what this process knows of the role.
        since_s: what counts for a create that it does not know.
    """
    if known is None:
        return replace(saved, since_s=since_s)
    # Another create than the one it knows, which may be its own: what it sent itself was never waited for by others.
    is_same = known.since == saved.since
    return replace(saved, since_s=known.since_s if is_same else max(since_s, known.since_s))
