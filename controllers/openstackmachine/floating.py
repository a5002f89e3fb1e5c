"""Without a load balancer: the cluster's floating IP sits on one control plane machine, and never on a dead one.

It belongs to the OpenStackCluster, which makes and deletes it. A machine takes it when nobody living has it (W-09).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo import names
from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1beta2 import OpenStackCluster
from capo.contract import machines, references
from capo.controllers.openstackmachine import ports
from capo.controllers.openstackmachine.child import INFRASTRUCTURE
from capo.controllers.openstackmachine.scope import MachineScope
from capo.engine.steps import Done, Outcome, Wait
from capo.kube.kinds import OPENSTACK_MACHINE, OPENSTACK_SERVER
from capo.ledger import Ledger
from capo.openstack import floating_ip

ROLE: Final = "fip-api"


def ensure(scope: MachineScope, infra: OpenStackCluster) -> Outcome:
    """Have the floating IP on this machine, or on another one that lives."""
    floating_ip_id = Ledger.read((scope.owners.infra or {}).get("status")).id_of(ROLE)
    if floating_ip_id is None:
        return Wait(INFRASTRUCTURE, "the floating IP of the cluster is not there")
    found = scope.observed.get("floating_ip", floating_ip_id)
    if found.get("port_id") in _living_port_ids(scope):
        return Done(f"another control plane machine has {found['floating_ip_address']}")
    place = ports.of_machine(scope, infra)
    if found.get("port_id") != place.port_id:
        moved = floating_ip.associate(scope.cloud, found["id"], port_id=place.port_id, fixed_ip=place.address)
        scope.observed.learn("floating_ip", moved)
    return Done()


def _living_port_ids(scope: MachineScope) -> set[str]:
    """Return the ports of the other control plane machines that are not going away."""
    return {port_id for server in _siblings(scope) for port_id in _port_ids(server)}


def _siblings(scope: MachineScope) -> Iterable[OpenStackServer]:
    store, name = scope.turn.tools.store, references.cluster_name(scope.turn.obj)
    if not name:
        return
    for obj in store.by_label(OPENSTACK_MACHINE, scope.namespace, names.CLUSTER_NAME_LABEL, name):
        metadata = obj["metadata"]
        if metadata["name"] == scope.name or metadata.get("deletionTimestamp") or not machines.is_control_plane(obj):
            continue
        server = store.get(OPENSTACK_SERVER, scope.namespace, metadata["name"])
        if server and not server["metadata"].get("deletionTimestamp"):
            yield OpenStackServer.model_validate(server)


def _port_ids(server: OpenStackServer) -> list[str]:
    is_living = server.status.ready and server.status.resources is not None
    return [port.id for port in server.status.resources.ports] if is_living and server.status.resources else []
