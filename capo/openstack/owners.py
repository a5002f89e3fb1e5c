"""The objects that reconcile with one project, since when they are registered, and which writes were sent for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final

from capo.openstack.resource_cache import NEVER_S

REGISTRATION_S: Final = 1800.0
"""Objects without a reconcile for this long no longer exist: each reconciles once per resync."""


@dataclass
class _Owner:
    key: Hashable
    uid: str
    since_s: float
    decided_s: float
    renewed_s: float
    was_born_here: bool = False
    wrote_s: dict[str, float] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)


class Owners:
    """Owners of one project's resources; thread safe.

    Args:
        now: monotonic seconds, by which everything is counted.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._owners: dict[str, _Owner] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def register(
        self,
        owner_id: str,
        key: Hashable,
        *,
        uid: str = "",
        was_born_here: bool = False,
        unknown_writes_s: float = 0.0,
    ) -> None:
        """Register an owner until half an hour after the last call.

        Args:
            key: the key to wake for changes of resources with the owner's stamp.
            uid: uid of the object. An owner id with a new uid was moved or restored: earlier knowledge about the owner
                proves nothing, because another manager may have acted for it.
            was_born_here: the owner id was generated just now, so that this process creates every resource that has it.
            unknown_writes_s: how long a create that another manager sent, and whose intent is lost, may take effect.
        """
        with self._lock:
            known, now_s = self._owners.get(owner_id), self._now()
            if known is None or known.uid != uid:
                known = _Owner(key, uid, now_s, now_s + unknown_writes_s, now_s, was_born_here)
                self._owners[owner_id] = known
            known.key, known.renewed_s = key, now_s

    def remove(self, owner_id: str) -> Hashable | None:
        """Remove an owner; return its key if no other owner has that key, else None."""
        with self._lock:
            known = self._owners.pop(owner_id, None)
            # A new object of the same name may use the same key.
            return known.key if known and known.key not in self.keys() else None

    def expired(self) -> list[str]:
        """Return the owners without a recent reconcile, whose objects no longer exist."""
        with self._lock:
            oldest_s = self._now() - REGISTRATION_S
            return [owner_id for owner_id, known in self._owners.items() if known.renewed_s < oldest_s]

    def keys(self) -> set[Hashable]:
        """Return the keys of all owners."""
        with self._lock:
            return {known.key for known in self._owners.values()}

    def with_key(self, key: Hashable) -> set[str]:
        """Return the owners that have a key."""
        with self._lock:
            return {owner_id for owner_id, known in self._owners.items() if known.key == key}

    def key_of(self, owner_id: str) -> Hashable | None:
        """Return the key of an owner, None if it is not registered."""
        with self._lock:
            known = self._owners.get(owner_id)
            return known.key if known else None

    # -- conclusions ------------------------------------------------------------------------------------------------

    def was_born_here(self, owner_id: str) -> bool:
        """Return whether only creates of this process can have the owner's stamp, and no answer of them was lost."""
        with self._lock:
            known = self._owners.get(owner_id)
            return known is not None and known.was_born_here

    def distrust(self) -> None:
        """Require a list that begins after now for every absence, also for owners that were born here."""
        with self._lock:
            for known in self._owners.values():
                known.was_born_here, known.since_s = False, self._now()
                known.created.clear()

    def mark_written(self, owner_id: str, kind: str, roles: Iterable[str] = ()) -> None:
        """Record a write: earlier lists may lack its result.

        Args:
            roles: those that a create was sent for.
        """
        with self._lock:
            if known := self._owners.get(owner_id):
                known.wrote_s[kind] = self._now()
                known.created.update(roles)

    def has_created(self, owner_id: str, role: str) -> bool:
        """Return whether only creates of this process can have the owner's stamp for a role.

        The owner id was generated here, or its absence was proven here before the first create for the role.
        """
        with self._lock:
            known = self._owners.get(owner_id)
            return known is not None and (known.was_born_here or role in known.created)

    def wrote_s(self, owner_id: str, kind: str) -> float:
        """Return when the last write of an owner was sent."""
        with self._lock:
            known = self._owners.get(owner_id)
            return known.wrote_s.get(kind, NEVER_S) if known else NEVER_S

    def unproven_s(self, owner_id: str, kind: str) -> float:
        """Return the time before which a list proves no absence of an owner's stamp (ADR 0001).

        This is the later of its last write and the time since which this process knows the object. The latter does not
        apply to an owner id that was generated here: no resource had it before.
        """
        with self._lock:
            known = self._owners.get(owner_id)
            if known is None:
                return NEVER_S
            return max(known.wrote_s.get(kind, NEVER_S), NEVER_S if known.was_born_here else known.since_s)

    def decided_s(self, owner_id: str) -> float:
        """Return the time by which a create of an owner whose intent was lost with the status has taken effect."""
        with self._lock:
            known = self._owners.get(owner_id)
            return known.decided_s if known and known.decided_s > known.since_s else NEVER_S
