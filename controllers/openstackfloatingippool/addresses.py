"""IPAddresses that the Go provider allocated from a pool: remove their finalizer, keep their floating IP.

The Go provider deletes the floating IP. Here nothing proves that it may be deleted: its tag names a pool without its
namespace, and another pool of that name may allocate it (G-37). So it stays in the project, is recorded as available in
the status of the pool, where the Go provider and later versions find it, and an Event names it.
Source: docs/explanation/go-provider.md, G-37.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.engine.context import Dependencies
from capo.engine.store import Route, Store
from capo.engine.worker import Result
from capo.json_types import Object
from capo.kube import patches
from capo.kube.errors import Conflict, Gone
from capo.kube.kinds import IP_ADDRESS, OPENSTACK_FLOATING_IP_POOL, Key, Kind
from capo.shares import CloudKey

log = logging.getLogger(__name__)

Patch = Callable[[Object], dict[str, Any] | None]

FINALIZER: Final = f"{names.finalizer(OPENSTACK_FLOATING_IP_POOL.kind)}/delete-floating-ip"
KEPT: Final = "FloatingIPKept"
MAX_CONFLICTS: Final = 8


def pool_of(address: Object) -> tuple[str, str] | None:
    """Return namespace and name of the OpenStackFloatingIPPool of an IPAddress; None for another kind of pool."""
    ref = (address.get("spec") or {}).get("poolRef") or {}
    is_ours = ref.get("kind") == OPENSTACK_FLOATING_IP_POOL.kind and ref.get("apiGroup") in (None, "", names.GROUP)
    return (address["metadata"]["namespace"], ref["name"]) if is_ours and ref.get("name") else None


def of_pool(pool: Object, store: Store) -> list[Object]:
    """Return the IPAddresses of a pool, sorted by name."""
    ident = pool["metadata"]["namespace"], pool["metadata"]["name"]
    found = [each for each in store.list(IP_ADDRESS, ident[0]) if pool_of(each) == ident]
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


def is_held(address: Object) -> bool:
    """Return whether the deletion of an IPAddress waits for our finalizer; False during clusterctl move."""
    metadata = address["metadata"]
    is_moved = names.DELETE_FOR_MOVE_ANNOTATION in (metadata.get("annotations") or {})
    return bool(metadata.get("deletionTimestamp")) and FINALIZER in (metadata.get("finalizers") or ()) and not is_moved


def release(address: Object, pool: Object | None, deps: Dependencies) -> None:
    """Record the floating IP of an IPAddress as available, then remove the finalizer.

    Args:
        address: the IPAddress.
        pool: None when it was deleted.
    """
    ip = str(address["spec"]["address"])
    if pool is not None:
        _patch(deps, OPENSTACK_FLOATING_IP_POOL, pool, lambda obj: _available(obj, ip, deps.store), "status")
    if not _without_finalizer(deps, address):
        return
    log.info("Released an IPAddress; its floating IP is kept", extra={"address": ip})
    if pool is None or ip not in (pool.get("spec") or {}).get("preAllocatedFloatingIPs", ()):
        text = f"floating IP {ip} of IPAddress {address['metadata']['name']} is not deleted by this version"
        where = "; it is listed in status.availableIPs" if pool else "; delete it if it is not used"
        deps.events.emit(pool or address, "Warning", KEPT, text + where)


def _available(pool: Object, ip: str, store: Store) -> dict[str, Any] | None:
    """Return the patch that records an address as available, None if another IPAddress has it or it is recorded."""
    status = pool.get("status") or {}
    claimed, available = list(status.get("claimedIPs") or ()), list(status.get("availableIPs") or ())
    is_used = any(each["spec"].get("address") == ip and not is_held(each) for each in of_pool(pool, store))
    if is_used or (ip in available and ip not in claimed):
        return None
    is_known = ip in available or ip in (status.get("failedIPs") or ())
    lists = {"claimedIPs": [each for each in claimed if each != ip], "availableIPs": [*available, *[ip][is_known:]]}
    return {"status": lists}


def _without_finalizer(deps: Dependencies, address: Object) -> bool:
    """Remove our finalizer; return False when it is not there any more, or the address is gone."""
    metadata, present = address["metadata"], address
    key = Key(IP_ADDRESS, metadata["namespace"], metadata["name"])
    for _ in range(MAX_CONFLICTS):
        operations = patches.without_finalizer(present, FINALIZER)
        if not operations or present["metadata"]["uid"] != metadata["uid"]:
            return False
        try:
            deps.store.apply_own(IP_ADDRESS, deps.kube.json_patch(*key, operations))
        except Conflict:
            found = deps.kube.get(*key)
            if found is None:
                return False
            present = found
        except Gone:
            return False
        else:
            return True
    raise Conflict(f"{key.kind.kind} {key.namespace}/{key.name}: changed at each of {MAX_CONFLICTS} tries")


def _patch(deps: Dependencies, kind: Kind, obj: Object, wanted: Patch, subresource: str | None = None) -> bool:
    """Patch the current version of an object; return False when there is nothing to write, or it was deleted.

    Raises:
        Conflict: it changed at each of the tries.
    """
    namespace, name, uid = obj["metadata"]["namespace"], obj["metadata"]["name"], obj["metadata"]["uid"]
    present: Object | None = obj
    for _ in range(MAX_CONFLICTS):
        body = wanted(present) if present and present["metadata"]["uid"] == uid else None
        if present is None or body is None:
            return False
        body = {
            **body,
            "metadata": {**body.get("metadata", {}), "resourceVersion": present["metadata"]["resourceVersion"]},
        }
        try:
            answer = deps.kube.patch(kind, namespace, name, body, subresource=subresource)
        except Conflict:
            present = deps.kube.get(kind, namespace, name)
        except Gone:
            return False
        else:
            deps.store.apply_own(kind, answer)
            return True
    raise Conflict(f"{kind.kind} {namespace}/{name}: changed at each of {MAX_CONFLICTS} tries")


@dataclass(frozen=True)
class OrphanController:
    """Releases IPAddresses whose pool was deleted; those of an existing pool are released in its reconcile."""

    deps: Dependencies
    name: str = "openstackfloatingippool-ipaddress"
    kind: Kind = IP_ADDRESS
    concurrency: int = 1
    routes: Sequence[Route] = ()

    def cloud_key(self, key: Key) -> CloudKey:
        """Return an empty key: no cloud is called."""
        return CloudKey()

    def resolve_cloud(self, key: Key) -> bool:
        """Return True: no cloud is called."""
        return True

    def reconcile(self, key: Key) -> Result:
        """Release an IPAddress whose pool was deleted."""
        address = self.deps.store.get(*key)
        pool = pool_of(address) if address else None
        if address is None or pool is None or not is_held(address):
            return Result()
        # The store may lag behind the API server: read from the API server.
        if self.deps.kube.get(OPENSTACK_FLOATING_IP_POOL, *pool) is None:
            release(address, None, self.deps)
        return Result()
