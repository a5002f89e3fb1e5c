"""Sources of time, passed to all that needs the time, so that tests control it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Time for durations."""

    def now(self) -> float:
        """Return steady seconds, used for all durations: close to seconds since 1970, never adjusted."""


class WallClock(Clock, Protocol):
    """Time for durations, and time to show to users."""

    def wall(self) -> float:
        """Return seconds since 1970, for users only: the clock may be adjusted, so nothing is computed from it."""


class SystemClock:
    """The system's clocks."""

    def __init__(self) -> None:
        self._steady_s = time.time() - time.monotonic()

    def now(self) -> float:
        """Return steady seconds: seconds since 1970 when this clock was created, plus monotonic time.

        Never adjusted.
        """
        return self._steady_s + time.monotonic()

    def wall(self) -> float:
        """Return seconds since 1970 by the system clock, which may be adjusted at any time."""
        return time.time()
