"""Moments by key, of which the earliest is found without a walk over all; no clock, no lock."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

Member = TypeVar("Member", bound=Hashable)

_SLACK: Final = 16
"""Outdated entries that the heap may have beyond as many as there are keys."""


class DueTimes(Generic[Member]):
    """A moment for each key; setting, removing and the earliest one cost the logarithm of their number.

    A removed or replaced moment stays in the heap until it is the earliest, or until such ones outnumber the others.
    """

    def __init__(self) -> None:
        self._at_s: dict[Member, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Member]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._at_s)

    def __contains__(self, key: object) -> bool:
        return key in self._at_s

    def __iter__(self) -> Iterator[Member]:
        return iter(self._at_s)

    def at_s(self, key: Member) -> float | None:
        """Return the moment of a key, None if it has none."""
        known = self._at_s.get(key)
        return known[0] if known else None

    def set(self, key: Member, at_s: float) -> None:
        """Replace the moment of a key."""
        if self.at_s(key) == at_s:
            return
        self._at_s[key] = at_s, next(self._numbers)
        heapq.heappush(self._heap, (*self._at_s[key], key))
        if len(self._heap) > 2 * len(self._at_s) + _SLACK:
            self._heap = [(*entry, each) for each, entry in self._at_s.items()]
            heapq.heapify(self._heap)

    def discard(self, key: Member) -> None:
        """Remove a key, if it has a moment."""
        self._at_s.pop(key, None)

    def first_s(self) -> float:
        """Return the earliest moment; infinite if there is none."""
        while self._heap and self._at_s.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else float("inf")

    def pop_until(self, now_s: float) -> list[Member]:
        """Remove the keys whose moment has come, and return them in its order."""
        due: list[Member] = []
        while self.first_s() <= now_s:
            _, _, key = heapq.heappop(self._heap)
            del self._at_s[key]
            due.append(key)
        return due

    def clear(self) -> None:
        """Remove all keys."""
        self._at_s.clear()
        self._heap.clear()
