"""``status.resources``: what an object has created in the cloud, and what it was about to create.

The ledger persists the create protocol (``docs/adr/0001-ownership-and-create-protocol.md``): an entry in ``pending`` is
written before the create call, an entry in ``records`` after it. It holds ids only, no state of the cloud.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from capo import parts

NOTED_S: Final = 10
"""Minimum growth of ``waited_s`` that is worth a write."""
_ROUNDING_S: Final = 0.05
"""After so much longer whole seconds are over for certain."""


@dataclass(frozen=True)
class Record:
    """An id by role, such as ``server`` or ``port-0``."""

    kind: str
    role: str
    id: str


@dataclass(frozen=True)
class Pending:
    """A create call whose id is unknown.

    Args:
        since: when it was sent, or its answer was lost, as RFC 3339: for users. It is a date of the clock that some
            process had, so no time is computed from it.
        waited_s: recorded seconds during which no process was sending it. Each process adds its own time to it.
        since_s: no process sends it since then, in the steady seconds of this process, with ``waited_s`` counted in.
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
        auth_host: host of the Identity service, with the port unless it is the scheme's default.
        region: whose endpoints are used; empty if the catalogue names none, several joined by commas if the credentials
            name none and the services are in different ones.
    """

    auth_host: str
    project_id: str
    region: str

    def __str__(self) -> str:
        """Return the location as the annotation that accepts a move spells it."""
        return f"{self.auth_host}/{self.project_id}/{self.region}"

    def to_status(self) -> dict[str, str]:
        """Return the location as stored in ``status.resources``."""
        return {"authHost": self.auth_host, "projectID": self.project_id, "region": self.region}


@dataclass
class Ledger:
    """The records of one object, as one reconcile reads and changes them.

    Attributes:
        ahead: intents that are stored with earlier ones, and whose create this reconcile has not sent: it may begin to,
            or drop them. To any other process they are pending.
        location: where everything in ``records`` and ``pending`` is; None if that is not proven. It is kept after the
            last of them was removed, and has no meaning then.
    """

    records: dict[str, Record] = field(default_factory=dict)
    pending: dict[str, Pending] = field(default_factory=dict)
    location: Location | None = None
    ahead: dict[str, Pending] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        status: Mapping[str, Any] | None,
        *,
        now_s: float = 0.0,
        window_s: float = math.inf,
        known: Mapping[str, Pending] = MappingProxyType({}),
    ) -> Ledger:
        """Return the ledger of an object's status; empty if there is none.

        Args:
            now_s: steady seconds. A pending create that this process does not know was sent by another process, which
                died before the answer: it may have been sent as late as now, less the wait that is recorded.
            window_s: upper bound of the recorded wait that counts, so that a list of this process has to come after it.
            known: what was pending at the end of this process's last reconcile of the object, by role.
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
        return bool(self.records or self.pending or self.ahead)

    def to_status(self) -> dict[str, Any]:
        """Return the two lists as stored in ``status.resources``, sorted by role, and the location of all entries."""
        intents = {**self.ahead, **self.pending}
        entries = {
            "pending": [_shown(p) for p in sorted(intents.values(), key=lambda p: p.role)],
            "records": [
                {"kind": r.kind, "role": r.role, "id": r.id}
                for r in sorted(self.records.values(), key=lambda r: r.role)
            ],
        }
        return entries | ({"location": self.location.to_status()} if self.location and self.has_entries else {})

    def id_of(self, role: str) -> str | None:
        """Return the recorded id of a role, None if there is none."""
        record = self.records.get(role)
        return record.id if record else None

    def knows(self, role: str) -> bool:
        """Return whether a role is recorded, or its create call is pending."""
        return role in self.records or role in self.pending

    def records_of_kind(self, kind: str) -> list[Record]:
        """Return the records of one kind, by role."""
        return sorted((r for r in self.records.values() if r.kind == kind), key=lambda r: r.role)

    def intend(self, kind: str, role: str, now_s: float, wall_s: float | None = None) -> None:
        """Record that a resource is about to be created, or that the answer was lost: the wait starts at zero.

        Args:
            now_s: steady seconds.
            wall_s: seconds since 1970, for the date that users read; None if they are the same.
        """
        self.ahead.pop(role, None)
        self.pending[role] = _intent(kind, role, now_s, wall_s)

    def intend_ahead(self, kind: str, role: str, now_s: float, wall_s: float | None = None) -> None:
        """Record that a resource is created soon in this reconcile, unless its role is known."""
        if not self.knows(role):
            self.ahead[role] = _intent(kind, role, now_s, wall_s)

    def begin(self, roles: Iterable[str]) -> None:
        """Record that creates whose intents were stored ahead are sent now."""
        self.pending |= {role: self.ahead.pop(role) for role in roles}

    def note_waiting(self, now_s: float, *, window_s: float) -> bool:
        """Update the recorded wait of each pending create where that is worth a write; return whether any is.

        The next process continues from there, so that even one that restarts repeatedly gets past the window.
        """
        longer = {
            role: replace(pending, waited_s=waited_s)
            for role, pending in self.pending.items()
            if (waited_s := int(min(now_s - pending.since_s, window_s))) >= pending.waited_s + NOTED_S
        }
        self.pending.update(longer)
        return bool(longer)

    def waiting_due_s(self, now_s: float, *, window_s: float) -> float | None:
        """Return the seconds until :meth:`note_waiting` has an update; None if nothing is waited for."""
        due = (
            pending.since_s + pending.waited_s + NOTED_S - now_s
            for pending in self.pending.values()
            if pending.waited_s + NOTED_S < window_s
        )
        return min((max(0.0, due_s) + _ROUNDING_S for due_s in due), default=None)

    def record(self, kind: str, role: str, resource_id: str) -> None:
        """Record the id of a resource, and remove the role's pending create."""
        self.pending.pop(role, None)
        self.records[role] = Record(kind, role, resource_id)

    def drop(self, role: str) -> None:
        """Remove a role: its resource is proven absent. Its parts are, too, unless another one of its kind has them."""
        known = self.records.get(role)
        self.remove(role)
        if known and not self.records_of_kind(known.kind):
            self.drop_parts(known.kind)

    def drop_parts(self, kind: str) -> None:
        """Remove all parts of a kind of which no resource exists: an unanswered create of one took no effect either."""
        gone = set(parts.of(kind))
        entries: list[Record | Pending] = [*self.records.values(), *self.pending.values()]
        for each in entries:
            if each.kind in gone:
                self.remove(each.role)

    def remove(self, role: str) -> None:
        """Remove a role, which proves nothing about its resource and its parts."""
        self.records.pop(role, None)
        self.pending.pop(role, None)


def location_of(status: Mapping[str, Any] | None) -> Location | None:
    """Return the location in an object's status, None if it shows none; the records are not read."""
    return _location((status or {}).get("resources") or {})


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


def _intent(kind: str, role: str, now_s: float, wall_s: float | None) -> Pending:
    return Pending(kind, role, _timestamp(now_s if wall_s is None else wall_s), since_s=now_s)


def _counted(saved: Pending, known: Pending | None, since_s: float) -> Pending:
    """Return a pending create of a status with the time since when no process sends it, as far as this process knows.

    Args:
        known: what this process knows of the role.
        since_s: used for a create that this process does not know.
    """
    if known is None:
        return replace(saved, since_s=since_s)
    # A different create than the known one may be this process's own: the recorded wait does not cover what it sent.
    is_same = known.since == saved.since
    return replace(saved, since_s=known.since_s if is_same else max(since_s, known.since_s))
