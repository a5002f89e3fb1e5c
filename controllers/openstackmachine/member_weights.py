"""The weight of the machine's members: reported or set again where it was changed externally, as the policy says.

A list of pools does not show weights, so the members of a pool are listed: once for all machines, and again only when
Octavia shows that the pool changed. Source: ADR 0015.
"""

from __future__ import annotations

from typing import Final

from api.v1beta2 import OpenStackCluster
from capo.errors import CapoError, ConflictError
from capo.json_types import Body
from capo.openstack import load_balancer
from capo.openstack.load_balancer import WEIGHT, Member, Pool
from controllers import drift
from controllers.drift import WEIGHTS, Policy
from controllers.openstackmachine import load_balancer_lock
from controllers.openstackmachine.scope import MachineScope, SeenWeight

ACTIVE: Final = "ACTIVE"


def message(scope: MachineScope, infra: OpenStackCluster, pool_id: str, member_id: str) -> str:
    """Repair the weight of a member as the policy says; return the message about what is left, empty if nothing is.

    Raises:
        CapoError: the members cannot be listed.
        NotYetObserved: the pools are being listed.
    """
    policy = drift.of_spec(infra.spec.drift_policy, WEIGHTS, default=Policy.REPORT)
    weight = _weight(scope, pool_id, member_id) if policy is not Policy.OFF else None
    if weight in (None, WEIGHT):
        return ""
    text = f"the weight of the member in pool {pool_id} was changed externally to {weight}"
    if policy is not Policy.REPAIR:
        return text
    reason = scope.repairs.postponed(WEIGHTS, member_id) or _repaired(scope, pool_id, member_id, text)
    return drift.with_reason(text, reason) if reason else ""


def saw(scope: MachineScope, pool_id: str, member: Body) -> None:
    """Record the weight of a member as Octavia shows it now."""
    weight = Member(member).weight
    if weight is not None:
        seen = SeenWeight(scope.context.deps.clock.now(), None, weight)
        scope.weights.put((pool_id, str(member["id"])), seen)


def _weight(scope: MachineScope, pool_id: str, member_id: str) -> int | None:
    """Return the weight of a member as it was seen within the resync period; None if it is unknown."""
    known = scope.weights.get((pool_id, member_id))
    if known and scope.context.started_s - known.seen_s < scope.context.deps.sync_period_s:
        return known.weight
    if not load_balancer_lock.is_active(scope):  # Octavia is left alone while it is busy
        return known.weight if known else None
    pool = Pool(scope.cloud_view.get("pool", pool_id))
    if known is None or known.pool_updated_at is None or known.pool_updated_at != pool.updated_at:
        weight = _listed(scope, pool, member_id)
    else:
        weight = known.weight
    if weight is not None:
        is_settled = pool.provisioning_status == ACTIVE
        seen = SeenWeight(scope.context.started_s, pool.updated_at if is_settled else None, weight)
        scope.weights.put((pool_id, member_id), seen)
    return weight


def _listed(scope: MachineScope, pool: Pool, member_id: str) -> int | None:
    # The pool's last change is a part of the key, so that no change since then is hidden by the cache.
    key = ("members", pool.id, pool.updated_at)
    members = map(Member, scope.cloud.lookups.get(key, lambda: load_balancer.members(scope.cloud, pool.id)))
    return next((member.weight for member in members if member.id == member_id), None)


def _repaired(scope: MachineScope, pool_id: str, member_id: str, text: str) -> str:
    """Set the weight again; return why it was not possible, empty if it was."""
    try:
        if wait := load_balancer_lock.busy(scope):
            return wait.message
        with load_balancer_lock.taken(scope):
            load_balancer.update_member(scope.cloud, pool_id, member_id, {"weight": WEIGHT})
    except CapoError as error:  # the member serves nevertheless
        scope.repairs.note(WEIGHTS, member_id, error=error)
        if isinstance(error, ConflictError):  # the cluster changes another part of the load balancer
            scope.look_again_s = load_balancer_lock.BUSY_S
        return scope.repairs.failure(WEIGHTS, member_id)
    scope.weights.put((pool_id, member_id), SeenWeight(scope.context.started_s, None, WEIGHT))
    scope.repairs.note(WEIGHTS, member_id)
    emitted = f"{text}; set to {WEIGHT} again"
    scope.context.deps.events.emit(scope.context.obj, "Normal", drift.EVENT, emitted)
    return ""
