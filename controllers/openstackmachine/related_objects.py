"""The objects that an OpenStackMachine belongs to, from the store; any of them may be missing during its deletion."""

from __future__ import annotations

from dataclasses import dataclass

from capo.contract import machines, references
from capo.engine.store import Store
from capo.json_types import Object
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER


@dataclass(frozen=True)
class Owners:
    """The objects that an OpenStackMachine belongs to.

    Args:
        machine: Cluster API's Machine.
        cluster: Cluster API's Cluster.
        infra: the OpenStackCluster.
    """

    machine: Object | None
    cluster: Object | None
    infra: Object | None

    def is_control_plane(self, obj: Object) -> bool:
        """Return whether a machine serves the Kubernetes API (C-29): its Machine or itself has the label."""
        return any(machines.is_control_plane(each) for each in (self.machine, obj) if each)


def find(obj: Object, store: Store) -> Owners:
    """Return the owners of an OpenStackMachine that are in the store (C-23, C-27)."""
    namespace = obj["metadata"]["namespace"]
    machine_name = references.owner_machine_name(obj)
    machine = store.get(MACHINE, namespace, machine_name) if machine_name else None
    cluster_name = (references.cluster_name(machine) if machine else None) or references.cluster_name(obj)
    cluster = store.get(CLUSTER, namespace, cluster_name) if cluster_name else None
    infra_name = references.infrastructure_name(cluster, OPENSTACK_CLUSTER.kind) if cluster else cluster_name
    infra = store.get(OPENSTACK_CLUSTER, namespace, infra_name) if infra_name else None
    return Owners(machine, cluster, infra)
