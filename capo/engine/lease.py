"""The lease that lets one replica act at a time.

Ours, because the official helpers do not notice a renewal that hangs, do not release at exit, and let connection
errors end the election (measured). Compatible with client-go's: same object, same fields, so that the Go provider and
this one never act together.
"""

from __future__ import annotations

import datetime
import logging
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo.engine import metrics
from capo.kube import models
from capo.kube.client import Kube
from capo.kube.errors import Conflict, KubeError, NotLeading
from capo.kube.kinds import LEASE

log = logging.getLogger(__name__)

NAME: Final = "controller-leader-election-capo"


@dataclass(frozen=True)
class Terms:
    """How long things take, in seconds.

    Args:
        duration_s: others wait so long, from the last change that they saw, before they take the lease.
        renew_deadline_s: the holder gives up after so long without a renewal; less than the duration.
        retry_s: pause between two attempts.
    """

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    @property
    def call_timeout_s(self) -> float:
        """Return the limit of one call: two must fit into the deadline, or one that hangs loses the lease."""
        return self.renew_deadline_s / 2


@dataclass
class Lease:
    """This process's part in the election.

    Args:
        kube: a client of its own, without a fence, whose calls end within ``terms.call_timeout_s``.
        identity: unique per process.
        on_lost: called once when a lease that was held is no more; it is expected to end the process.
        clock: monotonic seconds: how long ago a change was observed counts, never what a clock elsewhere said.
    """

    kube: Kube
    namespace: str
    terms: Terms
    on_lost: Callable[[], None]
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4()}")
    clock: Callable[[], float] = time.monotonic
    _known: Mapping[str, Any] | None = None
    _observed: tuple[object, float] | None = None
    _held_until_s: float | None = None
    _is_ending: threading.Event = field(default_factory=threading.Event)
    _has_started: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, on_acquired: Callable[[], None]) -> None:
        """Take part in the election from a thread; call back, from there, when the lease is ours."""
        for name, target in (("lease", lambda: self._campaign(on_acquired)), ("lease-watchdog", self._watch)):
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def fence(self) -> None:
        """Return while the lease is surely ours.

        Raises:
            NotLeading: it is not, or its renewal is overdue.
        """
        if not self.is_held():
            raise NotLeading("the lease is not surely held: nothing may be written")

    def is_held(self) -> bool:
        """Return whether this process holds the lease, so that no other process can act."""
        return self._held_until_s is not None and self.clock() < self._held_until_s

    def release(self) -> None:
        """End taking part; give the lease back if it is ours, so that the next holder starts at once.

        Call it only when no write is in flight.
        """
        was_held = self.is_held()
        self.end()
        if self._threads:
            self._threads[0].join(self.terms.call_timeout_s)
        self._held_until_s = None
        if not was_held:
            return
        try:
            lease = self.kube.get(LEASE, self.namespace, NAME)
            if lease and lease["spec"].get("holderIdentity") == self.identity:
                renewed = models.to_json(_now())
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": renewed}
                self.kube.replace(LEASE, {**lease, "spec": spec})
                log.info("Lease released")
        except KubeError as error:
            log.warning("Lease could not be released; it runs out by itself", extra={"err": str(error)})

    def end(self) -> None:
        """Stop renewing; the lease runs out by itself."""
        self._is_ending.set()

    def attempt(self) -> bool:
        """Acquire or renew once; return whether the lease is ours now.

        Raises:
            KubeError: the API server did not answer or refused.
        """
        began_s = self.clock()
        known, self._known = self._known, None  # whatever goes wrong, look again before the next attempt
        lease = known or self.kube.get(LEASE, self.namespace, NAME)
        if lease is None:
            self._known = self.kube.create(LEASE, self._new())
        elif self._may_take(lease):
            self._known = self.kube.replace(LEASE, self._mine(lease))
        else:
            return False
        # From before the call: what counts is when the others may have seen it at the earliest.
        self._held_until_s = began_s + self.terms.renew_deadline_s
        return True

    def _may_take(self, lease: Mapping[str, Any]) -> bool:
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity")
        version = lease["metadata"]["resourceVersion"]
        if self._observed is None or self._observed[0] != version:
            self._observed = (version, self.clock())
        if not holder or holder == self.identity:
            return True
        duration_s = float(spec.get("leaseDurationSeconds") or self.terms.duration_s)
        return self.clock() >= self._observed[1] + duration_s

    def _campaign(self, on_acquired: Callable[[], None]) -> None:
        log.info("Waiting for the lease", extra={"lease": f"{self.namespace}/{NAME}", "identity": self.identity})
        metrics.LEADING.labels(NAME).set(0)
        while not self._is_ending.is_set():
            is_ours = self._try()
            if is_ours and not self._has_started.is_set():
                log.info("Lease acquired", extra={"identity": self.identity})
                metrics.LEADING.labels(NAME).set(1)
                self._has_started.set()
                on_acquired()
            elif is_ours is False and self._has_started.is_set():
                self._lose("somebody else holds it")
                return
            self._is_ending.wait(self.terms.retry_s * random.uniform(1.0, 1.2))  # noqa: S311 - no secret

    def _try(self) -> bool | None:
        """Attempt once; None: nothing is known."""
        try:
            return self.attempt()
        except Conflict:
            return None  # somebody was quicker, or changed the object: look again
        except KubeError as error:
            log.warning("Lease could not be renewed or acquired", extra={"err": str(error)})
            return None

    def _watch(self) -> None:
        """See a lease run out even while a call to renew it hangs."""
        while not self._has_started.wait(self.terms.retry_s):
            if self._is_ending.is_set():
                return
        while not self._is_ending.is_set():
            left_s = (self._held_until_s or 0.0) - self.clock()
            if left_s <= 0:
                self._lose("its renewal is overdue")
                return
            self._is_ending.wait(left_s)

    def _lose(self, why: str) -> None:
        if self._is_ending.is_set():
            return
        self._is_ending.set()
        self._held_until_s = None
        metrics.LEADING.labels(NAME).set(0)
        log.error("Lease lost", extra={"why": why, "identity": self.identity})
        self.on_lost()

    def _new(self) -> dict[str, Any]:
        spec = self._spec(transitions=0, is_acquired=True)
        metadata = {"name": NAME, "namespace": self.namespace}
        return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}

    def _mine(self, lease: Mapping[str, Any]) -> dict[str, Any]:
        old = lease.get("spec") or {}
        is_renewal = old.get("holderIdentity") == self.identity
        transitions = int(old.get("leaseTransitions") or 0) + (0 if is_renewal else 1)
        return {**lease, "spec": {**old, **self._spec(transitions=transitions, is_acquired=not is_renewal)}}

    def _spec(self, *, transitions: int, is_acquired: bool) -> dict[str, Any]:
        now = _now()
        return models.lease_spec(
            self.identity,
            duration_s=self.terms.duration_s,
            transitions=transitions,
            renewed=now,
            acquired=now if is_acquired else None,
        )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
