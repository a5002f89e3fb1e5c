"""Which OpenStackClusters are requeued when another object changes; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo import names
from capo.contract import references, rules
from capo.engine import conditions
from capo.engine.store import Route, Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from controllers.pause_conditions import PAUSED

Idents = Iterable[tuple[str, str]]


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
        for infra in store.list(OPENSTACK_CLUSTER, namespace)
        if infra["metadata"].get("deletionTimestamp") and references.owner_cluster_name(infra) == cluster_name
    ]


ROUTES: Final = (
    Route(CLUSTER, keys_for_cluster),
    Route(OPENSTACK_SERVER, keys_for_server),
    Route(MACHINE, keys_for_member),
    Route(OPENSTACK_MACHINE, keys_for_member),
)
