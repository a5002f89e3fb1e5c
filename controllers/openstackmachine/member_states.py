"""Whether the machine's members took effect: what Octavia last showed of each, and the repair of one in ERROR.

A load balancer becomes ACTIVE after a change that failed, too: Octavia puts only the member into ERROR, or fails to
write its state. A list of pools shows neither that nor weights, so the members of a pool are listed: once for all
machines, and again only when Octavia shows that the pool changed.
Source: octavia/controller/worker/v2/tasks/lifecycle_tasks.py, ``MemberToErrorOnRevertTask``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from capo.engine.steps import Done, Outcome, Wait
from capo.errors import LoadBalancerFailedError, UnsupportedByCloudError
from capo.json_types import Body
from capo.openstack import load_balancer
from capo.openstack.load_balancer import Member, Pool
from controllers.openstackmachine import given_pools, load_balancer_lock
from controllers.openstackmachine.scope import MachineScope, SeenMember

ACTIVE: Final = "ACTIVE"
ERROR: Final = "ERROR"
RECHECK_S: Final = 15.0
"""A member that is still pending while its load balancer is ACTIVE is listed again after this time."""


def saw(scope: MachineScope, pool_id: str, member: Body) -> None:
    """Record a member as Octavia shows it now."""
    seen_s = scope.context.deps.clock.now()
    scope.members.put((pool_id, str(member["id"])), _seen(member, seen_s, pool_updated_at=None))


def seen(scope: MachineScope, pool_id: str, member_id: str) -> SeenMember | None:
    """Return a member as it was seen within the resync period, or since the last change of its pool.

    Returns:
        None if the pool lacks it, or if it was never seen and Octavia is busy.

    Raises:
        CapoError: the members cannot be listed, or the pool does not exist.
        NotYetObserved: the pools are being listed.
    """
    known, context = scope.members.get((pool_id, member_id)), scope.context
    if known and context.started_s - known.seen_s < context.deps.sync_period_s:
        return known
    pool = Pool(scope.cloud_view.get("pool", pool_id))
    if not any(member.id == member_id for member in pool.members):
        return None
    if not load_balancer_lock.is_active(scope):  # Octavia is left alone while it is busy
        return known
    if known and known.pool_updated_at is not None and known.pool_updated_at == pool.updated_at:
        found = replace(known, seen_s=context.started_s)
    elif body := _listed(scope, pool, member_id):
        is_settled = pool.provisioning_status == ACTIVE
        found = _seen(body, context.started_s, pool_updated_at=pool.updated_at if is_settled else None)
    else:
        return None
    scope.members.put((pool_id, member_id), found)
    return found


def _seen(member: Body, seen_s: float, *, pool_updated_at: str | None) -> SeenMember:
    shown = Member(member)
    return SeenMember(seen_s, pool_updated_at, shown.provisioning_status, shown.weight)


def _listed(scope: MachineScope, pool: Pool, member_id: str) -> Body | None:
    # The pool's last change is a part of the key, so that no change since then is hidden by the cache.
    key = ("members", pool.id, pool.updated_at)
    members = scope.cloud.lookups.get(key, lambda: load_balancer.members(scope.cloud, pool.id))
    return next((member for member in members if member["id"] == member_id), None)


def outcome(scope: MachineScope, pool_id: str, listed: Sequence[Body], found: Body) -> Outcome:
    """Return Done if a member took effect, else a wait for it.

    Args:
        listed: all members of its pool, as Octavia shows them now.

    Raises:
        LoadBalancerFailedError: it is in ERROR; its repair was requested.
        CapoError: its repair was refused.
    """
    saw(scope, pool_id, found)
    member_id, state = found["id"], Member(found).provisioning_status
    if state == ACTIVE:
        return Done()
    if state == ERROR:
        _repair(scope, pool_id, listed, found)
        raise failed(pool_id, member_id, "the provider sent it to Octavia again")
    return Wait("Building", f"member {member_id} of pool {pool_id} is {state}", RECHECK_S)


def failed(pool_id: str, member_id: str, repair: str) -> LoadBalancerFailedError:
    """Return the error for a member in ERROR.

    Args:
        repair: what was done about it.
    """
    return LoadBalancerFailedError(
        f"member {member_id} of pool {pool_id} is in state ERROR; {repair}",
        resource=f"member {member_id}",
        next_step="If it stays so, ask Octavia's admin: the logs of its worker or provider name the member.",
    )


def _repair(scope: MachineScope, pool_id: str, listed: Sequence[Body], found: Body) -> None:
    """Send a member to Octavia again, as it is.

    It is not deleted and created again: a member in ERROR may serve, and may be the last one that does.
    """
    with load_balancer_lock.taken(scope):
        # Only a change of all members connects networks again, and adds on OVN a member that is missing there. External
        # pools get single changes, see `members.py`.
        if not given_pools.are_given(scope):
            try:
                load_balancer.add_members(scope.cloud, pool_id, (), beside=listed)
            except UnsupportedByCloudError:
                pass
            else:
                return
        load_balancer.update_member(scope.cloud, pool_id, found["id"], {"name": found.get("name") or ""})
