"""The other machines of a machine's control plane, from the store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackMachineSpec
from capo import names
from capo.contract import machines, references
from capo.engine.store import Index, Store
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_MACHINE, OPENSTACK_SERVER
from controllers import server_spec
from controllers.openstackmachine.scope import MachineScope


@dataclass(frozen=True)
class Sibling:
    """Another control plane machine of the cluster.

    Args:
        owner: the owner id in its stamps; None while it has none.
        is_living: its server runs, and neither is being deleted.
        ports_of_cluster: the indexes of its ports that leave network and subnets to the cluster.
    """

    name: str
    owner: str | None
    server: OpenStackServer
    is_living: bool
    ports_of_cluster: frozenset[int]

    @property
    def port_ids(self) -> list[str]:
        """The ids of its ports."""
        return port_ids(self.server)


def siblings_of(scope: MachineScope) -> list[Sibling]:
    """Return the other control plane machines that have an OpenStackServer, whatever their state."""
    return [_sibling(obj, server) for obj, server in _with_servers(scope) if obj["metadata"]["name"] != scope.name]


def owners(scope: MachineScope) -> set[str] | None:
    """Return the owner ids of all machines of the cluster; None when one of them is unknown."""
    found = {owner_of(obj) for obj in _of_cluster(scope)}
    is_whole = None not in found and scope.context.owner in found
    return {owner for owner in found if owner} if is_whole else None


def owner_of(obj: Object) -> str | None:
    """Return the owner id of an OpenStackMachine, None while it has none of its own."""
    return names.owner_in(obj, kind=OPENSTACK_MACHINE.kind)


def port_ids(server: OpenStackServer | None) -> list[str]:
    """Return the ids of a server's ports."""
    return [port.id for port in server.status.resources.ports] if server and server.status.resources else []


def _of_cluster(scope: MachineScope) -> list[Object]:
    name = references.cluster_name(scope.context.obj)
    if not name:
        return []
    return scope.context.deps.store.by_label(OPENSTACK_MACHINE, scope.namespace, names.CLUSTER_NAME_LABEL, name)


def of_cluster(namespace: str, cluster_name: str, store: Store) -> list[Object]:
    """Return the control plane machines of a cluster."""
    return store.find(_BY_CLUSTER, (namespace, cluster_name))


def _clusters(obj: Object) -> list[tuple[str, str]]:
    name = references.cluster_name(obj)
    return [(obj["metadata"]["namespace"], name)] if name and machines.is_control_plane(obj) else []


_BY_CLUSTER: Final = Index(OPENSTACK_MACHINE, _clusters)


def _with_servers(scope: MachineScope) -> Iterator[tuple[Object, Object]]:
    name = references.cluster_name(scope.context.obj)
    for obj in of_cluster(scope.namespace, name, scope.context.deps.store) if name else ():
        if server := scope.context.deps.store.get(OPENSTACK_SERVER, scope.namespace, obj["metadata"]["name"]):
            yield obj, server


def _sibling(obj: Object, server: Object) -> Sibling:
    found = OpenStackServer.model_validate(server)
    is_going = any(each["metadata"].get("deletionTimestamp") for each in (obj, server))
    spec = OpenStackMachineSpec.model_validate(obj["spec"])
    return Sibling(
        name=obj["metadata"]["name"],
        owner=owner_of(obj),
        server=found,
        is_living=found.status.ready and not is_going,
        ports_of_cluster=server_spec.ports_of_cluster(spec),
    )
