"""What DNS says of the endpoint's host name, asked in threads of its own.

A pass never waits for DNS: it asks, and its object is reconciled again a second later. Each namespace has a few of the
threads that do nothing else (``capo/openstack/lookup_threads.py``), so that one that hangs holds up no pass, and a
namespace whose names hang holds up no other. No answer is kept for later: it chooses an address for the whole life of
a cluster, which an old one must not.
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
"""After so long without an answer the user is told that DNS does not answer."""
SOON_S: Final = 1.0
AGAIN_S: Final = 15.0
"""How often a name is asked for again that could not be resolved."""
KEPT_S: Final = 60.0
"""For how long an answer serves the passes that make use of it."""
FORGOTTEN_S: Final = 600.0
"""An answer that nobody fetched is not used any more; longer than any resolver takes."""


@dataclass(frozen=True)
class Answer:
    """What DNS says of a name.

    Args:
        addresses: none when DNS says that the name does not exist.
        trouble: why DNS says nothing, None if it does.
    """

    addresses: tuple[str, ...] = ()
    trouble: str | None = None


@dataclass
class _Query:
    asked_s: float
    answer: Answer | None = None
    used_s: float | None = None


def lookup(host: str) -> Answer:
    """Ask the resolver of this machine; blocks for as long as that takes."""
    try:
        return Answer(lookup_threads.addresses_of(host))
    except socket.gaierror as error:
        # Everything else may be otherwise the next moment: no server answers, it fails, the name has other records yet.
        return Answer() if error.errno == socket.EAI_NONAME else Answer(trouble=str(error.strerror or error))
    except ValueError:
        return Answer()  # no name of DNS: a part of it is empty or too long
    except OSError as error:
        return Answer(trouble=str(error))


@dataclass
class Resolver:
    """The names that are being resolved; thread safe, lost with the process."""

    threads: LookupThreads = field(default_factory=LookupThreads)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queries: dict[str, _Query] = field(default_factory=dict)

    def __post_init__(self) -> None:
        caches.register("dns", self, lambda resolver: len(resolver._queries))

    def ask(self, host: str, *, namespace: str, now_s: float) -> Answer | None:
        """Return what DNS says, None while it is being asked; never blocks.

        Args:
            namespace: that of the object that asks, whose lookups are limited.
        """
        query = self._begin(host, now_s)
        if query is not None:
            self._start(query, host, namespace)
        with self._lock:
            return self._answer(host, now_s)

    def _begin(self, host: str, now_s: float) -> _Query | None:
        """Return a query that is to be sent; None while there is one."""
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
    """Return the addresses of a name, none for one that does not exist; the wait for DNS while it says neither."""
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
