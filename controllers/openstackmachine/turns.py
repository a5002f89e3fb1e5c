"""Which machine changes a load balancer next, so that those that are ready at the same time send one request."""

from __future__ import annotations

import threading
from typing import Final

from capo.caches import Bounded
from capo.clock import Clock

TURN_S: Final = 10.0
"""So long others wait for a machine whose reconcile ended without a change, at most."""


class Turns:
    """The machine of this process whose turn it is, by load balancer; not persisted. Thread safe."""

    def __init__(self, clock: Clock) -> None:
        self._lock = threading.Lock()
        self._machines: Bounded[str, str] = Bounded.by_age(TURN_S, clock.now, name="load_balancer_turns")

    def take(self, balancer_id: str, machine_uid: str) -> bool:
        """Take the turn unless another machine has it; return whether this one has it now."""
        with self._lock:
            if self._machines.get(balancer_id) not in (None, machine_uid):
                return False
            self._machines.put(balancer_id, machine_uid)
            return True

    def end(self, balancer_id: str, machine_uid: str) -> None:
        """End the turn, if it is this machine's."""
        with self._lock:
            if self._machines.get(balancer_id) == machine_uid:
                self._machines.drop(balancer_id)
