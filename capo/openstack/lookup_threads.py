"""Threads for DNS lookups: tenants choose the names, and may run the name servers.

``getaddrinfo`` cannot be cancelled and its duration is limited by resolv.conf only. So lookups have their own threads,
each namespace a few of them, and no caller waits for one.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

THREADS: Final = 16
PER_NAMESPACE: Final = 2
KEPT: Final = 4
"""The last threads are reserved for namespaces that use none."""


def in_thread(work: Callable[[], None]) -> None:
    """Run work in a daemon thread, which does not delay the exit of the process."""
    threading.Thread(target=work, name="dns", daemon=True).start()


def addresses_of(host: str) -> tuple[str, ...]:
    """Resolve a name by this machine's resolver; blocks without a time limit.

    Raises:
        OSError: the name has no address, or DNS does not answer; ``socket.gaierror`` distinguishes the two.
        ValueError: it is no DNS name: a label is empty or too long.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


class LookupThreads:
    """Counts the lookups that run, by namespace; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    def start(self, work: Callable[[], None], namespace: str) -> bool:
        """Run work in a thread; return False if the namespace has no free thread now.

        Raises:
            RuntimeError: the machine has no more threads.
        """
        with self._lock:
            used, free = self._running[namespace], THREADS - self._running.total()
            if used >= PER_NAMESPACE or free <= (KEPT if used else 0):
                self._drop_zero(namespace)
                return False
            self._running[namespace] += 1

        def run() -> None:
            try:
                work()
            finally:
                self._end(namespace)

        try:
            in_thread(run)
        except RuntimeError:
            self._end(namespace)
            raise
        return True

    def _end(self, namespace: str) -> None:
        with self._lock:
            self._running[namespace] -= 1
            self._drop_zero(namespace)

    def _drop_zero(self, namespace: str) -> None:
        if not self._running[namespace]:
            del self._running[namespace]
