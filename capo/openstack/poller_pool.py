"""Threads that run the lists of all clouds; each poller decides what is due, and when."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from capo import shares
from capo.openstack.addresses import Addresses
from capo.openstack.list_poller import ListPoller
from capo.shares import Lane, Shares

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
    """A poller's cloud, and the namespaces whose objects used it last: many may share the credentials."""

    site: Site
    namespaces: OrderedDict[str, None] = field(default_factory=OrderedDict)


class PollerPool:
    """Runs the lists of all pollers: one thread waits, others list."""

    def __init__(self, now: Callable[[], float], addresses: Addresses | None = None) -> None:
        self._now = now
        self._addresses = addresses or Addresses(now)
        self._condition = threading.Condition()
        self._pollers: dict[ListPoller, _Served] = {}
        self._shares = Shares(MAX_THREADS, MAX_PER_SITE)
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="list")
        self._is_stopping = False
        self._has_news = False
        self._waiter: threading.Thread | None = None

    def add(self, poller: ListPoller, site: Site = Site()) -> None:
        """Run a poller's lists until it is closed."""
        poller.due_changed = self._notice
        with self._condition:
            self._pollers[poller] = _Served(site)
            if self._waiter is None and not self._is_stopping:
                self._waiter = threading.Thread(target=self._run, name="poller", daemon=True)
                self._waiter.start()
        self._notice()

    def serve(self, poller: ListPoller, namespace: str) -> None:
        """Record that an object of a namespace uses a poller: its lists may use the namespace's share.

        A list begins if one of the namespaces has room, so sharing another's credentials does not delay their lists.
        """
        with self._condition:
            if (served := self._pollers.get(poller)) is None:
                return
            is_new = namespace not in served.namespaces
            served.namespaces[namespace] = None
            served.namespaces.move_to_end(namespace)
            if len(served.namespaces) > MAX_NAMESPACES:
                served.namespaces.popitem(last=False)
        if is_new:
            self._notice()

    def stop(self) -> None:
        """Begin no more lists; return when the waiting thread has ended."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()
            waiter = self._waiter
        if waiter is not None:
            waiter.join(timeout=5)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _notice(self) -> None:
        with self._condition:
            self._has_news = True
            self._condition.notify_all()

    def _run(self) -> None:
        while not self._is_stopping:
            due_s = self._look()
            with self._condition:
                if not self._has_news and not self._is_stopping:
                    self._condition.wait(min(LONGEST_WAIT_S, max(0.0, due_s - self._now())))

    def _look(self) -> float:
        """Begin the lists that are due; return when the next one is.

        While the thread waits it holds no reference to a poller, so a closed one is freed with its credentials.
        """
        with self._condition:
            self._pollers = {each: served for each, served in self._pollers.items() if not each.is_closed}
            pollers = list(self._pollers)
            self._has_news = False
        return min((self._begin(poller) for poller in pollers), default=float("inf"))

    def _begin(self, poller: ListPoller) -> float:
        """Begin the due lists for which there is room; return when the next one is due.

        Round-robin over pollers. Lists without room are retried when a thread is free.
        """
        while (due_s := poller.next_due_s()) <= self._now():
            if (lane := self._lane(poller)) is None:
                return float("inf")
            for kind in poller.due(1):
                with self._condition:
                    self._shares.begin(lane)
                    shares.publish("lists", self._shares)
                    if poller in self._pollers:
                        self._pollers[poller] = self._pollers.pop(poller)
                with contextlib.suppress(RuntimeError):  # the pool was shut down concurrently
                    self._threads.submit(self._list, poller, lane, kind)
        return due_s

    def _lane(self, poller: ListPoller) -> Lane | None:
        """Return the lane of a namespace that a poller serves and that has room, None if there is none."""
        with self._condition:
            if (served := self._pollers.get(poller)) is None:
                return None
            site, namespaces = served.site, list(served.namespaces) or [""]
        for namespace in reversed(namespaces):
            address = self._addresses.of(site.host, namespace) if site.host else ""
            lane = Lane(namespace, address, site.name)
            with self._condition:
                if not self._shares.lacks(lane):
                    return lane
        return None

    def _list(self, poller: ListPoller, lane: Lane, kind: str) -> None:
        try:
            poller.run(kind)
        finally:
            with self._condition:
                self._shares.end(lane)
                shares.publish("lists", self._shares)
            self._notice()
