"""Registers the size of each cache of this process: caches that grow with tenants and clouds are bounded and measured.

``docs/reference/metrics.md`` lists the caches and the bound of each; a test compares it with what is registered.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

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
