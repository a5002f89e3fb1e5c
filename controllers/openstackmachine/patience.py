"""How long a machine that is deleted waits for its OpenStackCluster to record the pools that it may be in."""

from __future__ import annotations

from typing import Final

from capo.caches import Bounded
from capo.clock import Clock

PATIENCE_S: Final = 600.0
"""Time limit for the record of the OpenStackCluster, which may fail for reasons unrelated to the machine."""
_FORGOTTEN_S: Final = 86400.0


class Patience:
    """Since when each machine waits for the record of its cluster; not persisted."""

    def __init__(self, clock: Clock) -> None:
        self._since_s: Bounded[str, float] = Bounded.by_age(_FORGOTTEN_S, clock.now, name="machines_that_leave")

    def left_s(self, uid: str, now_s: float) -> float:
        """Return for how many more seconds a machine waits; 0 when the wait is over. The first call starts the wait."""
        since_s = self._since_s.get(uid)
        if since_s is None:
            since_s = now_s
            self._since_s.put(uid, since_s)
        return max(0.0, since_s + PATIENCE_S - now_s)
