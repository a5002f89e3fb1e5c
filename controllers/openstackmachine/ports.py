"""The port of a control plane machine on the network of its cluster, as its OpenStackServer recorded it."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass, replace

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster
from capo.errors import InvalidSpecError
from capo.json_types import Body
from capo.openstack.port import Port
from controllers import server_spec
from controllers.openstackmachine.scope import MachineScope


@dataclass(frozen=True)
class Place:
    """The machine's port on the network of its cluster.

    Args:
        address: its fixed IP, of the preferred IP version if it has one there.
        addresses: all its fixed IPs there.
    """

    port_id: str
    address: str
    subnet_id: str
    addresses: tuple[str, ...]

    def is_of(self, version: int) -> bool:
        """Return whether its address is of an IP version."""
        return ipaddress.ip_address(self.address).version == version

    def of_one_version(self) -> Place:
        """Return the place without the addresses of the other IP version."""
        version = ipaddress.ip_address(self.address).version
        own = tuple(each for each in self.addresses if ipaddress.ip_address(each).version == version)
        return replace(self, addresses=own)


def version_of_vip(infra: OpenStackCluster) -> int:
    """Return the IP version of the load balancer's virtual IP, 4 if there is none; pure."""
    balancer = infra.status.api_server_managed_load_balancer
    return ipaddress.ip_address(balancer.internal_ip).version if balancer and balancer.internal_ip else 4


def versions_of_vips(infra: OpenStackCluster) -> tuple[int, ...]:
    """Return the IP versions of the load balancer's virtual IPs without duplicates, the first one's first; pure."""
    balancer = infra.status.api_server_managed_load_balancer
    more = balancer.additional_internal_ips if balancer else ()
    return tuple(dict.fromkeys((version_of_vip(infra), *(ipaddress.ip_address(each).version for each in more))))


def place_of_machine(scope: MachineScope, infra: OpenStackCluster, *, version: int = 4) -> Place:
    """Return the machine's port on the network of its cluster or failure domain.

    Args:
        version: the preferred IP version.

    Raises:
        InvalidSpecError: it has none there.
        NotYetObserved: the port has not been listed yet.
    """
    network_id = infra.status.network.id if infra.status.network else ""
    port_id = port_id_on(scope.server, network_id, server_spec.ports_of_cluster(scope.machine.spec))
    if port_id is None:
        raise InvalidSpecError(f"no port of the machine is on the network of the cluster ({network_id or 'unknown'})")
    return place_of(scope.cloud_view.get("port", port_id), version=version)


def port_id_on(server: OpenStackServer | None, network_id: str, of_cluster: Collection[int]) -> str | None:
    """Return the first port on a network (by id: two networks may have the same name, W-47), or one of some; pure.

    Args:
        of_cluster: the indexes of the ports that are on the network of the cluster, or on that of the failure domain,
            which may have been another one when the server was created.
    """
    if server is None or server.status.resolved is None or server.status.resources is None:
        return None
    wanted, made = server.status.resolved.ports, server.status.resources.ports
    pairs = enumerate(zip(wanted, made, strict=False))
    fits = (port.id for index, (spec, port) in pairs if spec.network_id == network_id or index in of_cluster)
    return next(fits, None)


def place_of(body: Body, *, version: int = 4) -> Place:
    """Return id, address and subnet of a port; pure.

    Args:
        version: the preferred IP version.

    Raises:
        InvalidSpecError: it has no address.
    """
    found = Port(body)
    fixed_ips = sorted(found.fixed_ips, key=lambda each: ipaddress.ip_address(each.ip_address).version != version)
    if not fixed_ips:
        raise InvalidSpecError(f"port {found.id} of the machine has no address on the network of the cluster")
    return Place(
        found.id, fixed_ips[0].ip_address, fixed_ips[0].subnet_id, tuple(each.ip_address for each in fixed_ips)
    )
