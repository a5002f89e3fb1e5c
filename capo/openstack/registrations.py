"""With which poller each owner is registered: one that uses another scope leaves the poller of the former one."""

from __future__ import annotations

import threading
import weakref
from typing import Final, Protocol

from capo.openstack.owners import REGISTRATION_S

MISSED_RESYNCS: Final = 3
"""An object that so many resyncs did not reconcile no longer exists."""


class Poller(Protocol):
    """Where owners are registered: a :class:`capo.openstack.list_poller.ListPoller`."""

    def unregister(self, owner_id: str) -> None:
        """Remove an owner."""


class Registrations:
    """The poller of each owner, of all pollers of one process; thread safe.

    Args:
        sync_period_s: each object is reconciled at least once in this time.
    """

    def __init__(self, sync_period_s: float = 0.0) -> None:
        self.kept_s = max(REGISTRATION_S, MISSED_RESYNCS * sync_period_s)
        """For how long an owner is registered without a reconcile."""
        self._lock = threading.Lock()
        self._pollers: weakref.WeakValueDictionary[str, Poller] = weakref.WeakValueDictionary()

    def move(self, owner_id: str, poller: Poller) -> None:
        """Record that an owner is registered with a poller, and remove it from its former one.

        The former one is shown no writes of the owner any more: if the owner comes back, it must not rely on what was
        known of it.
        """
        with self._lock:
            former = self._pollers.get(owner_id)
            self._pollers[owner_id] = poller
        if former is not None and former is not poller:
            former.unregister(owner_id)

    def leave(self, owner_id: str, poller: Poller) -> None:
        """Record that an owner is no longer registered with a poller."""
        with self._lock:
            if self._pollers.get(owner_id) is poller:
                self._pollers.pop(owner_id, None)
