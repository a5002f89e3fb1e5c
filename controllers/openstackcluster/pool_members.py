"""Control plane machines that joined the API load balancer and are not in its pools now, as after its rebuild.

The machines create their members themselves; here only the pools are compared with what the machines recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from api.v1beta2 import OpenStackMachine
from capo.contract import machines
from capo.engine.store import Index
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_MACHINE
from capo.ledger import Ledger
from capo.names import CLUSTER_NAME_LABEL
from capo.openstack.load_balancer import Pool
from controllers import drift, roles
from controllers.drift import Policy
from controllers.openstackcluster import endpoint_policy
from controllers.openstackcluster.scope import ClusterScope


def missing(scope: ClusterScope) -> tuple[str, ...]:
    """Return the machines with a recorded member that its pool lacks; not those whose removal the policy accepts.

    Raises:
        NotYetObserved: a pool is being listed.
    """
    found = scope.context.deps.store.find(_CONTROL_PLANES, (scope.namespace, scope.cluster_name))
    joined = [each for each in found if not each["metadata"].get("deletionTimestamp")]
    if not joined:
        return ()
    ids = {port: scope.context.ledger.id_of(roles.pool(port)) for port in endpoint_policy.ports(scope.cluster.spec)}
    pools = {port: Pool(scope.cloud_view.get("pool", pool_id)) for port, pool_id in ids.items() if pool_id}
    return tuple(sorted(each["metadata"]["name"] for each in joined if any(_lacks(scope, each, pools))))


def _cluster(machine: Object) -> list[tuple[str, str]]:
    metadata = machine["metadata"]
    name = (metadata.get("labels") or {}).get(CLUSTER_NAME_LABEL)
    return [(metadata["namespace"], name)] if name and machines.is_control_plane(machine) else []


_CONTROL_PLANES: Final = Index(OPENSTACK_MACHINE, _cluster)
"""Finds the control plane machines of a cluster: it may have a thousand others."""


def _lacks(scope: ClusterScope, machine: Object, pools: dict[int, Pool]) -> Iterator[bool]:
    """Yield for each recorded member of a machine whether its pool lacks it."""
    ledger = Ledger.read(machine.get("status"))
    is_repaired = drift.of_spec(scope.cluster.spec.drift_policy, drift.MEMBERS) is Policy.REPAIR
    accepted = () if is_repaired else OpenStackMachine.model_validate(machine).status.joined_pools
    for port, pool in pools.items():
        in_pool = {member.id for member in pool.members}
        recorded = [id_ for role in roles.members(port) if (id_ := ledger.id_of(role))]
        yield pool.id not in accepted and not in_pool.issuperset(recorded)
