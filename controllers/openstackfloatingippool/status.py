"""Status of a pool from the results of a reconcile; makes no requests."""

from __future__ import annotations

from typing import Any, Final

from capo.engine.conditions import Condition
from capo.engine.steps import Blocked, Failed, NotObserved, Results, Wait
from capo.errors import QuotaExceededError
from capo.openstack.floating_ip import FloatingIP
from controllers.openstackfloatingippool import candidates, ipam
from controllers.openstackfloatingippool.scope import PoolScope

READY: Final = "OpenstackFloatingIPPoolReadyCondition"
_NETWORK: Final = "FloatingIPNetworkReady"
_CREATED: Final = "FloatingIPsCreated"


def fields(scope: PoolScope, results: Results) -> dict[str, Any]:
    """Return the fields of status: sorted sets, which nothing is decided by (W-32, W-33)."""
    claimed = ipam.in_order(ipam.ip_of(address) for address in scope.addresses() if not ipam.is_deleting(address))
    # The location shows to other pools which project the addresses are in, also while nothing is recorded.
    shown: dict[str, Any] = {"claimedIPs": claimed, "resources": {"location": scope.cloud.location.to_status()}}
    if scope.cloud_view.was_listed("floating_ip") and not scope.context.is_deleting:
        bodies = scope.known()
        held = candidates.holders(scope)
        free = ipam.in_order(FloatingIP(body).address for body in candidates.free(scope, bodies, held))
        shown |= {"availableIPs": free, "failedIPs": ipam.in_order(scope.found.refused)}
    if scope.found.network is not None:
        shown["floatingIPNetwork"] = scope.found.network.model_dump(mode="json", by_alias=True)
    return shown


def shown(scope: PoolScope, results: Results) -> list[Condition]:
    """Return the Go provider's condition of a pool, with its reasons."""
    if scope.context.is_deleting:
        return [Condition(READY, "False", "Deleting", "the pool is being deleted")]
    for step, result in results.items():
        if isinstance(result, Failed):
            reason = "UnableToFindNetwork" if step == _NETWORK else "OpenStackError"
            return [Condition(READY, "False", reason, f"{step}: {result.error.sentence}")]
    created = results.get(_CREATED)
    if isinstance(created, Wait) and created.reason == "MaxIPsReached":
        return [Condition(READY, "False", created.reason, created.message)]
    if isinstance(created, Wait) and created.reason == QuotaExceededError.reason:
        return [Condition(READY, "False", "OpenStackError", f"{_CREATED}: {created.message}")]
    return [Condition(READY, "True", "Ready", _message(scope))] if _all_known(results) else []


def _all_known(results: Results) -> bool:
    """Return whether every step ran to its end."""
    return not any(isinstance(result, NotObserved | Blocked) for result in results.values())


def _message(scope: PoolScope) -> str:
    """Return which prepared addresses are not allocated, and why."""
    return "; ".join(f"{ip} is not allocated: {scope.found.refused[ip]}" for ip in ipam.in_order(scope.found.refused))
