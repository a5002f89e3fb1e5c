"""What was looked at in the cloud, found to be as wanted, and when; no cloud, no Kubernetes."""

from __future__ import annotations

import threading
from typing import Any, Final

from capo import caches

FORGOTTEN_S: Final = 86400.0
"""An object of which nothing was noted for so long does not exist any more."""


class Memory:
    """The last look of each object with what was wanted then; thread safe, lost with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looks: dict[str, tuple[float, Any]] = {}
        caches.register("clusters_in_place", self, lambda memory: len(memory._looks))

    def is_fresh(self, uid: str, wanted: Any, *, now_s: float, max_age_s: float) -> bool:
        """Tell whether the same was found to be in place not longer than ``max_age_s`` ago."""
        with self._lock:
            at_s, known = self._looks.get(uid, (float("-inf"), None))
        return known == wanted and now_s - at_s < max_age_s

    def note(self, uid: str, wanted: Any, *, now_s: float) -> None:
        """Note that all of it is in place now, and forget objects that are long gone."""
        with self._lock:
            self._looks = {k: look for k, look in self._looks.items() if now_s - look[0] < FORGOTTEN_S}
            self._looks[uid] = (now_s, wanted)

    def forget(self, uid: str) -> None:
        """Note that something is being changed: what was in place may not be any more."""
        with self._lock:
            self._looks.pop(uid, None)
