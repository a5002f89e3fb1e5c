"""The addresses of a new load balancer: those of its predecessor, as far as Neutron lets anybody choose them.

In a subnet with SLAAC an address follows from the MAC address of its port, which is another one for each load balancer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from api.v1beta2.openstackclusterstatus import Subnet as SubnetStatus
from capo.errors import InvalidClusterSpecError
from capo.openstack import subnet
from capo.openstack.load_balancer import LoadBalancer, WantedVip
from capo.openstack.subnet import Subnet
from controllers.openstackcluster import endpoint_policy
from controllers.openstackcluster.scope import ClusterScope


def choosable(scope: ClusterScope, address: str | None, *, network_id: str) -> str | None:
    """Return the address of the VIP if it can be chosen in this network, else None.

    Raises:
        InvalidClusterSpecError: the spec names one that cannot be chosen.
    """
    if address is None or not is_assigned(scope, address, network_id=network_id):
        return address
    if endpoint_policy.api_server(scope.cluster.spec).fixed_ip == address:
        raise InvalidClusterSpecError(
            f"spec.apiServer.fixedIP: {address} is in a subnet with SLAAC, where no address can be chosen",
            next_step="Remove it, or have the subnet assign addresses by DHCPv6 (dhcpv6-stateful).",
        )
    return None


def additional(scope: ClusterScope, subnets: Sequence[SubnetStatus], *, network_id: str) -> tuple[WantedVip, ...]:
    """Return the further VIPs, with the addresses of the former load balancer."""
    known = scope.known_load_balancer
    former = tuple(known.additional_internal_ips) if known else ()
    kept = {each.id: endpoint_policy.address_in(former, each.cidr) for each in subnets}
    return tuple(WantedVip(id_, choosable(scope, address, network_id=network_id)) for id_, address in kept.items())


def is_assigned(scope: ClusterScope, address: str, *, network_id: str) -> bool:
    """Return whether an address is in a subnet with SLAAC; reads the subnets for one of IPv6.

    Raises:
        SubnetNotFoundError: the network has no subnet.
    """
    if endpoint_policy.is_ipv4(address):
        return False
    found = (Subnet(body) for body in subnet.list_in_network(scope.cloud, network_id))
    return any(endpoint_policy.address_in([address], each.cidr) and each.assigns_addresses for each in found)


def endpoint_to_lose(scope: ClusterScope, balancer: LoadBalancer) -> str | None:
    """Return the control plane endpoint if it is an address that a load balancer created again would not have."""
    host = endpoint_policy.literal_host(scope.cluster.spec)
    is_vip = host is not None and _is_among(host, balancer.vip_addresses)
    if host is None or not is_vip or not balancer.vip_network_id:
        return None
    return host if is_assigned(scope, host, network_id=balancer.vip_network_id) else None


def lost_endpoint(scope: ClusterScope, balancer: LoadBalancer) -> str | None:
    """Return the control plane endpoint if it is in a subnet of the VIPs, and no VIP; of IPv6 alone."""
    host = endpoint_policy.literal_host(scope.cluster.spec)
    if host is None or endpoint_policy.is_ipv4(host) or _is_among(host, balancer.vip_addresses):
        return None
    subnets = scope.found.vip_network[1] if scope.found.vip_network else ()
    return host if any(endpoint_policy.address_in([host], each.cidr) for each in subnets) else None


def _is_among(host: str, addresses: Sequence[str]) -> bool:
    return ipaddress.ip_address(host) in map(ipaddress.ip_address, addresses)
