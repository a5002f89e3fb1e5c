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


class Reservations:
    """Thread safe.

    Args:
        now: steady seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._held: set[Hashable] = set()
        self._avoided: Bounded[Hashable, bool] = Bounded.by_age(AVOIDED_S, now)

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

    def avoid(self, item: Hashable) -> None:
        """Do not yield an item for some time."""
        self._avoided.put(item, value=True)
