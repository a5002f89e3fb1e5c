"""Tables that keep something for a while: caches that grow with tenants and clouds are bounded and measured.

``docs/reference/metrics.md`` lists the caches and the bound of each; a test compares it with what is registered.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, Self, TypeVar

from prometheus_client import Counter, Gauge

ENTRIES: Final = Gauge("capo_cache_entries", "Entries of each cache and table in memory.", ("cache",))
EVICTIONS: Final = Counter(
    "capo_cache_evictions_total", "Entries that were evicted: there was no room, or nothing used them.", ("cache",)
)

_Cache = tuple[weakref.ref[Any], Callable[[Any], int]]
_CACHES: Final[dict[str, tuple[_Cache, ...]]] = {}
_LOCK: Final = threading.Lock()
"""Held while the table is changed, never while a size is read: that may need a lock whose holder registers."""

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def register(name: str, owner: T, size: Callable[[T], int]) -> None:
    """Export the size of a cache as a metric while its owner exists; caches of one name are added up.

    Args:
        size: must not refer to the owner.
    """
    with _LOCK:
        living = (cache for cache in _CACHES.get(name, ()) if cache[0]() is not None)
        _CACHES[name] = (*living, (weakref.ref(owner), size))
    ENTRIES.labels(name).set_function(lambda: _total(name))


def names() -> set[str]:
    """Return the names of all caches that were ever registered."""
    return set(_CACHES)


def evicted(name: str, count: int = 1) -> None:
    """Count entries that were evicted."""
    if count:
        EVICTIONS.labels(name).inc(count)


def _total(name: str) -> float:
    owners = ((known(), size) for known, size in _CACHES[name])
    return float(sum(size(owner) for owner, size in owners if owner is not None))


class Bounded(Generic[K, V]):
    """A table that evicts the entries that were stored first: beyond a number of them, or after an age.

    Each call is atomic. What takes several, such as a change of a value, is atomic only under a lock of the caller.
    """

    # Not for what must stay while its object exists, such as owners and credentials: an early eviction loses a proof.
    # Nor for what ends by a state of its own, such as answers that are still awaited (ReferenceCache, dns.Resolver).

    def __init__(self, most: float, max_age_s: float, now: Callable[[], float], name: str | None) -> None:
        self._most, self._max_age_s, self._now, self._name = most, max_age_s, now, name
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()
        """With the time at which each was stored, in that order."""
        if name:
            register(name, self, len)

    @classmethod
    def by_number(cls, most: int, *, name: str | None = None) -> Self:
        """Return a table of the entries that were stored last.

        Args:
            name: label of its metrics; without it the table is not measured.
        """
        return cls(most, math.inf, lambda: 0.0, name)

    @classmethod
    def by_age(cls, max_age_s: float, now: Callable[[], float], *, name: str | None = None) -> Self:
        """Return a table of the entries that were stored within a time. The next write evicts older ones.

        Args:
            now: steady seconds (``capo/clock.py``).
            name: label of its metrics; without it the table is not measured.
        """
        return cls(math.inf, max_age_s, now, name)

    def put(self, key: K, value: V) -> None:
        """Store an entry as the newest one; replace an earlier one of the key; evict old ones."""
        with self._lock:
            self._entries[key] = (self._now(), value)
            self._entries.move_to_end(key)
            while self._entries and self._is_old(next(iter(self._entries.values()))):
                self._entries.popitem(last=False)
            if len(self._entries) > self._most:
                self._entries.popitem(last=False)
                if self._name:
                    evicted(self._name)

    def get(self, key: K) -> V | None:
        """Return the value of a key, None if there is none or it is too old."""
        entry = self._entries.get(key)
        return None if entry is None or self._is_old(entry) else entry[1]

    def __contains__(self, key: K) -> bool:
        entry = self._entries.get(key)
        return entry is not None and not self._is_old(entry)

    def __len__(self) -> int:
        return len(self._entries)

    def drop(self, key: K) -> None:
        """Remove the entry of a key, if there is one."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()

    def _is_old(self, entry: tuple[float, V]) -> bool:
        return self._now() - entry[0] >= self._max_age_s
