"""The lease that lets one replica act at a time.

Ours, because the official helpers do not notice a renewal that hangs, do not release at exit, and let connection
errors end the election (measured). Compatible with client-go's: same object, same fields, so that the Go provider and
this one never act together.
"""

from __future__ import annotations

import datetime
import logging
import math
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from capo import names
from capo.engine import metrics
from capo.kube import models
from capo.kube.client import Kube
from capo.kube.errors import Conflict, KubeError, NotLeading
from capo.kube.kinds import LEASE

log = logging.getLogger(__name__)

NAME: Final = names.LEASE
SHARED: Final = "shared_"
"""Prefix of the holder of the common lease that does not act by it; see :class:`CommonLease`."""


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

    @property
    def sharing_call_timeout_s(self) -> float:
        """Return the limit where the common lease is shared: a renewal that is only seen counts from an attempt before.

        So one call that hangs has to fit into the deadline beside three pauses.
        """
        return self.renew_deadline_s / 4


@dataclass
class Lease:
    """This process's part in the election.

    Args:
        kube: a client of its own, without a fence, whose calls end within ``terms.call_timeout_s``.
        identity: unique per process.
        on_lost: called once when a lease that was held is no more; it is expected to end the process.
        clock: monotonic seconds: how long ago a change was observed counts, never what a clock elsewhere said.
        common: with another name than the common one: what keeps out managers that know the common lease alone.
    """

    held: ClassVar[str] = "Lease is held by another manager"
    kube: Kube
    namespace: str
    terms: Terms
    on_lost: Callable[[], None]
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4()}")
    clock: Callable[[], float] = time.monotonic
    name: str = NAME
    common: CommonLease | None = None
    _holder: str | None = None
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
            lease = self.kube.get(LEASE, self.namespace, self.name)
            if lease and lease["spec"].get("holderIdentity") == self.identity:
                renewed = models.to_json(_now())
                spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": renewed}
                self.kube.replace(LEASE, {**lease, "spec": spec})
                log.info("Lease released", extra={"lease": self.name})
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
        if self.common and not self.common.attempt():
            return False
        known, self._known = self._known, None  # whatever goes wrong, look again before the next attempt
        lease = known or self.kube.get(LEASE, self.namespace, self.name)
        if lease is None:
            self._known = self.kube.create(LEASE, self._new())
        elif self._may_take(lease):
            self._known = self.kube.replace(LEASE, self._mine(lease))
        else:
            return self._may_share(lease)
        # From before the call: what counts is when the others may have seen it at the earliest.
        renewed_s = min(began_s, self.common.renewed_s) if self.common else began_s
        self._held_until_s = renewed_s + self.terms.renew_deadline_s
        return True

    def _may_share(self, lease: Mapping[str, Any]) -> bool:
        """Return whether this process may act although another one holds a lease; log who does."""
        holder = str(lease["spec"]["holderIdentity"])
        if holder != self._holder:
            log.info(self.held, extra={"lease": f"{self.namespace}/{self.name}", "holder": holder})
        self._holder = holder
        return False

    def _may_take(self, lease: Mapping[str, Any]) -> bool:
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity")
        version = lease["metadata"]["resourceVersion"]
        if self._observed is None or self._observed[0] != version:
            self._observed = (version, self.clock())
        if not holder or holder == self.identity:
            return True
        return self.clock() >= self._observed[1] + float(spec.get("leaseDurationSeconds") or self.terms.duration_s)

    def _campaign(self, on_acquired: Callable[[], None]) -> None:
        log.info("Waiting for the lease", extra={"lease": f"{self.namespace}/{self.name}", "identity": self.identity})
        metrics.LEADING.labels(self.name).set(0)
        while not self._is_ending.is_set():
            is_ours = self._try()
            if is_ours and not self._has_started.is_set():
                log.info("Lease acquired", extra={"identity": self.identity})
                metrics.LEADING.labels(self.name).set(1)
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
        metrics.LEADING.labels(self.name).set(0)
        log.error("Lease lost", extra={"why": why, "identity": self.identity})
        self.on_lost()

    def _new(self) -> dict[str, Any]:
        spec = self._spec(transitions=0, is_acquired=True)
        metadata = {"name": self.name, "namespace": self.namespace}
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


@dataclass
class CommonLease(Lease):
    """The common lease as managers with leases of their own use it: one holds it for all of them.

    Other releases, the Go provider and managers with the default name act by it. So they and those with other names
    never act at the same time, also while an update replaces one by the other. The holder's name shows that it is
    shared: others keep annotations that they do not know. The attempts are those of the manager's own lease. It is not
    released: the next of the managers that share it takes it, before it expires for others.

    Those that do not hold it act by the renewals that they see. One that has seen none for half the deadline, or none
    at all, takes it.
    """

    held = "A manager without --leader-elect-resource-name holds the common lease: waiting for it to end"
    renewed_s: float = -math.inf
    """The last renewal that is known was not earlier; others wait for the duration of the lease from then."""
    _began_s: float = 0.0
    _read: tuple[object, float] | None = None

    def __post_init__(self) -> None:
        self.identity = SHARED + self.identity

    def attempt(self) -> bool:
        """Take or renew the lease, if it is due; return whether those that share it may act."""
        self._began_s = self.clock()
        try:
            is_permitted = super().attempt()
        except Conflict:  # another took it; without a second look the manager's own lease would miss a renewal
            is_permitted = super().attempt()
        if self._known:  # this attempt wrote it
            self._read, self.renewed_s = (self._known["spec"], self._began_s), self._began_s
        metrics.LEADING.labels(self.name).set(self.is_held())
        return is_permitted

    def _may_share(self, lease: Mapping[str, Any]) -> bool:
        self._held_until_s = None
        return _is_shared(lease) or super()._may_share(lease)

    def _may_take(self, lease: Mapping[str, Any]) -> bool:
        if (lease.get("spec") or {}).get("holderIdentity") != self.identity:
            self._witness(lease)
        is_due = self.clock() >= self.renewed_s + self.terms.renew_deadline_s / 2
        return super()._may_take(lease) or (_is_shared(lease) and is_due)

    def _witness(self, lease: Mapping[str, Any]) -> None:
        """Note a renewal by another manager: it was later than the last call that showed the lease without it."""
        # Not the version: an edit of the metadata is no renewal for client-go.
        spec = lease.get("spec")
        if self._read and self._read[0] != spec:
            self.renewed_s = self._read[1]
        self._read = (spec, self._began_s)


def _is_shared(lease: Mapping[str, Any]) -> bool:
    return str((lease.get("spec") or {}).get("holderIdentity")).startswith(SHARED)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
