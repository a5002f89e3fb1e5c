"""Which OpenStackClusters are requeued when another object changes; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo import names
from capo.contract import clusters, machines, references, rules
from capo.engine import conditions
from capo.engine.store import Index, Route, Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from capo.ledger import Ledger
from controllers import anti_affinity
from controllers.pause_conditions import PAUSED

Idents = Iterable[tuple[str, str]]


def _owning_cluster(infra: Object) -> Idents:
    name = references.owner_cluster_name(infra)
    return [(infra["metadata"]["namespace"], name)] if name else []


OF_CLUSTER: Final = Index(OPENSTACK_CLUSTER, _owning_cluster)


def keys_for_cluster(cluster: Object, store: Store) -> Idents:
    """Requeue the OpenStackCluster of a Cluster if its pause changed, or if it is not ready."""
    # A Cluster's status changes often; a ready OpenStackCluster is requeued only for a changed pause.
    name = references.infrastructure_name(cluster, OPENSTACK_CLUSTER.kind)
    namespace = cluster["metadata"]["namespace"]
    infra = store.get(OPENSTACK_CLUSTER, namespace, name) if name else None
    return [(namespace, infra["metadata"]["name"])] if infra and _is_concerned(infra, cluster) else []


def _is_concerned(infra: Object, cluster: Object) -> bool:
    shown = (infra.get("status") or {}).get("conditions") or ()
    is_paused = rules.pause_cause(infra, cluster) is not None
    return conditions.is_true(shown, PAUSED) != is_paused or not conditions.is_true(shown, conditions.READY)


def keys_for_server(server: Object, _store: Store) -> Idents:
    """Requeue the OpenStackCluster that owns a bastion."""
    owner = references.owner(server, group=names.GROUP, kind=OPENSTACK_CLUSTER.kind)
    return [(server["metadata"]["namespace"], owner.name)] if owner else []


def keys_for_member(machine: Object, store: Store) -> Idents:
    """Requeue the OpenStackClusters whose deletion waits for their Machines."""
    cluster_name, namespace = references.cluster_name(machine), machine["metadata"]["namespace"]
    if not cluster_name:
        return []
    return [
        (namespace, infra["metadata"]["name"])
        for infra in store.find(OF_CLUSTER, (namespace, cluster_name))
        if infra["metadata"].get("deletionTimestamp")
    ]


def keys_for_joined(machine: Object, store: Store) -> Idents:
    """Requeue the OpenStackCluster whose load balancer is not ready when a control plane machine may have joined it."""
    cluster_name, namespace = references.cluster_name(machine), machine["metadata"]["namespace"]
    if not cluster_name or not machines.is_control_plane(machine):
        return []
    return [
        (namespace, infra["metadata"]["name"])
        for infra in store.find(OF_CLUSTER, (namespace, cluster_name))
        if _waits_for_balancer(infra)
    ]


def _waits_for_balancer(infra: Object) -> bool:
    shown = conditions.find((infra.get("status") or {}).get("conditions") or (), "LoadBalancerReady")
    return shown is not None and shown["status"] != "True"


def keys_for_grouped(machine: Object, store: Store) -> Idents:
    """Requeue the OpenStackCluster of a machine with a server group: the group is missing, may be empty, or has a host.

    The last one shows whether servers of the group share a host.
    """
    group, cluster_name = anti_affinity.of_machine(machine), references.cluster_name(machine)
    if group is None or not cluster_name:
        return []
    namespace = machine["metadata"]["namespace"]
    cluster = store.get(CLUSTER, namespace, cluster_name)
    name = references.infrastructure_name(cluster, OPENSTACK_CLUSTER.kind) if cluster else None
    infra = store.get(OPENSTACK_CLUSTER, namespace, name) if name else None
    if infra is None:
        return []
    is_leaving = bool(machine["metadata"].get("deletionTimestamp"))
    is_missing = Ledger.read(infra.get("status")).id_of(group.role) is None
    is_concerned = is_leaving or is_missing or clusters.is_provisioned(machine)
    return [(namespace, infra["metadata"]["name"])] if is_concerned else []


ROUTES: Final = (
    Route(CLUSTER, keys_for_cluster),
    Route(OPENSTACK_SERVER, keys_for_server),
    Route(MACHINE, keys_for_member),
    Route(OPENSTACK_MACHINE, keys_for_member),
    Route(OPENSTACK_MACHINE, keys_for_joined),
    Route(OPENSTACK_MACHINE, keys_for_grouped),
)
