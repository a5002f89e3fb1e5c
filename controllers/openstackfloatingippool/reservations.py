"""Floating IPs that are being allocated right now, and those that another process allocates at the same time.

Two pools of this process never choose the same one. What another process chose is found by a list, and avoided for some
time: two that choose alike would else withdraw for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final

from capo.caches import Bounded

AVOIDED_S: Final = 30.0
UNPUBLISHED_S: Final = 600.0
"""One that was created longer ago is not withdrawn: somebody may use it."""


class Reservations:
    """Thread safe.

    Args:
        now: steady seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._held: set[Hashable] = set()
        self._avoided: Bounded[Hashable, bool] = Bounded.by_age(AVOIDED_S, now)
        self._created: Bounded[str, bool] = Bounded.by_age(UNPUBLISHED_S, now)

    @contextmanager
    def of(self, item: Hashable) -> Iterator[bool]:
        """Reserve an item for the block; yield False if another one has it, or had it shortly before."""
        with self._lock:
            is_free = item not in self._held and item not in self._avoided
            if is_free:
                self._held.add(item)
        try:
            yield is_free
        finally:
            if is_free:
                with self._lock:
                    self._held.discard(item)

    def note_created(self, uid: str) -> None:
        """Remember an IPAddress that this process created and has not published."""
        self._created.put(uid, value=True)

    def has_created(self, uid: str) -> bool:
        """Return whether this process created an IPAddress lately, and nothing says that it was published."""
        return uid in self._created

    def note_published(self, uid: str) -> None:
        """Forget an IPAddress before its claim names it."""
        self._created.drop(uid)

    def avoid(self, item: Hashable) -> None:
        """Do not yield an item for some time."""
        self._avoided.put(item, value=True)
