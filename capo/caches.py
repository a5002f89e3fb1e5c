"""How many entries each cache of this process has: what grows with what tenants and clouds do is bounded, and counted.

``docs/reference/metrics.md`` lists the caches with what bounds each; a test compares it with what is registered.
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

_Size = Callable[[], int | None]
_SIZES: Final[dict[str, list[_Size]]] = {}
_LOCK: Final = threading.Lock()

T = TypeVar("T")


def register(name: str, owner: T, size: Callable[[T], int]) -> None:
    """Show the size of a cache as a metric as long as its owner lives; caches of one name are added up.

    Args:
        size: must not refer to the owner.
    """
    known = weakref.ref(owner)

    def entries() -> int | None:
        found = known()
        return size(found) if found is not None else None

    with _LOCK:
        sizes = _SIZES.setdefault(name, [])
        sizes[:] = [*(each for each in sizes if each() is not None), entries]
    ENTRIES.labels(name).set_function(lambda: _total(name))


def names() -> set[str]:
    """Return the names of all caches that were ever registered."""
    return set(_SIZES)


def evicted(name: str, count: int = 1) -> None:
    """Count entries that were evicted."""
    if count:
        EVICTIONS.labels(name).inc(count)


def _total(name: str) -> float:
    with _LOCK:
        sizes: list[Any] = [each() for each in _SIZES[name]]
    return float(sum(filter(None, sizes)))
