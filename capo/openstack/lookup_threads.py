"""Threads for lookups of names, which tenants choose and whose name servers they may run.

``getaddrinfo`` cannot be cancelled and takes as long as resolv.conf lets it. So lookups have threads of their own, each
namespace a few of them, and nobody waits for one.
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
"""The last threads are for namespaces that use none."""


def in_thread(work: Callable[[], None]) -> None:
    """Do work in a thread that does not hold up the end of the process."""
    threading.Thread(target=work, name="dns", daemon=True).start()


def addresses_of(host: str) -> tuple[str, ...]:
    """Ask the resolver of this machine; blocks for as long as that takes.

    Raises:
        OSError: the name has no address, or DNS does not answer; ``socket.gaierror`` says which.
        ValueError: it is no name of DNS: a part of it is empty or too long.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


class LookupThreads:
    """Counts the lookups that run, by namespace; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    def start(self, work: Callable[[], None], namespace: str) -> bool:
        """Do work in a thread; False: there is none for the namespace now.

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
