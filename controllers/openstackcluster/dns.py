"""DNS lookups of the endpoint's host name, in threads of their own.

A reconcile never blocks on DNS: it starts a lookup, and its object is requeued after a second. Each namespace has a few
of the lookup threads (``capo/openstack/lookup_threads.py``), so a lookup that hangs delays no reconcile and no other
namespace. Answers are not cached for long: the answer selects the address of a cluster for its whole life, so it must
be current.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, field
from typing import Final

from capo import caches
from capo.engine.steps import Wait
from capo.openstack import lookup_threads
from capo.openstack.lookup_threads import LookupThreads

LIMIT_S: Final = 10.0
"""After this time without an answer the condition reports that DNS does not answer."""
SOON_S: Final = 1.0
AGAIN_S: Final = 15.0
"""Interval at which a failed lookup is retried."""
KEPT_S: Final = 60.0
"""An answer is reused for this time after its first use."""
FORGOTTEN_S: Final = 600.0
"""An unused answer is dropped after this time; longer than the timeout of any resolver."""


@dataclass(frozen=True)
class Answer:
    """The result of a lookup.

    Args:
        addresses: empty if the name does not exist.
        trouble: why the lookup failed, None if it did not.
    """

    addresses: tuple[str, ...] = ()
    trouble: str | None = None


@dataclass
class _Query:
    asked_s: float
    answer: Answer | None = None
    used_s: float | None = None


def lookup(host: str) -> Answer:
    """Resolve a name with the resolver of this host; blocks until it answers."""
    try:
        return Answer(lookup_threads.addresses_of(host))
    except socket.gaierror as error:
        # All other errors may be temporary: no server answers, the lookup fails, the name has no address records yet.
        return Answer() if error.errno == socket.EAI_NONAME else Answer(trouble=str(error.strerror or error))
    except ValueError:
        return Answer()  # not a DNS name: a label is empty or too long
    except OSError as error:
        return Answer(trouble=str(error))


@dataclass
class Resolver:
    """Lookups in progress and recent answers; thread safe, not persisted."""

    threads: LookupThreads = field(default_factory=LookupThreads)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queries: dict[str, _Query] = field(default_factory=dict)

    def __post_init__(self) -> None:
        caches.register("dns", self, lambda resolver: len(resolver._queries))

    def ask(self, host: str, *, namespace: str, now_s: float) -> Answer | None:
        """Return the answer, None while the lookup runs; never blocks.

        Args:
            namespace: of the object; its number of concurrent lookups is limited.
        """
        query = self._begin(host, now_s)
        if query is not None:
            self._start(query, host, namespace)
        with self._lock:
            return self._answer(host, now_s)

    def _begin(self, host: str, now_s: float) -> _Query | None:
        """Return a new query to start; None if the name has one."""
        with self._lock:
            self._queries = {name: query for name, query in self._queries.items() if _is_good(query, now_s)}
            if host in self._queries:
                return None
            query = self._queries[host] = _Query(now_s)
        return query

    def _start(self, query: _Query, host: str, namespace: str) -> None:
        def work() -> None:
            answer = Answer(trouble="the lookup ended without an answer")
            try:
                answer = lookup(host)
            finally:
                self._settle(query, answer)

        try:
            if not self.threads.start(work, namespace):
                self._withdraw(query, host)
        except RuntimeError as error:  # no more threads
            self._settle(query, Answer(trouble=str(error)))

    def _withdraw(self, query: _Query, host: str) -> None:
        with self._lock:
            if self._queries.get(host) is query:
                del self._queries[host]

    def _settle(self, query: _Query, answer: Answer) -> None:
        with self._lock:
            query.answer = answer

    def _answer(self, host: str, now_s: float) -> Answer | None:
        query = self._queries.get(host)
        if query is None:
            return None
        if query.answer is None:
            return Answer(trouble=f"no answer within {LIMIT_S:.0f} s") if now_s - query.asked_s >= LIMIT_S else None
        if query.answer.trouble:
            del self._queries[host]
        elif query.used_s is None:
            query.used_s = now_s
        return query.answer


def _is_good(query: _Query, now_s: float) -> bool:
    if query.answer is None:
        return True
    if query.used_s is not None:
        return now_s - query.used_s < KEPT_S
    return now_s - query.asked_s < FORGOTTEN_S


def addresses(resolver: Resolver, host: str, *, namespace: str, now_s: float) -> tuple[str, ...] | Wait:
    """Return the addresses of a name, empty if it does not exist; the wait while DNS has not answered or fails."""
    answer = resolver.ask(host, namespace=namespace, now_s=now_s)
    if answer is None:
        return Wait("ResolvingEndpoint", f"asking DNS for the addresses of {host!r}", SOON_S)
    if answer.trouble:
        text = (
            f"DNS does not say whether the control plane endpoint {host!r} has an address: {answer.trouble}; "
            f"asked again every {AGAIN_S:.0f} s. Check the name servers of the management cluster, "
            f"or give the name an address"
        )
        return Wait("ResolvingEndpoint", text, AGAIN_S)
    return answer.addresses
