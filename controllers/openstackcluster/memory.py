"""When each object's desired state was last confirmed in the cloud; makes no requests."""

from __future__ import annotations

import threading
from typing import Any, Final

from capo import caches

FORGOTTEN_S: Final = 86400.0
"""An entry that was not renewed for this time is evicted: its object was deleted."""


class Memory:
    """The last confirmed desired state of each object; thread safe, not persisted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looks: dict[str, tuple[float, Any]] = {}
        caches.register("clusters_in_place", self, lambda memory: len(memory._looks))

    def is_fresh(self, uid: str, wanted: Any, *, now_s: float, max_age_s: float) -> bool:
        """Return whether the same state was confirmed less than ``max_age_s`` ago."""
        with self._lock:
            at_s, known = self._looks.get(uid, (float("-inf"), None))
        return known == wanted and now_s - at_s < max_age_s

    def note(self, uid: str, wanted: Any, *, now_s: float) -> None:
        """Record that this state is in place, and evict old entries."""
        with self._lock:
            self._looks = {k: look for k, look in self._looks.items() if now_s - look[0] < FORGOTTEN_S}
            self._looks[uid] = (now_s, wanted)

    def forget(self, uid: str) -> None:
        """Remove the entry of an object that is about to change."""
        with self._lock:
            self._looks.pop(uid, None)
