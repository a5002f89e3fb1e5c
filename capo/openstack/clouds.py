"""Cache of all clouds in use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from capo import caches
from capo.clock import Clock
from capo.openstack.addresses import Addresses
from capo.openstack.cloud import Cloud, unfenced
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.poller_pool import PollerPool, Site
from capo.openstack.transport import HttpSessions
from capo.shares import CloudKey

RECENT_S: Final = 300.0
"""A cloud that was requested within this time is in use, even if no object is registered."""


@dataclass
class Clouds:
    """All clouds in use, one per set of credentials.

    Args:
        wake: called with a key whose resources changed or were listed; from any thread.
        fence: called before each write; raises when this process may no longer write.
        max_idle: how many clouds that no object uses are kept.
        ca_certs: PEM file for clouds without a bundle of their own; empty means the system's certificates.
        uses_proxies: whether the proxies of the environment are used.
    """

    clock: Clock
    wake: Callable[[Any], None]
    fence: Callable[[], None] = unfenced
    limits: Limits = field(default_factory=Limits)
    max_idle: int = 10
    ca_certs: str = ""
    uses_proxies: bool = False

    def __post_init__(self) -> None:
        self._http = HttpSessions(self.limits, self.ca_certs, uses_proxies=self.uses_proxies)
        self._addresses = Addresses(self.clock.now)
        self._pool = PollerPool(self.clock.now, self._addresses)
        self._lock = threading.Lock()
        self._clouds: OrderedDict[str, Cloud] = OrderedDict()
        self._taken_s: dict[str, float] = {}
        caches.register("clouds", self, lambda clouds: len(clouds._clouds))
        caches.register("cloud_lookups", self, lambda clouds: clouds._total(lambda cloud: len(cloud.lookups)))
        caches.register("cloud_resources", self, lambda clouds: clouds._total(lambda cloud: cloud.poller.size()))
        caches.register("cloud_owners", self, lambda clouds: clouds._total(lambda cloud: len(cloud.poller.owners)))

    def _total(self, size: Callable[[Cloud], int]) -> int:
        with self._lock:
            clouds = list(self._clouds.values())
        return sum(map(size, clouds))

    def key_of(self, site: Site, namespace: str) -> CloudKey:
        """Return the budgets of a cloud, for an object of a namespace; never blocks."""
        return CloudKey(site.name, self._addresses.of(site.host, namespace))

    def get(self, credentials: Credentials, namespace: str = "") -> Cloud:
        """Return the cloud of these credentials; the same object while it is cached.

        Args:
            namespace: namespace of the object that uses the cloud; the lists use its share of the threads.
        """
        with self._lock:
            cloud = self._clouds.get(credentials.fingerprint)
            if cloud is None:
                cloud = self._made(credentials)
                self._clouds[credentials.fingerprint] = cloud
            self._clouds.move_to_end(credentials.fingerprint)
            self._taken_s[credentials.fingerprint] = self.clock.now()
            evicted = self._evicted(keep=cloud)
        for old in evicted:
            old.close()
        self._pool.serve(cloud.poller, namespace)
        return cloud

    def peek(self, credentials: Credentials) -> Cloud | None:
        """Return the cached cloud of these credentials, None if there is none."""
        with self._lock:
            return self._clouds.get(credentials.fingerprint)

    def drop(self, fingerprint: str) -> None:
        """Evict a cloud; wake the keys that wait for its poller."""
        with self._lock:
            cloud = self._clouds.pop(fingerprint, None)
            self._taken_s.pop(fingerprint, None)
        if cloud:
            cloud.close()

    def retain(self, fingerprints: Collection[str]) -> None:
        """Evict every cloud but those of these credentials; no object uses the others."""
        with self._lock:
            surplus = self._clouds.keys() - set(fingerprints)
        for fingerprint in surplus:
            self.drop(fingerprint)
        caches.evicted("clouds", len(surplus))

    def distrust(self) -> None:
        """Require a new proof of each absence: the objects' records are older than the state of this process."""
        with self._lock:
            clouds = list(self._clouds.values())
        for cloud in clouds:
            cloud.poller.owners.distrust()

    def close(self) -> None:
        """Stop observing all clouds."""
        self._pool.stop()

    def _made(self, credentials: Credentials) -> Cloud:
        http = self._http.of(credentials)
        cloud = Cloud(credentials, http, clock=self.clock, wake=self.wake, fence=self.fence)
        self._pool.add(cloud.poller, Site(credentials.site, credentials.host))
        return cloud

    def _evicted(self, keep: Cloud) -> list[Cloud]:
        """Remove and return the least recently used clouds that no object uses.

        A cloud that was requested recently is kept, even if its object has not completed a reconcile yet: evicting it
        would discard its token, or the record that a login was refused.
        """
        recent_s = self.clock.now() - RECENT_S
        old = [c for c in self._clouds.values() if c is not keep and self._taken_s[c.fingerprint] <= recent_s]
        idle = [c for c in old if not c.poller.is_in_use()]
        surplus = idle[: max(0, len(idle) - self.max_idle)]
        for cloud in surplus:
            del self._clouds[cloud.fingerprint], self._taken_s[cloud.fingerprint]
        caches.evicted("clouds", len(surplus))
        return surplus
