"""Claims and IPAddresses whose pool is gone, as after somebody removed its finalizer: they can be deleted.

Nothing shows what the reclaim policy was, so their floating IPs are kept, and an Event names them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capo.engine.context import Dependencies
from capo.engine.store import Route, Store
from capo.engine.worker import Result
from capo.json_types import Object
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, OPENSTACK_FLOATING_IP_POOL, Key, Kind
from capo.shares import CloudKey
from controllers import ipam_versions
from controllers.openstackfloatingippool import ipam, ipam_writes

log = logging.getLogger(__name__)

KEPT: Final = "FloatingIPKept"


def _routes(kind: Kind, finalizer: str) -> tuple[Route, ...]:
    """Return the routes from an object and from its pool, whose end may be all that an object waits for.

    The pool has the label of the watch filter, its claims may have none: our finalizer shows that they were handled.
    """

    def of_itself(obj: Object, _store: Store) -> list[ipam.Ident]:
        return [ipam.ident(obj)] if ipam.is_held(obj, finalizer) else []

    def of_pool(pool: Object, store: Store) -> list[ipam.Ident]:
        if store.get(OPENSTACK_FLOATING_IP_POOL, *ipam.ident(pool)) is not None:
            return []
        return [ipam.ident(each) for each in ipam.of_pool(kind, pool, store) if ipam.is_held(each, finalizer)]

    return Route(kind, of_itself, is_filtered=False), Route(OPENSTACK_FLOATING_IP_POOL, of_pool, is_filtered=False)


@dataclass(frozen=True)
class _OrphanController:
    """What both controllers share: they call no cloud and wait for no other kind."""

    deps: Dependencies
    concurrency: int = 1

    def cloud_key(self, key: Key) -> CloudKey:
        """Return an empty key: no cloud is called."""
        return CloudKey()

    def resolve_cloud(self, key: Key) -> bool:
        """Return True: no cloud is called."""
        return True

    def _is_orphan(self, obj: Object) -> bool:
        """Return whether the pool of an object is gone; the store may lag behind the API server."""
        pool = ipam.pool_of(obj)
        return pool is not None and self.deps.kube.get(OPENSTACK_FLOATING_IP_POOL, *pool) is None


@dataclass(frozen=True)
class OrphanedAddressController(_OrphanController):
    """Removes the finalizer of IPAddresses that are being deleted and whose pool is gone."""

    name: str = "openstackfloatingippool-ipaddress"
    kind: Kind = IP_ADDRESS
    routes: Sequence[Route] = _routes(IP_ADDRESS, ipam.ADDRESS_FINALIZER)

    def reconcile(self, key: Key) -> Result:
        """Release an IPAddress."""
        address = self.deps.store.get(*key)
        if address and ipam.is_held(address, ipam.ADDRESS_FINALIZER) and self._is_orphan(address):
            _let_go(self.deps, address, by=key)
        return Result()


@dataclass(frozen=True)
class OrphanedClaimController(_OrphanController):
    """Deletes the IPAddress of a claim that is being deleted and whose pool is gone, then removes its finalizer."""

    name: str = "openstackfloatingippool-ipaddressclaim"
    kind: Kind = IP_ADDRESS_CLAIM
    routes: Sequence[Route] = _routes(IP_ADDRESS_CLAIM, ipam.CLAIM_FINALIZER)

    def reconcile(self, key: Key) -> Result:
        """Release the address of a claim."""
        claim = self.deps.store.get(*key)
        is_held = claim is not None and ipam.is_held(claim, ipam.CLAIM_FINALIZER) and ipam.is_let_go(claim)
        if claim is None or not is_held or not self._is_orphan(claim):
            return Result()
        address = ipam_versions.get(self.deps.kube, IP_ADDRESS, key.namespace, key.name)
        if address is not None and ipam.is_of(address, claim):
            ipam_writes.delete_address(self.deps, address, by=key)
            _let_go(self.deps, address, by=key)
        ipam_writes.remove_finalizer(self.deps, IP_ADDRESS_CLAIM, claim, ipam.CLAIM_FINALIZER, by=key)
        return Result()


def _let_go(deps: Dependencies, address: Object, *, by: Key) -> None:
    if not ipam_writes.remove_finalizer(deps, IP_ADDRESS, address, ipam.ADDRESS_FINALIZER, by=by):
        return
    ip = ipam.ip_of(address)
    log.info("Released an IPAddress whose pool is gone; its floating IP is kept", extra={"address": ip})
    name = address["metadata"]["name"]
    text = f"the pool of IPAddress {name} is gone: floating IP {ip} is kept; delete it if it is not used"
    deps.events.emit(address, "Warning", KEPT, text)
