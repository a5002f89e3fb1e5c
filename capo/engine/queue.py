"""The work queue: each object is queued at most once and reconciled once at a time, clusters and clouds in turn.

The queue belongs to the main loop; other threads reach it through ``router.py``. It follows client-go's work queue
(dirty, processing, delayed), plus lanes: a lane is the budgets that a reconcile uses, and a key whose budgets are used
up does not block others (``lanes.py``).
"""

from __future__ import annotations

import collections
import heapq
import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from capo import caches
from capo.engine import refused_writes
from capo.engine.backoff import pause_s
from capo.engine.lanes import Lacking, Lanes
from capo.errors import CapoError
from capo.kube.errors import Conflict, KubeError
from capo.kube.kinds import Key
from capo.shares import Lane

CONFLICT_S: Final = 0.2
CONFLICT_CEILING_S: Final = 5.0
JITTER: Final = 0.2


class Taken(NamedTuple):
    """A key to reconcile.

    Args:
        lane: whose budgets it uses.
        waited_s: since it was due.
    """

    key: Key
    lane: Lane
    waited_s: float


class _Delayed(NamedTuple):
    due_s: float
    number: int
    key: Key


class WorkQueue:
    """The keys of one controller.

    Args:
        lane: returns the budgets that a key's reconcile uses.
        group: returns the cluster that a key belongs to; groups take turns.
        clock: monotonic seconds.
        on_ready: called when a key may have become ready.
        spread: returns a factor around 1 for a pause, so that retries are spread.
    """

    def __init__(
        self,
        *,
        lane: Callable[[Key], Lane] = lambda _key: Lane(),
        group: Callable[[Key], str] = lambda _key: "",
        clock: Callable[[], float] = time.monotonic,
        on_ready: Callable[[], None] = lambda: None,
        spread: Callable[[], float] = lambda: random.uniform(1 - JITTER, 1 + JITTER),  # noqa: S311 - no secret
    ) -> None:
        self._lane, self._group, self._clock, self._on_ready, self._spread = lane, group, clock, on_ready, spread
        self._dirty: dict[Key, float] = {}  # with the time since which each is due
        self._active: dict[Key, set[str]] = {}
        self._own_versions: dict[Key, set[str]] = {}
        self._ready = Lanes()
        self._delayed: list[_Delayed] = []
        self._due: dict[Key, _Delayed] = {}
        self._failures: collections.Counter[Key] = collections.Counter()
        self._conflicts: collections.Counter[Key] = collections.Counter()
        self._number = 0
        caches.register("queue", self, lambda queue: len(queue._dirty) + len(queue._active) + len(queue._due))

    def add(self, key: Key, *, version: str | None = None) -> None:
        """Queue the key; if it is being reconciled, queue it again afterwards.

        Args:
            version: the resource version of the key's own object that caused this; if it turns out that the running
                reconcile wrote it, the key is not queued again.
        """
        if version is not None and key in self._active:
            self._active[key].add(version)
            return
        self._due.pop(key, None)
        if key in self._dirty:
            return
        self._put(key, self._clock())

    def add_after(self, key: Key, seconds: float) -> None:
        """Queue the key in so many seconds; of several delays the shortest is used."""
        due_s = self._clock() + seconds
        if key in self._dirty or (key in self._due and self._due[key].due_s <= due_s):
            return
        self._number += 1
        self._due[key] = _Delayed(due_s, self._number, key)
        heapq.heappush(self._delayed, self._due[key])
        self._on_ready()

    def retry(self, key: Key, error: BaseException) -> None:
        """Queue the key after a pause that grows with its consecutive failures."""
        if isinstance(error, Conflict):
            self._conflicts[key] += 1
            pause = min(CONFLICT_CEILING_S, CONFLICT_S * 2.0 ** min(self._conflicts[key] - 1, 10))
        else:
            self._failures[key] += 1
            pause = _pause_s(error, self._failures[key])
        self.add_after(key, pause * self._spread())

    def forget(self, key: Key) -> None:
        """Reset the key's failures: its reconcile succeeded."""
        self._failures.pop(key, None)
        self._conflicts.pop(key, None)

    def mark_written(self, key: Key, version: str) -> None:
        """Record that the running reconcile of the key wrote this resource version of its own object."""
        if key in self._active:
            self._own_versions.setdefault(key, set()).add(version)

    def take(self, lacking: Lacking = lambda _path: None) -> Taken | None:
        """Return the next key whose lane has room, None if there is none now; the key is active until :meth:`done`."""
        self._ripen()
        while found := self._ready.pop(lacking):
            if self._lane(found.key) != found.lane:
                self._push(found.key)  # its cloud was resolved, or changed, while it waited
                continue
            due_s = self._dirty.pop(found.key)
            self._active[found.key] = set()
            return Taken(found.key, found.lane, self._clock() - due_s)
        return None

    def freed(self, lane: Lane) -> None:
        """Record that a reconcile of any controller ended, which used the budgets of a lane."""
        self._ready.freed(lane)

    def done(self, key: Key) -> None:
        """End the key's reconcile.

        Requeue the key if it was added during it, unless only by the reconcile's own writes.
        """
        seen, own = self._active.pop(key), self._own_versions.pop(key, set())
        if key in self._dirty:
            self._push(key)
        elif seen - own:
            self.add(key)

    def next_due_s(self) -> float | None:
        """Return the seconds until the next delayed key becomes ready, None if nothing is delayed."""
        self._drop_stale()
        return max(0.0, self._delayed[0].due_s - self._clock()) if self._delayed else None

    def depth(self) -> int:
        """Return the number of ready keys that wait for a worker."""
        return len(self._ready)

    def _ripen(self) -> None:
        self._drop_stale()
        while self._delayed and self._delayed[0].due_s <= self._clock():
            due_s, _, key = heapq.heappop(self._delayed)
            del self._due[key]
            self._put(key, due_s)
            self._drop_stale()

    def _drop_stale(self) -> None:
        while self._delayed and self._due.get(self._delayed[0].key) is not self._delayed[0]:
            heapq.heappop(self._delayed)

    def _put(self, key: Key, due_s: float) -> None:
        self._dirty[key] = due_s
        if key not in self._active:
            self._push(key)

    def _push(self, key: Key) -> None:
        self._ready.push(self._lane(key), self._group(key), key)
        self._on_ready()


def _pause_s(error: BaseException, failures: int) -> float:
    """Return the backoff after the n-th consecutive reconcile that ended with this error, in seconds."""
    known = error if isinstance(error, CapoError) else CapoError(str(error))
    if isinstance(error, KubeError) and not refused_writes.is_one(error):
        # The API server is away for seconds, again and again when it is replaced. Longer pauses would add up to minutes
        # in which an object that has not changed waits for nothing: no event wakes it.
        return pause_s(known, min(failures, 2))
    return pause_s(known, failures)
