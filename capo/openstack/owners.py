"""The objects that reconcile with one project, since when they are registered, and which writes were sent for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from capo.due_times import DueTimes
from capo.openstack.resource_cache import NEVER_S

_K = TypeVar("_K", bound=Hashable)

REGISTRATION_S: Final = 1800.0
"""Objects without a reconcile for this long no longer exist, unless resyncs are rarer."""


@dataclass(slots=True)
class _Owner:
    key: Hashable
    uid: str
    since_s: float
    decided_s: float
    was_born_here: bool = False
    next_window_s: float = 0.0
    """A window that begins with the next reconcile: the present one may still send a create."""
    credential: str = ""
    wrote_s: dict[str, float] = field(default_factory=dict)
    created: frozenset[str] = frozenset()


class Owners:
    """Owners of one project's resources; thread safe.

    Args:
        now: monotonic seconds, by which everything is counted.
        kept_s: for how long an owner is registered without a reconcile.
    """

    def __init__(self, now: Callable[[], float], kept_s: float = REGISTRATION_S) -> None:
        self._now, self._kept_s = now, kept_s
        self._lock = threading.RLock()
        self._owners: dict[str, _Owner] = {}
        self._by_key: dict[Hashable, set[str]] = {}
        self._by_credential: dict[str, set[str]] = {}
        self._renewed: DueTimes[str] = DueTimes()

    def __len__(self) -> int:
        return len(self._owners)

    def register(  # noqa: PLR0913 - the facts of an object, each named at the one call
        self,
        owner_id: str,
        key: Hashable,
        *,
        uid: str = "",
        was_born_here: bool = False,
        unknown_writes_s: float = 0.0,
        credential: str = "",
    ) -> None:
        """Register an owner until half an hour after the last call, or until three resyncs later if that is longer.

        Args:
            key: the key to wake for changes of resources with the owner's stamp.
            uid: uid of the object. An owner id with a new uid was moved or restored: earlier knowledge about the owner
                proves nothing, because another manager may have acted for it.
            was_born_here: the owner id was generated just now, so that this process creates every resource that has it.
            unknown_writes_s: how long a create that another manager sent, and whose intent is lost, may take effect.
            credential: fingerprint of the credentials that the object uses.
        """
        with self._lock:
            known, now_s = self._owners.get(owner_id), self._now()
            if known is not None:
                self._release(owner_id, known)
            if known is None or known.uid != uid:
                known = _Owner(key, uid, now_s, now_s + unknown_writes_s, was_born_here)
                self._owners[owner_id] = known
            _begin_window(known, now_s)
            known.key, known.credential = key, credential
            self._by_key.setdefault(key, set()).add(owner_id)
            self._by_credential.setdefault(credential, set()).add(owner_id)
            self._renewed.set(owner_id, now_s)

    def remove(self, owner_id: str) -> Hashable | None:
        """Remove an owner; return its key if no other owner has that key, else None."""
        with self._lock:
            if (known := self._owners.pop(owner_id, None)) is None:
                return None
            self._renewed.discard(owner_id)
            self._release(owner_id, known)
            # A new object of the same name may use the same key.
            return known.key if known.key not in self._by_key else None

    def _release(self, owner_id: str, known: _Owner) -> None:
        _discard(self._by_key, known.key, owner_id)
        _discard(self._by_credential, known.credential, owner_id)

    def pop_expired(self) -> list[str]:
        """Return, once, the owners without a recent reconcile: their objects no longer exist."""
        with self._lock:
            return self._renewed.pop_until(self._now() - self._kept_s)

    def keys(self) -> set[Hashable]:
        """Return the keys of all owners."""
        with self._lock:
            return set(self._by_key)

    def keys_of(self, credential: str) -> set[Hashable]:
        """Return the keys of the owners that use the credentials of a fingerprint."""
        with self._lock:
            return {self._owners[each].key for each in self._by_credential.get(credential, ())}

    def has_keys_of(self, credential: str) -> bool:
        """Return whether any owner uses the credentials of a fingerprint."""
        with self._lock:
            return credential in self._by_credential

    def namespaces(self) -> set[str]:
        """Return the namespaces of all owners."""
        return set(map(namespace_of, self.keys()))

    def with_key(self, key: Hashable) -> set[str]:
        """Return the owners that have a key."""
        with self._lock:
            return set(self._by_key.get(key, ()))

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

    def distrust(self, window_s: float) -> None:
        """Require a list that begins after now for every absence, also for owners that were born here.

        Args:
            window_s: how long a create whose intent is lost may take effect: no absence is proven before that.
        """
        with self._lock:
            for known in self._owners.values():
                _forget_proofs(known, self._now())
                known.next_window_s, known.decided_s = window_s, known.since_s + window_s

    def distrust_key(self, key: Hashable) -> None:
        """Require a list that begins after now for every absence of the owners that have a key."""
        with self._lock:
            for owner_id in self._by_key.get(key, ()):
                _forget_proofs(self._owners[owner_id], self._now())

    def mark_written(self, owner_id: str, kind: str, roles: Iterable[str] = ()) -> None:
        """Record a write: earlier lists may lack its result.

        Args:
            roles: those that a create was sent for.
        """
        with self._lock:
            if known := self._owners.get(owner_id):
                known.wrote_s[kind] = self._now()
                known.created |= frozenset(roles)

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


def namespace_of(key: Hashable) -> str:
    """Return the namespace of an object's key; empty if it has none."""
    return str(getattr(key, "namespace", ""))


def _forget_proofs(known: _Owner, now_s: float) -> None:
    known.was_born_here, known.since_s, known.created = False, now_s, frozenset()


def _begin_window(known: _Owner, now_s: float) -> None:
    """Count the window of lost intents from now, once: a reconcile of the owner begins."""
    if known.next_window_s:
        known.decided_s, known.next_window_s = now_s + known.next_window_s, 0.0


def _discard(index: dict[_K, set[str]], value: _K, owner_id: str) -> None:
    owners = index.get(value, set())
    owners.discard(owner_id)
    if not owners:
        index.pop(value, None)
