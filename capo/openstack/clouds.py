"""Cache of all clouds in use, and of the state that those share whose tokens see the same."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from capo import caches
from capo.clock import Clock
from capo.gauges import Labels
from capo.openstack import metrics
from capo.openstack.addresses import Addresses
from capo.openstack.cloud import Cloud, unfenced
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.list_poller import ListPoller
from capo.openstack.pages import LARGEST_ANSWERS
from capo.openstack.poller_pool import PollerPool, Site
from capo.openstack.quota_places import QuotaPlaces
from capo.openstack.registrations import Registrations
from capo.openstack.resource_cache import NEVER_S
from capo.openstack.shared_state import SharedState
from capo.openstack.token_scope import TokenScope
from capo.openstack.transport import HttpSession, HttpSessions
from capo.shares import CloudKey

RECENT_S: Final = 300.0
"""A cloud that was requested within this time is in use, even if no object is registered."""
EVICTION_S: Final = 60.0
"""Clouds that no object uses are searched for at most this often, since that examines all."""


@dataclass
class Clouds:
    """All clouds in use, one per set of credentials.

    Args:
        wake: called with a key whose resources changed or were listed; from any thread.
        fence: called before each write; raises when this process may no longer write.
        max_idle: how many clouds that no object uses are kept.
        ca_certs: PEM file for clouds without a bundle of their own; empty means the system's certificates.
        uses_proxies: whether the proxies of the environment are used.
        session_kind: class of the HTTP sessions, such as one that only reads.
        sync_period_s: each object is reconciled at least once in this time.
    """

    clock: Clock
    wake: Callable[[Any], None]
    fence: Callable[[], None] = unfenced
    limits: Limits = field(default_factory=Limits)
    max_idle: int = 10
    ca_certs: str = ""
    uses_proxies: bool = False
    session_kind: type[HttpSession] = HttpSession
    sync_period_s: float = 0.0

    def __post_init__(self) -> None:
        self._http = HttpSessions(self.limits, self.ca_certs, uses_proxies=self.uses_proxies, kind=self.session_kind)
        self._addresses = Addresses(self.clock.now)
        self._pool = PollerPool(self.clock.now, self._addresses)
        self._lock = threading.Lock()
        self._clouds: OrderedDict[str, Cloud] = OrderedDict()
        self._taken_s: dict[str, float] = {}
        self._namespaces: dict[str, str] = {}
        """The namespace that used a cloud last."""
        self._evicted_s = NEVER_S
        self._shared: dict[TokenScope, SharedState] = {}
        self._registrations = Registrations(self.sync_period_s)
        self._places: weakref.WeakValueDictionary[tuple[object, ...], QuotaPlaces] = weakref.WeakValueDictionary()
        """By project and Keystone."""
        caches.register("clouds", self, lambda clouds: len(clouds._clouds))
        caches.register("shared_states", self, lambda clouds: len(clouds._shared))
        caches.register("cloud_lookups", self, lambda clouds: clouds._total(lambda state: len(state.lookups)))
        caches.register("cloud_resources", self, lambda clouds: clouds._total(lambda state: state.poller.size()))
        caches.register("quota_holds", self, lambda clouds: clouds._total(lambda state: len(state.quota_holds)))
        caches.register("quota_places", self, lambda clouds: sum(map(len, list(clouds._places.values()))))
        caches.register("cloud_owners", self, lambda clouds: clouds._total(lambda state: len(state.poller.owners)))

        known = weakref.ref(self)
        metrics.CLOUDS_FAILING.set_function(lambda: _failing(known()))

    def _total(self, size: Callable[[SharedState], int]) -> int:
        return sum(map(size, self._states()))

    def _states(self) -> list[SharedState]:
        with self._lock:
            return list(self._shared.values())

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
            ended = [cloud] if cloud is not None and cloud.joined and cloud.joined.poller.is_closed else []
            now_s = self.clock.now()
            if cloud is None or ended:
                cloud = self._made(credentials)
                self._clouds[credentials.fingerprint] = cloud
            self._clouds.move_to_end(credentials.fingerprint)
            self._taken_s[credentials.fingerprint] = now_s
            self._namespaces[credentials.fingerprint] = namespace
            evicted = self._evicted(now_s) if now_s >= self._evicted_s + EVICTION_S else []
        self._close([*ended, *evicted])
        if (state := cloud.joined) is not None:
            self._pool.serve(state.poller, namespace)
        return cloud

    def join(self, cloud: Cloud, scope: TokenScope) -> SharedState:
        """Return the state of a scope, with the cloud among its members."""
        with self._lock:
            state = self._shared.get(scope)
            if state is None or not state.join(cloud):
                places = self._places_of(scope)
                state = SharedState(scope, self.clock.now, self.wake, self._registrations, places)
                self._shared[scope] = state
                state.join(cloud)
                self._observe(state.poller, Site(cloud.credentials.site, cloud.credentials.host))
            namespace = self._namespaces.get(cloud.fingerprint, "")
        self._pool.serve(state.poller, namespace)
        return state

    def _places_of(self, scope: TokenScope) -> QuotaPlaces:
        """Return what is kept in the quotas of a project, for all credentials that are used of it."""
        return self._places.setdefault((scope.project_id, *scope.keystone), QuotaPlaces(self.clock.now))

    def end(self, cloud: Cloud) -> None:
        """Close a cloud, such as one whose token has another scope than before; its credentials open a new one."""
        with self._lock:
            if self._clouds.get(cloud.fingerprint) is cloud:
                self._forget(cloud.fingerprint)
        self._close([cloud])

    def peek(self, credentials: Credentials) -> Cloud | None:
        """Return the cached cloud of these credentials, None if there is none."""
        with self._lock:
            return self._clouds.get(credentials.fingerprint)

    def in_use(self) -> list[Cloud]:
        """Return the clouds that objects use; sends no request."""
        with self._lock:
            clouds = list(self._clouds.values())
        return [cloud for cloud in clouds if cloud.joined and cloud.joined.poller.is_in_use(cloud.fingerprint)]

    def drop(self, fingerprint: str) -> None:
        """Evict a cloud; wake the keys that wait for its poller."""
        with self._lock:
            cloud = self._forget(fingerprint)
        self._close([cloud] if cloud else [])

    def retain(self, fingerprints: Collection[str]) -> None:
        """Evict every cloud but those of these credentials; no object uses the others."""
        with self._lock:
            surplus = self._clouds.keys() - set(fingerprints)
        for fingerprint in surplus:
            self.drop(fingerprint)
        caches.evicted("clouds", len(surplus))

    def distrust(self, window_s: float) -> None:
        """Require a new proof of each absence: the objects' records are older than the state of this process.

        Args:
            window_s: how long a create whose intent is lost may take effect.
        """
        for state in self._states():
            state.poller.owners.distrust(window_s)

    def distrust_object(self, key: Hashable) -> None:
        """Require a new proof of each absence for one object: another manager may have acted for it."""
        for state in self._states():
            state.poller.owners.distrust_key(key)

    def close(self) -> None:
        """Stop observing all clouds."""
        self._pool.stop()

    def _made(self, credentials: Credentials) -> Cloud:
        http = self._http.of(credentials)
        return Cloud(
            credentials,
            http,
            clock=self.clock,
            wake=self.wake,
            fence=self.fence,
            sharing=self,
            max_list_bytes=LARGEST_ANSWERS * self.limits.max_bytes,
        )

    def _observe(self, poller: ListPoller, site: Site) -> None:
        """Run the lists of a poller until it is closed."""
        self._pool.add(poller, site)

    def _forget(self, fingerprint: str) -> Cloud | None:
        self._taken_s.pop(fingerprint, None)
        self._namespaces.pop(fingerprint, None)
        return self._clouds.pop(fingerprint, None)

    def _close(self, clouds: Iterable[Cloud]) -> None:
        for cloud in clouds:
            cloud.close()
            state = cloud.joined
            with self._lock:
                if state is not None and state.poller.is_closed and self._shared.get(state.scope) is state:
                    del self._shared[state.scope]

    def _evicted(self, now_s: float) -> list[Cloud]:
        """Remove and return the least recently used clouds that no object uses.

        A cloud that was requested recently is kept, even if its object has not completed a reconcile yet: evicting it
        would discard its token, or the record that a login was refused.
        """
        self._evicted_s = now_s
        # In the order of their last use, so those that were used recently end the search.
        old = itertools.takewhile(lambda c: self._taken_s[c.fingerprint] <= now_s - RECENT_S, self._clouds.values())
        idle = [c for c in old if c.joined is None or not c.joined.poller.is_in_use(c.fingerprint)]
        surplus = idle[: max(0, len(idle) - self.max_idle)]
        for cloud in surplus:
            self._forget(cloud.fingerprint)
        caches.evicted("clouds", len(surplus))
        return surplus


def _failing(clouds: Clouds | None) -> dict[Labels, float]:
    """Return how many clouds fail, by the namespace that uses them and the host of their Identity service."""
    failing = [state for state in clouds._states() if state.poller.is_failing()] if clouds else []
    found = Counter((name, state.auth_host) for state in failing for name in state.poller.owners.namespaces() or {""})
    return {labels: float(count) for labels, count in found.items()}
