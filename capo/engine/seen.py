"""What this process saw of each object, and when by its own steady clock: dates in a status are of other clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from capo.json_types import Object
from capo.kube.kinds import Key
from capo.ledger import Ledger, Pending


@dataclass(slots=True)
class _Sight:
    uid: str
    pending: Mapping[str, Pending] = field(default_factory=dict)
    deletion_s: float | None = None
    is_history_lost: bool = False
    was_born_here: bool = False


@dataclass
class Seen:
    """Observations of the objects of one kind; reconciles of one object never overlap."""

    _sights: dict[Key, _Sight] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sights)

    def ledger(self, key: Key, obj: Object, *, now_s: float, window_s: float) -> Ledger:
        """Return the ledger of an object's status; a pending create that is new to this process counts from now."""
        sight = self._of(key, obj)
        ledger = Ledger.read(obj.get("status"), now_s=now_s, window_s=window_s, known=sight.pending)
        self.keep(key, obj, ledger)
        return ledger

    def keep(self, key: Key, obj: Object, ledger: Ledger) -> None:
        """Remember the pending creates of a reconcile for the next one.

        A decided one may still be in the status: a deletion does not write that alone. Its time is kept, too, or the
        next reconcile would take it for the create of another process, and wait for it again.
        """
        sight = self._of(key, obj)
        stored = Ledger.read(obj.get("status")).pending
        decided = {
            role: pending
            for role, pending in sight.pending.items()
            if role in stored and stored[role].since == pending.since and not ledger.knows(role)
        }
        sight.pending = {**decided, **ledger.pending}

    def deletion_s(self, key: Key, obj: Object, now_s: float) -> float:
        """Return when this process first saw the deletion timestamp; now if the object has none."""
        sight = self._of(key, obj)
        if not obj["metadata"].get("deletionTimestamp"):
            return now_s
        if sight.deletion_s is None:
            sight.deletion_s = now_s
        return sight.deletion_s

    def was_born_here(self, key: Key, obj: Object, *, is_newborn: bool) -> bool:
        """Return whether this process gave the object its owner id: it has no earlier history, whatever its status."""
        sight = self._of(key, obj)
        sight.was_born_here |= is_newborn
        return sight.was_born_here

    def has_lost_history(self, key: Key, obj: Object, *, is_lost: bool) -> bool:
        """Return whether an object was ever seen without its history; writes of this process do not restore it."""
        sight = self._of(key, obj)
        sight.is_history_lost |= is_lost
        return sight.is_history_lost

    def distrust(self) -> None:
        """The API server's objects may be older than what this process remembers: none counts as born here."""
        for sight in list(self._sights.values()):
            sight.was_born_here = False

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a deleted object."""
        self._sights.pop(key, None)

    def _of(self, key: Key, obj: Object) -> _Sight:
        uid = str(obj["metadata"].get("uid"))
        sight = self._sights.get(key)
        if sight is None or sight.uid != uid:
            sight = self._sights[key] = _Sight(uid)
        return sight
