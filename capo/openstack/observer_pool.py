"""The threads in which the lists of all clouds are made; what is due, and when, is each observer's own affair."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from capo.openstack.observer import Observer

MAX_PER_SITE: Final = 8
"""Lists at once in one cloud, over all its projects: one that hangs leaves threads to the others."""
MAX_THREADS: Final = 32
LONGEST_WAIT_S: Final = 3600.0


class ObserverPool:
    """Runs the lists of all observers: one thread that waits, a few that list."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._condition = threading.Condition()
        self._sites: dict[Observer, str] = {}
        self._running: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="list")
        self._is_stopping = False
        self._has_news = False
        self._waiter: threading.Thread | None = None

    def add(self, observer: Observer, site: str = "") -> None:
        """Run an observer's lists from now on, until it is closed.

        Args:
            site: the cloud that is listed; no more than :data:`MAX_PER_SITE` lists run in one at once.
        """
        observer.due_changed = self._notice
        with self._condition:
            self._sites[observer] = site
            if self._waiter is None and not self._is_stopping:
                self._waiter = threading.Thread(target=self._run, name="observer", daemon=True)
                self._waiter.start()
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
        while True:
            with self._condition:
                if self._is_stopping:
                    return
                self._sites = {observer: site for observer, site in self._sites.items() if not observer.is_closed}
                sites = dict(self._sites)
                self._has_news = False
            for observer, site in sites.items():
                self._begin(observer, site)
            waiting = [observer.next_due_s() for observer, site in sites.items() if self._room(site)]
            due_s = min(waiting, default=float("inf"))
            with self._condition:
                if not self._has_news and not self._is_stopping:
                    self._condition.wait(min(LONGEST_WAIT_S, max(0.0, due_s - self._now())))

    def _begin(self, observer: Observer, site: str) -> None:
        """Begin what is due, as far as there is room; whoever had his turn goes to the end of the row."""
        for kind in observer.due(self._room(site)):
            with self._condition:
                self._running[site] += 1
                if observer in self._sites:
                    self._sites[observer] = self._sites.pop(observer)
            with contextlib.suppress(RuntimeError):  # the pool was shut down meanwhile
                self._threads.submit(self._list, observer, site, kind)

    def _room(self, site: str) -> int:
        with self._condition:
            return MAX_PER_SITE - self._running[site]

    def _list(self, observer: Observer, site: str, kind: str) -> None:
        try:
            observer.run(kind)
        finally:
            with self._condition:
                self._running[site] -= 1
                self._running += Counter()  # else every site ever seen stays
            self._notice()
