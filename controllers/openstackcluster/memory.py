"""When each object's desired state was last confirmed in the cloud; makes no requests."""

from __future__ import annotations

from typing import Any, Final

from capo.caches import Bounded
from capo.clock import Clock

FORGOTTEN_S: Final = 86400.0
"""An entry that was not renewed for this time is evicted: its object was deleted."""


class Memory:
    """The last confirmed desired state of each object; thread safe, not persisted.

    Its dates are those of its callers: all decisions of a reconcile are taken at the time at which it began.
    """

    def __init__(self, clock: Clock) -> None:
        self._looks: Bounded[str, tuple[float, Any]] = Bounded.by_age(FORGOTTEN_S, clock.now, name="clusters_in_place")

    def is_fresh(self, uid: str, wanted: Any, *, now_s: float, max_age_s: float) -> bool:
        """Return whether the same state was confirmed less than ``max_age_s`` ago."""
        at_s, known = self._looks.get(uid) or (float("-inf"), None)
        return known == wanted and now_s - at_s < max_age_s

    def note(self, uid: str, wanted: Any, *, now_s: float) -> None:
        """Record that this state is in place."""
        self._looks.put(uid, (now_s, wanted))

    def value(self, uid: str) -> Any:
        """Return what was recorded last, None if nothing was."""
        return (self._looks.get(uid) or (0.0, None))[1]

    def forget(self, uid: str) -> None:
        """Remove the entry of an object that is about to change."""
        self._looks.drop(uid)
