"""The port of a control plane machine on the network of its cluster, as its OpenStackServer recorded it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster
from capo.errors import InvalidSpecError
from capo.json_types import Body
from capo.openstack.port import Port
from controllers.openstackmachine.scope import MachineScope


@dataclass(frozen=True)
class Place:
    """The machine's port on the network of its cluster.

    Args:
        address: its fixed IP, IPv4 if it has one there.
    """

    port_id: str
    address: str
    subnet_id: str


def place_of_machine(scope: MachineScope, infra: OpenStackCluster) -> Place:
    """Return the machine's port on the network of its cluster.

    Raises:
        InvalidSpecError: it has none on that network.
        NotYetObserved: the port has not been listed yet.
    """
    network_id = infra.status.network.id if infra.status.network else ""
    port_id = port_id_on(scope.server, network_id)
    if port_id is None:
        raise InvalidSpecError(f"no port of the machine is on the network of the cluster ({network_id or 'unknown'})")
    return place_of(scope.cloud_view.get("port", port_id))


def port_id_on(server: OpenStackServer | None, network_id: str) -> str | None:
    """Return the first port of a server on a network (by id: two networks may have the same name, W-47); pure."""
    if server is None or server.status.resolved is None or server.status.resources is None:
        return None
    wanted, made = server.status.resolved.ports, server.status.resources.ports
    pairs = zip(wanted, made, strict=False)
    return next((port.id for spec, port in pairs if spec.network_id == network_id), None)


def place_of(body: Body) -> Place:
    """Return id, address and subnet of a port; pure.

    Raises:
        InvalidSpecError: it has no address.
    """
    found = Port(body)
    fixed_ips = sorted(found.fixed_ips, key=lambda each: ipaddress.ip_address(each.ip_address).version)
    if not fixed_ips:
        raise InvalidSpecError(f"port {found.id} of the machine has no address on the network of the cluster")
    return Place(found.id, fixed_ips[0].ip_address, fixed_ips[0].subnet_id)
