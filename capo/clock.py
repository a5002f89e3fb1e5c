"""Sources of time, passed to all that needs the time, so that tests control it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time for durations."""

    def now(self) -> float:
        """Return steady seconds, used for all durations: close to seconds since 1970, never adjusted."""


class WallClock(Clock, Protocol):
    """Time for durations, and time to show to users."""

    def wall(self) -> float:
        """Return seconds since 1970, for users only: the clock may be adjusted, so nothing is computed from it."""
