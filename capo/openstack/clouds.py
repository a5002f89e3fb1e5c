"""The cache of all clouds in use."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from capo import caches
from capo.openstack.addresses import Addresses
from capo.openstack.cloud import Clock, Cloud, unfenced
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.observer_pool import ObserverPool, Site
from capo.openstack.transport import HttpSessions
from capo.shares import CloudKey

RECENT_S: Final = 300.0
"""A cloud that was asked for within this time is in use, whether objects are registered or not."""


@dataclass
class Clouds:
    """All clouds in use, one per set of credentials.

    Args:
        wake: called with a key whose resources changed or were listed; from any thread.
        fence: called before each write; raises when this process may not write any more.
        max_idle: how many clouds are kept that no object uses.
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
        self._pool = ObserverPool(self.clock.now, self._addresses)
        self._lock = threading.Lock()
        self._clouds: OrderedDict[str, Cloud] = OrderedDict()
        self._taken_s: dict[str, float] = {}
        caches.register("clouds", self, lambda clouds: len(clouds._clouds))
        caches.register("cloud_lookups", self, lambda clouds: clouds._total(lambda cloud: len(cloud.lookups)))
        caches.register("cloud_resources", self, lambda clouds: clouds._total(lambda cloud: cloud.observer.size()))
        caches.register("cloud_owners", self, lambda clouds: clouds._total(lambda cloud: len(cloud.observer.owners)))

    def _total(self, size: Callable[[Cloud], int]) -> int:
        with self._lock:
            clouds = list(self._clouds.values())
        return sum(map(size, clouds))

    def key_of(self, site: Site, namespace: str) -> CloudKey:
        """Return the budgets of a cloud, for an object of a namespace; never blocks."""
        return CloudKey(site.name, self._addresses.of(site.host, namespace))

    def get(self, credentials: Credentials, namespace: str = "") -> Cloud:
        """Return the cloud of these credentials; the same object as long as it is known.

        Args:
            namespace: that of the object it is for, whose share of the threads its lists may use.
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
        self._pool.serve(cloud.observer, namespace)
        return cloud

    def drop(self, fingerprint: str) -> None:
        """Forget a cloud; those that wait for its observer are woken."""
        with self._lock:
            cloud = self._clouds.pop(fingerprint, None)
            self._taken_s.pop(fingerprint, None)
        if cloud:
            cloud.close()

    def retain(self, fingerprints: Collection[str]) -> None:
        """Drop every cloud but those of these credentials: nothing uses the others any more."""
        with self._lock:
            surplus = self._clouds.keys() - set(fingerprints)
        for fingerprint in surplus:
            self.drop(fingerprint)
        caches.evicted("clouds", len(surplus))

    def distrust(self) -> None:
        """Prove each absence anew: the objects' records are older than what this process remembers of them."""
        with self._lock:
            clouds = list(self._clouds.values())
        for cloud in clouds:
            cloud.observer.owners.distrust()

    def close(self) -> None:
        """Stop observing all clouds."""
        self._pool.stop()

    def _made(self, credentials: Credentials) -> Cloud:
        http = self._http.of(credentials)
        cloud = Cloud(credentials, http, clock=self.clock, wake=self.wake, fence=self.fence)
        self._pool.add(cloud.observer, Site(credentials.site, credentials.host))
        return cloud

    def _evicted(self, keep: Cloud) -> list[Cloud]:
        """Take out the least recently used of the clouds that no object uses.

        One that was asked for lately is not taken out, although its object may not have made a whole pass yet: its
        token, or that it was refused one, would be forgotten.
        """
        recent_s = self.clock.now() - RECENT_S
        old = [c for c in self._clouds.values() if c is not keep and self._taken_s[c.fingerprint] <= recent_s]
        idle = [c for c in old if not c.observer.is_in_use()]
        surplus = idle[: max(0, len(idle) - self.max_idle)]
        for cloud in surplus:
            del self._clouds[cloud.fingerprint], self._taken_s[cloud.fingerprint]
        caches.evicted("clouds", len(surplus))
        return surplus
