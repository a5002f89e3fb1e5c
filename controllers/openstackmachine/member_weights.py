"""The weight of the machine's members: reported or set again where it was changed externally, as the policy says.

Source: ADR 0015.
"""

from __future__ import annotations

from api.v1beta2 import OpenStackCluster
from capo.errors import CapoError, ConflictError
from capo.openstack import load_balancer
from capo.openstack.load_balancer import WEIGHT
from controllers import drift
from controllers.drift import WEIGHTS, Policy
from controllers.openstackmachine import load_balancer_lock, member_states
from controllers.openstackmachine.scope import MachineScope


def message(scope: MachineScope, infra: OpenStackCluster, pool_id: str, member_id: str) -> str:
    """Repair the weight of a member as the policy says; return the message about what is left, empty if nothing is.

    Raises:
        CapoError: the members cannot be listed.
        NotYetObserved: the pools are being listed.
    """
    policy = drift.of_spec(infra.spec.drift_policy, WEIGHTS, default=Policy.REPORT)
    seen = member_states.seen(scope, pool_id, member_id) if policy is not Policy.OFF else None
    weight = seen.weight if seen else None
    if weight in (None, WEIGHT):
        return ""
    text = f"the weight of the member in pool {pool_id} was changed externally to {weight}"
    if policy is not Policy.REPAIR:
        return text
    reason = scope.repairs.postponed(WEIGHTS, member_id) or _repaired(scope, pool_id, member_id, text)
    return drift.with_reason(text, reason) if reason else ""


def _repaired(scope: MachineScope, pool_id: str, member_id: str, text: str) -> str:
    """Set the weight again; return why it was not possible, empty if it was."""
    try:
        if wait := load_balancer_lock.busy(scope):
            return wait.message
        with load_balancer_lock.taken(scope):
            changed = load_balancer.update_member(scope.cloud, pool_id, member_id, {"weight": WEIGHT})
    except CapoError as error:  # the member serves nevertheless
        scope.repairs.note(WEIGHTS, member_id, error=error)
        if isinstance(error, ConflictError):  # the cluster changes another part of the load balancer
            scope.look_again_s = load_balancer_lock.BUSY_S
        return scope.repairs.failure(WEIGHTS, member_id)
    member_states.saw(scope, pool_id, changed)
    scope.repairs.note(WEIGHTS, member_id)
    emitted = f"{text}; set to {WEIGHT} again"
    scope.context.deps.events.emit(scope.context.obj, "Normal", drift.EVENT, emitted)
    return ""
