"""Threads that run the lists of all clouds; each poller decides what is due, and when."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from capo import shares
from capo.due_times import DueTimes
from capo.openstack.addresses import Addresses
from capo.openstack.list_poller import ListPoller
from capo.shares import NAMESPACE, Lane, Resource, Shares

MAX_PER_SITE: Final = 8
"""Concurrent lists in one cloud, over all its projects: a cloud that hangs leaves threads to the others."""
MAX_THREADS: Final = 64
LONGEST_WAIT_S: Final = 3600.0
MAX_NAMESPACES: Final = 16


@dataclass(frozen=True)
class Site:
    """The cloud that a poller lists.

    Args:
        name: budget of the cloud.
        host: host of its Identity service, in one spelling.
    """

    name: str = ""
    host: str = ""


@dataclass
class _Served:
    """A poller, its cloud, and the namespaces whose objects used it last: many may share the credentials."""

    poller: ListPoller
    site: Site
    namespaces: OrderedDict[str, None] = field(default_factory=OrderedDict)


class PollerPool:
    """Runs the lists of all pollers: one thread waits, others list.

    Only pollers with news, and those that are due, are visited. One without room waits for a budget that it lacks, and
    is visited when a list of that budget has ended.
    """

    def __init__(self, now: Callable[[], float], addresses: Addresses | None = None) -> None:
        self._now = now
        self._addresses = addresses or Addresses(now)
        self._condition = threading.Condition()
        self._served: dict[int, _Served] = {}
        self._numbers: dict[ListPoller, int] = {}
        self._count = itertools.count()
        self._news: dict[int, None] = {}
        self._due: DueTimes[int] = DueTimes()
        self._waiting: dict[Resource, dict[int, None]] = {}
        self._waits: dict[int, set[Resource]] = {}
        self._freed: set[Resource] = set()
        self._shares = Shares(MAX_THREADS, MAX_PER_SITE)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="list")
        self._is_stopping = False
        self._waiter: threading.Thread | None = None

    def add(self, poller: ListPoller, site: Site = Site()) -> None:
        """Run a poller's lists until it is closed."""
        with self._condition:
            number = next(self._count)
            self._served[number], self._numbers[poller] = _Served(poller, site), number
            # By number: the poller is not to refer to itself, so that a closed one is freed at once.
            poller.due_changed = functools.partial(self._notice, number)
            if self._waiter is None and not self._is_stopping:
                self._waiter = threading.Thread(target=self._run, name="poller", daemon=True)
                self._waiter.start()
        self._notice(number)

    def serve(self, poller: ListPoller, namespace: str) -> None:
        """Record that an object of a namespace uses a poller: its lists may use the namespace's share.

        A list begins if one of the namespaces has room, so sharing another's credentials does not delay their lists.
        """
        with self._condition:
            if (number := self._numbers.get(poller)) is None:
                return
            namespaces = self._served[number].namespaces
            is_new = namespace not in namespaces
            namespaces[namespace] = None
            namespaces.move_to_end(namespace)
            if len(namespaces) > MAX_NAMESPACES:
                namespaces.popitem(last=False)
        if is_new:
            self._notice(number)

    def stop(self) -> None:
        """Begin no more lists; return when the waiting thread has ended."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()
            waiter = self._waiter
        if waiter is not None:
            waiter.join(timeout=5)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _notice(self, number: int) -> None:
        with self._condition:
            if number in self._served:
                self._news[number] = None
                self._condition.notify_all()

    def _run(self) -> None:
        while not self._is_stopping:
            due_s = self._look()
            with self._condition:
                if not self._news and not self._freed and not self._is_stopping:
                    self._condition.wait(min(LONGEST_WAIT_S, max(0.0, due_s - self._now())))

    def _look(self) -> float:
        """Begin the lists that are due; return when the next one is.

        While the thread waits it holds no reference to a poller, so a closed one is freed with its credentials.
        """
        with self._condition:
            freed, self._freed = self._freed, set()
            # The room of a namespace depends on all threads, so any list that ended may have made some.
            freed |= {each for each in self._waiting if freed and each[0] == NAMESPACE}
        for resource in freed:
            self._begin_waiting(resource)
        with self._condition:
            numbers = dict.fromkeys([*self._due.pop_until(self._now()), *self._news])
            self._news.clear()
        for number in numbers:
            self._begin(number)
        with self._condition:
            return self._due.first_s()

    def _begin_waiting(self, resource: Resource) -> None:
        """Begin lists that waited for a budget, the longest wait first, until it is used up again."""
        while (number := self._longest_waiting(resource)) is not None:
            if resource in self._begin(number):
                return

    def _longest_waiting(self, resource: Resource) -> int | None:
        with self._condition:
            return next(iter(self._waiting.get(resource, ())), None)

    def _begin(self, number: int) -> Collection[Resource]:
        """Begin the due lists of a poller for which there is room; return the budgets one of which it waits for."""
        if (poller := self._living(number)) is None:
            return ()
        while (due_s := poller.next_due_s()) <= self._now():
            lane, lacking = self._lane(number)
            if lane is None:
                self._wait_for(number, lacking)
                return lacking
            self._start(number, poller, lane)
        with self._condition:
            self._stop_waiting(number)
            self._due.set(number, due_s)
        return ()

    def _start(self, number: int, poller: ListPoller, lane: Lane) -> None:
        for kind in poller.due(1):
            with self._condition:
                self._stop_waiting(number)
                self._shares.begin(lane)
                shares.publish("lists", self._shares)
            with contextlib.suppress(RuntimeError):  # the pool was shut down concurrently
                self._threads.submit(self._list, poller, lane, kind)

    def _living(self, number: int) -> ListPoller | None:
        """Return the poller; a closed one is removed."""
        with self._condition:
            if (served := self._served.get(number)) is None:
                return None
            if not served.poller.is_closed:
                return served.poller
            del self._served[number], self._numbers[served.poller]
            self._due.discard(number)
            self._stop_waiting(number)
            return None

    def _wait_for(self, number: int, lacking: Collection[Resource]) -> None:
        """Keep a poller until one of the budgets has room; where it waits already it keeps its place."""
        with self._condition:
            self._due.discard(number)
            self._stop_waiting(number, but_for=lacking)
            self._waits[number] = set(lacking)
            for resource in lacking:
                self._waiting.setdefault(resource, {})[number] = None

    def _stop_waiting(self, number: int, but_for: Collection[Resource] = ()) -> None:
        for resource in self._waits.pop(number, set()).difference(but_for):
            del self._waiting[resource][number]
            if not self._waiting[resource]:
                del self._waiting[resource]

    def _lane(self, number: int) -> tuple[Lane | None, Collection[Resource]]:
        """Return the lane of a namespace that a poller serves and that has room, else the budgets that are used up."""
        with self._condition:
            site, namespaces = self._served[number].site, list(self._served[number].namespaces) or [""]
        lacking: dict[Resource, None] = {}
        for namespace in reversed(namespaces):
            address = self._addresses.of(site.host, namespace) if site.host else ""
            lane = Lane(namespace, address, site.name)
            with self._condition:
                if (lacked := self._shares.lacks(lane)) is None:
                    return lane, ()
            lacking[lacked] = None
        return None, lacking

    def _list(self, poller: ListPoller, lane: Lane, kind: str) -> None:
        try:
            poller.run(kind)
        finally:
            with self._condition:
                self._shares.end(lane)
                shares.publish("lists", self._shares)
                self._freed.update(shares.budgets(lane))
                self._condition.notify_all()
