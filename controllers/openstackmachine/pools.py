"""The pools of the API load balancer from which a machine is removed when it is deleted.

The OpenStackCluster records them. After a takeover, or a move without status, the machine may be reconciled before the
record is written: then they are found through the load balancer that the Go provider reported, or the machine waits
for the record, with a time limit. Source: docs/explanation/go-provider.md, G-34 and G-35.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from api.v1beta2 import OpenStackCluster
from capo import names
from capo.contract import references, rules
from capo.engine import conditions
from capo.engine.steps import Wait
from capo.json_types import Object
from capo.ledger import Ledger, Record
from capo.openstack import load_balancer
from capo.openstack.resource_cache import found_by
from controllers import roles
from controllers.openstackmachine import given_pools
from controllers.openstackmachine.patience import PATIENCE_S
from controllers.openstackmachine.scope import MachineScope

KIND: Final = "pool"
_LOOKED: Final = "LoadBalancerReady"


def api_ports(infra: OpenStackCluster) -> list[int]:
    """Return the ports of the load balancer: the endpoint's, then the additional ones; pure."""
    endpoint = infra.spec.control_plane_endpoint
    balancer = infra.spec.api_server.managed_load_balancer if infra.spec.api_server else None
    first = [endpoint.port] if endpoint and endpoint.port else []
    return list(dict.fromkeys([*first, *(balancer.additional_ports if balancer else ())]))


def resource_name(scope: MachineScope) -> str:
    """Return ``<namespace>-<Cluster name>``, the prefix of names in the cloud."""
    cluster = references.cluster_name(scope.owners.machine or scope.context.obj) or ""
    return names.cluster_resource_name(scope.namespace, cluster)


def named(scope: MachineScope, api_port_list: Collection[int]) -> dict[str, int]:
    """Return the ports by the Go provider's names of their pools."""
    return {names.load_balancer_child(resource_name(scope), port): port for port in api_port_list}


def to_leave(scope: MachineScope, infra: OpenStackCluster, *, may_be_member: bool) -> list[Record] | Wait:
    """Return the pools in which the machine may be a member, or the wait for their record.

    Args:
        may_be_member: whether the machine ever had a server or requested a member.

    Raises:
        NotYetObserved: the pools are being listed.
    """
    obj = scope.owners.infra or {}
    recorded = Ledger.read(obj.get("status")).records_of_kind(KIND)
    missing = set(api_ports(infra)) - {roles.port_of_pool(record.role) for record in recorded}
    if missing and may_be_member and given_pools.are_given(scope):
        return [*recorded, *given_pools.to_leave(scope, infra, named(scope, missing))]
    if not missing or not may_be_member or not is_record_due(obj):
        return recorded
    known = infra.status.api_server_managed_load_balancer
    if known and known.id:
        return [*recorded, *_of_balancer(scope, known.id, missing)]
    left_s = scope.patience.left_s(str(scope.context.obj["metadata"]["uid"]), scope.context.started_s)
    if left_s > 0:
        text = f"waiting for OpenStackCluster {obj['metadata']['name']} to record the pools of its load balancer"
        return Wait("Deleting", text, left_s)
    _report_left_behind(scope, missing)
    return recorded


def is_record_due(infra: Object) -> bool:
    """Return whether an OpenStackCluster has yet to record its pools, after a takeover or the loss of its status; pure.

    One that is being deleted, or is managed externally, never does.
    """
    metadata = infra["metadata"]
    if metadata.get("deletionTimestamp") or rules.is_externally_managed(infra):
        return False
    annotations = metadata.get("annotations") or {}
    is_taken_over = names.TAKEN_OVER_ANNOTATION in annotations or names.OWNER_ID_ANNOTATION not in annotations
    has_looked = conditions.find((infra.get("status") or {}).get("conditions") or (), _LOOKED) is not None
    return is_taken_over or not has_looked


def _of_balancer(scope: MachineScope, balancer_id: str, api_port_list: Collection[int]) -> list[Record]:
    """Return the pools of a load balancer that have the Go provider's names."""
    ports = named(scope, api_port_list)

    def fits(body: Mapping[str, Any]) -> bool:
        return body.get("name") in ports and balancer_id in load_balancer.parent_ids(body)

    found = scope.cloud_view.list_matching(KIND, fits, among=found_by(load_balancer.BY_BALANCER, balancer_id))
    return [Record(KIND, roles.pool(ports[body["name"]]), body["id"]) for body in found]


def _report_left_behind(scope: MachineScope, api_port_list: Collection[int]) -> None:
    named = ", ".join(names.member(resource_name(scope), port, scope.name) for port in sorted(api_port_list))
    text = (
        f"OpenStackCluster recorded no pools within {PATIENCE_S / 60:.0f} minutes: "
        f"delete the load balancer members {named} if they exist"
    )
    scope.context.deps.events.emit(scope.context.obj, "Warning", "MemberLeftBehind", text)
