"""The control plane endpoint: its source, its port and its floating IP; pure.

Source: docs/explanation/go-provider.md, G-17 (rows 1 to 5), W-59, W-70, and docs/reference/contract.md, C-2 to C-4.
Parts of the endpoint that are set, here or in Cluster API's Cluster, by any actor, never change; missing parts are
added.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from api.v1beta2 import OpenStackClusterSpec
from api.v1beta2.loadbalancer import APIEndpoint, APIServer, APIServerLoadBalancer
from capo.contract.clusters import Endpoint

DEFAULT_PORT: Final = 6443
_NO_API_SERVER: Final = APIServer()


@dataclass(frozen=True)
class HostedControlPlane:
    """A control plane without machines of ours.

    Args:
        name: kind and name of its object.
        endpoint: None until its provider wrote one.
    """

    name: str
    endpoint: Endpoint | None = None


class EndpointSource(Enum):
    """Source of the endpoint's host."""

    LOAD_BALANCER = "load balancer"
    """The floating IP of the load balancer, else its VIP."""
    GIVEN = "given"
    """The host is set, here or in the Cluster, and there is no load balancer: no OpenStack call is needed."""
    FLOATING_IP = "floating IP"
    """A floating IP, which is associated with a control plane machine."""
    FIXED_IP = "fixed IP"
    """``apiServer.fixedIP``: the user provides the address."""
    CONTROL_PLANE = "control plane"
    """The endpoint that the provider of a hosted control plane wrote in its object."""
    AWAITED = "awaited"
    """No source: the user or another controller has to set the endpoint of Cluster API's Cluster."""


def with_cluster(spec: OpenStackClusterSpec, of_cluster: Endpoint | None) -> OpenStackClusterSpec:
    """Return the spec with the endpoint of Cluster API's Cluster, unless its own endpoint differs.

    Args:
        of_cluster: None unless it is complete.
    """
    host, port = given_host(spec), given_port(spec)
    if of_cluster is None or host not in (None, of_cluster.host) or port not in (None, of_cluster.port):
        return spec
    return spec.model_copy(update={"control_plane_endpoint": APIEndpoint(host=of_cluster.host, port=of_cluster.port)})


def given_host(spec: OpenStackClusterSpec) -> str | None:
    """Return the host of the endpoint if it is set."""
    return (spec.control_plane_endpoint.host if spec.control_plane_endpoint else None) or None


def given_port(spec: OpenStackClusterSpec) -> int | None:
    """Return the port of the endpoint if it is set."""
    return (spec.control_plane_endpoint.port if spec.control_plane_endpoint else None) or None


def completed(spec: OpenStackClusterSpec, host: str) -> Endpoint:
    """Return the endpoint to write: parts that the spec sets are kept.

    Args:
        host: used if the spec sets none.
    """
    return Endpoint(given_host(spec) or host, api_port(spec))


def api_server(spec: OpenStackClusterSpec) -> APIServer:
    """Return ``spec.apiServer``, with its defaults when it is absent."""
    return spec.api_server or _NO_API_SERVER


def load_balancer(spec: OpenStackClusterSpec) -> APIServerLoadBalancer | None:
    """Return ``managedLoadBalancer``; None if it is absent or disabled."""
    found = api_server(spec).managed_load_balancer
    return found if found and found.enabled else None


def api_port(spec: OpenStackClusterSpec) -> int:
    """Return the port of the API server: the endpoint's takes precedence over ``apiServer.port``."""
    return given_port(spec) or api_server(spec).port or DEFAULT_PORT


def ports(spec: OpenStackClusterSpec) -> tuple[int, ...]:
    """Return the ports of the load balancer without duplicates: the API's, then the additional ones."""
    balancer = load_balancer(spec)
    return tuple(dict.fromkeys((api_port(spec), *(balancer.additional_ports if balancer else ()))))


def open_ports(spec: OpenStackClusterSpec, *, is_inherited: bool) -> tuple[int, ...]:
    """Return the ports on which control plane machines accept API requests, without duplicates.

    Args:
        is_inherited: another provider created the cluster.
    """
    first = api_port(spec)
    if load_balancer(spec) is None:
        # An external load balancer may forward to any port on which kube-apiserver listens: allow all that are likely.
        return tuple(dict.fromkeys((first, api_server(spec).port or DEFAULT_PORT, DEFAULT_PORT)))
    # Members of our load balancers use the endpoint's port; the Go provider always opens the default one, too.
    return tuple(dict.fromkeys((first, DEFAULT_PORT))) if is_inherited else (first,)


def wants_floating_ip(spec: OpenStackClusterSpec) -> bool:
    """Return whether the spec lets the endpoint have a floating IP."""
    return api_server(spec).enable_floating_ip is not False and spec.enable_external_network is not False


def endpoint_source(
    spec: OpenStackClusterSpec, *, has_external_network: bool, control_plane: HostedControlPlane | None = None
) -> EndpointSource:
    """Return the first row of the table that applies.

    Args:
        control_plane: None if the control plane runs on our machines, or is not known.
    """
    if load_balancer(spec):
        return EndpointSource.LOAD_BALANCER
    if given_host(spec):
        return EndpointSource.GIVEN
    is_default = has_external_network and control_plane is None
    if wants_floating_ip(spec) and (is_default or asks_for_floating_ip(spec)):
        return EndpointSource.FLOATING_IP
    if api_server(spec).fixed_ip:
        return EndpointSource.FIXED_IP
    if control_plane and control_plane.endpoint and given_port(spec) in (None, control_plane.endpoint.port):
        return EndpointSource.CONTROL_PLANE
    return EndpointSource.AWAITED


def depends_on_control_plane(spec: OpenStackClusterSpec, *, has_external_network: bool) -> bool:
    """Return whether the object of the control plane decides: the spec neither has an endpoint nor asks for one."""
    source = endpoint_source(spec, has_external_network=has_external_network)
    is_default = source is EndpointSource.FLOATING_IP and not asks_for_floating_ip(spec)
    return is_default or source is EndpointSource.AWAITED


def asks_for_floating_ip(spec: OpenStackClusterSpec) -> bool:
    """Return whether the user asks for a floating IP explicitly, which rules out any other endpoint."""
    return bool(api_server(spec).floating_ip or api_server(spec).enable_floating_ip)


def demanded_address(spec: OpenStackClusterSpec) -> str | None:
    """Return the required floating IP address: the one that the spec names, else the endpoint's."""
    return api_server(spec).floating_ip or literal_host(spec)


def wanted_vip_address(spec: OpenStackClusterSpec, *, known: str | None, cidr: str | None) -> str | None:
    """Return the address that the VIP must have; None leaves the choice to DNS, or to Neutron.

    Args:
        known: the VIP of a former load balancer, which its replacement keeps.
        cidr: of the VIP's subnet, None if unknown.
    """
    host = literal_host(spec)
    is_vip = not wants_floating_ip(spec) or address_in([host] if host else [], cidr) is not None
    return known or api_server(spec).fixed_ip or (host if is_vip else None)


def name_of_vip(spec: OpenStackClusterSpec) -> str | None:
    """Return the name whose DNS address the VIP gets if it is in its subnet; None if the spec names a floating IP."""
    is_named = wants_floating_ip(spec) and api_server(spec).floating_ip
    return None if is_named else host_name(spec)


def address_in(addresses: Iterable[str], cidr: str | None) -> str | None:
    """Return the first address inside a subnet; None without one."""
    if not cidr:
        return None
    subnet = ipaddress.ip_network(cidr, strict=False)
    return next((each for each in addresses if ipaddress.ip_address(each) in subnet), None)


def host_name(spec: OpenStackClusterSpec) -> str | None:
    """Return the host of the endpoint if it is a DNS name; None for an address or no host."""
    host = given_host(spec)
    return host if host and not is_address(host) else None


def literal_host(spec: OpenStackClusterSpec) -> str | None:
    """Return the host of the endpoint if it is an IP address."""
    host = given_host(spec)
    return host if host and is_address(host) else None


def is_ipv4(address: str) -> bool:
    """Return whether an address, or the address of a CIDR, is of IPv4: floating IPs lead to no other."""
    return ":" not in address


def is_address(host: str) -> bool:
    """Return whether a host is an IP address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
