"""The pools of an externally managed API load balancer: no object records their ids, so they are found by name.

The OpenStackCluster is managed externally and not reconciled here. Only the machine's own member in such a pool is
created and deleted; other members may be anyone's. Source: docs/explanation/go-provider.md, G-34, G-35.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from api.v1beta2 import OpenStackCluster
from capo import names
from capo.contract import rules
from capo.engine.steps import Wait
from capo.errors import AmbiguousMatchError, ForeignResourceError
from capo.json_types import Body
from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.ledger import Record
from capo.openstack import load_balancer
from capo.openstack.kinds import POOL
from capo.openstack.load_balancer import Pool
from capo.openstack.resource_cache import BY_NAME, either, found_by
from controllers import roles
from controllers.openstackmachine.scope import MachineScope

KIND: Final = "pool"
MEMBER: Final = "member"
WAITING: Final = "WaitingForClusterInfrastructure"
LOOK_S: Final = 30.0
"""Interval at which missing pools are listed, once for all machines of the project."""


def are_given(scope: MachineScope) -> bool:
    """Return whether the cluster is managed externally, so that no object records its pools."""
    return scope.owners.infra is not None and rules.is_externally_managed(scope.owners.infra)


def to_join(scope: MachineScope, infra: OpenStackCluster, wanted: Mapping[str, int]) -> dict[int, str] | Wait:
    """Return the ids of the pools by port, or the wait for missing ones.

    Args:
        wanted: port by name of the pool.

    Raises:
        NotYetObserved: the pools are being listed.
        AmbiguousMatchError: several have the same name.
        ForeignResourceError: a pool of that name belongs to another OpenStackCluster.
    """
    found = _fitting(scope, infra, wanted, max_age_s=None)
    if wanted.keys() - {body["name"] for body in found}:
        found = _fitting(scope, infra, wanted, max_age_s=LOOK_S)
    if missing := wanted.keys() - {body["name"] for body in found}:
        text = f"waiting for the pools {', '.join(sorted(missing))} of the load balancer, which is managed from outside"
        return Wait(WAITING, text, after_s=LOOK_S)
    _refuse_doubtful(scope, infra, found)
    return {wanted[body["name"]]: body["id"] for body in found}


def to_leave(scope: MachineScope, infra: OpenStackCluster, wanted: Mapping[str, int]) -> list[Record]:
    """Return the pools in which the machine may be a member, including those with ambiguous names.

    Raises:
        NotYetObserved: the pools are being listed.
    """
    members = {record.id: roles.port_of_member(record.role) for record in scope.context.ledger.records_of_kind(MEMBER)}

    def port_of(body: Body) -> int | None:
        own = next((members[each.id] for each in Pool(body).members if each.id in members), None)
        return own or (wanted.get(body["name"]) if _is_in_balancer(infra, body) else None)

    def fits(body: Body) -> bool:
        return port_of(body) is not None

    among = either(found_by(load_balancer.BY_MEMBER, *members), found_by(BY_NAME, *wanted))
    found = scope.cloud_view.list_matching(KIND, fits, among=among)
    if wanted.keys() - {body["name"] for body in found}:
        found = scope.cloud_view.list_matching(KIND, fits, among=among, max_age_s=LOOK_S)
    places = [(port_of(body), body) for body in found if not _other_owner(scope, infra, body)]
    return [Record(KIND, roles.pool(port), body["id"]) for port, body in places if port is not None]


def balancer_id(scope: MachineScope, infra: OpenStackCluster, wanted: Collection[str]) -> str | None:
    """Return the load balancer of the cached pools, None if none is cached; makes no request."""
    found = scope.cloud_view.peek(KIND, lambda body: _is_in_balancer(infra, body), among=found_by(BY_NAME, *wanted))
    return next((parent for body in found for parent in sorted(load_balancer.parent_ids(body))), None)


def _fitting(
    scope: MachineScope, infra: OpenStackCluster, wanted: Collection[str], *, max_age_s: float | None
) -> list[dict[str, Any]]:
    def fits(body: Body) -> bool:
        return _is_in_balancer(infra, body)

    among = found_by(BY_NAME, *wanted)
    return [dict(body) for body in scope.cloud_view.list_matching(KIND, fits, max_age_s=max_age_s, among=among)]


def _is_in_balancer(infra: OpenStackCluster, body: Body) -> bool:
    """Return whether a pool is in the load balancer that the status names; True for any if it names none."""
    known_id = _reported_id(infra)
    return known_id is None or known_id in load_balancer.parent_ids(body)


def _reported_id(infra: OpenStackCluster) -> str | None:
    known = infra.status.api_server_managed_load_balancer
    return (known.id or None) if known else None


def _refuse_doubtful(scope: MachineScope, infra: OpenStackCluster, found: list[dict[str, Any]]) -> None:
    named = [body["name"] for body in found]
    for body in found:
        if named.count(body["name"]) > 1:
            ids = ", ".join(sorted(each["id"] for each in found if each["name"] == body["name"]))
            raise AmbiguousMatchError(
                f"several pools are named {body['name']}: {ids}",
                if_shared=f"several pools are named {body['name']}",
                next_step="Name the load balancer in status.apiServerManagedLoadBalancer.id, or rename the others.",
            )
        if owner := _other_owner(scope, infra, body):
            raise ForeignResourceError(
                f"pool {body['name']} carries the stamp of owner {owner}, which is another OpenStackCluster",
                if_shared=f"pool {body['name']} carries the stamp of another OpenStackCluster",
                resource=f"pool {body['id']}",
                next_step="If it is the right one, name its load balancer in status.apiServerManagedLoadBalancer.id.",
            )


def _other_owner(scope: MachineScope, infra: OpenStackCluster, body: Body) -> str | None:
    """Return the owner in a pool's stamp if it is another OpenStackCluster and the status names no load balancer."""
    stamp = POOL.stamp_of(body)
    is_vouched_for = stamp is None or _reported_id(infra) is not None or stamp.owner == _former_owner(scope)
    return None if is_vouched_for or stamp is None else stamp.owner


def _former_owner(scope: MachineScope) -> str | None:
    """Return the owner id that the OpenStackCluster got while it was managed here; None without one."""
    obj = scope.owners.infra
    return names.owner_in(obj, kind=OPENSTACK_CLUSTER.kind) if obj else None
