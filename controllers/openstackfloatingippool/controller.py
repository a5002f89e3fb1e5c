"""OpenStackFloatingIPPool for the engine: every pool gets a condition that this version does not serve it.

Nothing is created for a pool. Pools that the Go provider served, and their IPAddresses, have its finalizer: it is
removed here when they are deleted, and no floating IP is deleted with them (see ``addresses.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

from capo.engine.conditions import Condition
from capo.engine.context import Dependencies, Precondition, ReconcileContext, RemoveFinalizer, Report, Scope, Skip
from capo.engine.steps import Plan, Results
from capo.engine.store import Route, Store
from capo.errors import UnsupportedFieldError
from capo.json_types import Object
from capo.kube.kinds import IP_ADDRESS, OPENSTACK_FLOATING_IP_POOL
from controllers.openstackfloatingippool import addresses

READY: Final = "OpenstackFloatingIPPoolReadyCondition"
LOOK_AGAIN_S: Final = 30.0
"""Fallback for the watch: the deletion of an IPAddress requeues its pool, but its kind may not be watched yet."""
_REASON: Final = UnsupportedFieldError(
    "OpenStackFloatingIPPool is not served by this version; claims on it are not answered",
    next_step="Use fixed floating IPs, or keep pools with the provider that serves them.",
)


def of_address(address: Object, _store: Store) -> Iterable[tuple[str, str]]:
    """Requeue the pool of an IPAddress that is being deleted or was deleted."""
    pool = addresses.pool_of(address)
    return [pool] if pool and address["metadata"].get("deletionTimestamp") else []


ROUTES: Final = (Route(IP_ADDRESS, of_address),)


class FloatingIPPoolController:
    """The controller of OpenStackFloatingIPPools."""

    name = "openstackfloatingippool"
    kind = OPENSTACK_FLOATING_IP_POOL
    plan: Plan[Scope] = Plan(())
    routes = ROUTES
    concurrency = 1
    credentials = None

    def precondition(self, obj: Object, deps: Dependencies) -> Precondition:
        """Release IPAddresses that are being deleted, then the pool; otherwise report that it is not served."""
        found = addresses.of_pool(obj, deps.store)
        for address in filter(addresses.is_held, found):
            addresses.release(address, obj, deps)
        if obj["metadata"].get("deletionTimestamp"):
            return _gate_of_deletion(obj, deps)
        return Skip([Condition(READY, "False", UnsupportedFieldError.reason, _REASON.sentence)])

    def open(self, context: ReconcileContext) -> NoReturn:
        """Raise AssertionError: no reconcile passes the gate."""
        raise AssertionError("a pool's pass ends at the gate")

    def is_recorded(self, scope: Scope, results: Results) -> bool:
        """Return True: no reconcile passes the gate."""
        return True

    def report(self, scope: Scope, results: Results) -> Report:
        """Return an empty report: no reconcile passes the gate."""
        return Report()


def _gate_of_deletion(obj: Object, deps: Dependencies) -> Precondition:
    """Release a pool when no IPAddress is left; an Event names the floating IPs that remain."""
    left = ", ".join(each["metadata"]["name"] for each in addresses.of_pool(obj, deps.store))
    if left:
        text = f"waiting for IPAddresses to be deleted: {left}"
        return Skip([Condition(READY, "False", "Deleting", text)], after_s=LOOK_AGAIN_S)
    fresh = deps.store.get(OPENSTACK_FLOATING_IP_POOL, obj["metadata"]["namespace"], obj["metadata"]["name"]) or obj
    status, given = fresh.get("status") or {}, obj["spec"].get("preAllocatedFloatingIPs") or ()
    kept = [ip for ip in (*(status.get("availableIPs") or ()), *(status.get("failedIPs") or ())) if ip not in given]
    if kept:
        named = ", ".join(kept)
        text = f"floating IPs of the pool are not deleted by this version; delete those that are not used: {named}"
        deps.events.emit(obj, "Warning", addresses.KEPT, text)
    return RemoveFinalizer()
