"""``status.resources``: what an object has made in the cloud, and what it was about to make.

The ledger is the memory of the create protocol (``docs/adr/0001-ownership-and-create-protocol.md``): an entry in
``pending`` is written before the create call, an entry in ``records`` after it. It holds ids only, no
state of the cloud.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """An id by role, such as ``server`` or ``port-0``."""

    kind: str
    role: str
    id: str


@dataclass(frozen=True)
class Pending:
    """A create call whose id is not known; nobody waits for its answer since ``since_s`` (seconds since 1970)."""

    kind: str
    role: str
    since_s: float


@dataclass
class Ledger:
    """The records of one object, as one pass sees and changes them."""

    records: dict[str, Record] = field(default_factory=dict)
    pending: dict[str, Pending] = field(default_factory=dict)

    @classmethod
    def read(cls, status: Mapping[str, Any] | None, *, term_s: float = 0.0) -> Ledger:
        """Return the ledger that an object's status holds; empty when there is none.

        Args:
            term_s: when this process began to act, seconds since 1970. A create that is pending since before then is
                another's, which died over it: until then at the latest somebody may have sent it.
        """
        resources = (status or {}).get("resources") or {}
        records = (Record(r["kind"], r["role"], r["id"]) for r in resources.get("records") or ())
        pending = (
            Pending(p["kind"], p["role"], max(_seconds(p["since"]), term_s)) for p in resources.get("pending") or ()
        )
        return cls({r.role: r for r in records}, {p.role: p for p in pending})

    def to_status(self) -> dict[str, list[dict[str, str]]]:
        """Return the two lists as they stand in ``status.resources``, sorted by role."""
        return {
            "pending": [
                {"kind": p.kind, "role": p.role, "since": _timestamp(p.since_s)}
                for p in sorted(self.pending.values(), key=lambda p: p.role)
            ],
            "records": [
                {"kind": r.kind, "role": r.role, "id": r.id}
                for r in sorted(self.records.values(), key=lambda r: r.role)
            ],
        }

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

    def intend(self, kind: str, role: str, now_s: float) -> None:
        """Note that a resource is about to be created."""
        self.pending[role] = Pending(kind, role, now_s)

    def record(self, kind: str, role: str, resource_id: str) -> None:
        """Note the id of a resource, and that nothing is pending for its role."""
        self.pending.pop(role, None)
        self.records[role] = Record(kind, role, resource_id)

    def drop(self, role: str) -> None:
        """Forget a role: its resource is proven gone."""
        self.records.pop(role, None)
        self.pending.pop(role, None)


def _timestamp(seconds: float) -> str:
    # Whole seconds, rounded up: an ambiguous create must never be decided early.
    moment = datetime.datetime.fromtimestamp(math.ceil(seconds), tz=datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(timestamp: str) -> float:
    return datetime.datetime.fromisoformat(timestamp).timestamp()
