"""Where the API server is reached: which way leads to the endpoint, on which port, by which floating IP; pure.

Source: behaviour reference, cluster.md 5.1 (rows 1 to 5), W9, W20, and provider contract IC-2 to IC-4. An endpoint
that is complete is never changed, whoever wrote it.
"""

from __future__ import annotations

import ipaddress
from enum import Enum
from typing import Final

from capo.api.v1beta2 import OpenStackClusterSpec
from capo.api.v1beta2.loadbalancer import APIServer, APIServerLoadBalancer
from capo.contract.clusters import Endpoint

DEFAULT_PORT: Final = 6443
_NO_API_SERVER: Final = APIServer()


class Way(Enum):
    """How the host of the endpoint is found."""

    LOAD_BALANCER = "load balancer"
    """The floating IP of the load balancer, else its VIP."""
    GIVEN = "given"
    """The endpoint is complete and there is no load balancer: nothing is asked of the cloud."""
    CLUSTER = "Cluster"
    """Somebody else filled in the endpoint of Cluster API's Cluster."""
    FLOATING_IP = "floating IP"
    """A floating IP, which a control plane machine will carry."""
    FIXED_IP = "fixed IP"
    """``apiServer.fixedIP``: the user brings the address."""
    AWAITED = "awaited"
    """Nothing tells: somebody has to fill in the endpoint of Cluster API's Cluster."""


def of_spec(spec: OpenStackClusterSpec) -> Endpoint | None:
    """Return the endpoint of the spec; None unless host and port are set."""
    found = spec.control_plane_endpoint
    return Endpoint(found.host, found.port) if found and found.host and found.port else None


def api_server(spec: OpenStackClusterSpec) -> APIServer:
    """Return ``spec.apiServer``, with its defaults when it is absent."""
    return spec.api_server or _NO_API_SERVER


def load_balancer(spec: OpenStackClusterSpec) -> APIServerLoadBalancer | None:
    """Return what is said of the load balancer; None when there is to be none."""
    found = api_server(spec).managed_load_balancer
    return found if found and found.enabled else None


def api_port(spec: OpenStackClusterSpec) -> int:
    """Return the port of the API server: that of the endpoint, once it is complete, goes before the wish."""
    given = of_spec(spec)
    return given.port if given else api_server(spec).port or DEFAULT_PORT


def ports(spec: OpenStackClusterSpec) -> tuple[int, ...]:
    """Return the ports that the load balancer serves: that of the API, then the additional ones, each once."""
    balancer = load_balancer(spec)
    return tuple(dict.fromkeys((api_port(spec), *(balancer.additional_ports if balancer else ()))))


def open_ports(spec: OpenStackClusterSpec, *, is_inherited: bool) -> tuple[int, ...]:
    """Return the ports on which a control plane machine is asked for the API, each once.

    Args:
        is_inherited: another provider created the cluster.
    """
    first = api_port(spec)
    if load_balancer(spec) is None:
        # Whatever stands at the endpoint may forward to the port on which kube-apiserver listens: nobody tells which.
        return tuple(dict.fromkeys((first, api_server(spec).port or DEFAULT_PORT, DEFAULT_PORT)))
    # Members of our load balancers have the port of the endpoint; the Go provider opens the default one in any case.
    return tuple(dict.fromkeys((first, DEFAULT_PORT))) if is_inherited else (first,)


def wants_floating_ip(spec: OpenStackClusterSpec, *, has_external_network: bool) -> bool:
    """Tell whether the endpoint gets a floating IP: allowed by the spec, and there is a network to take it from."""
    return has_external_network and api_server(spec).enable_floating_ip is not False


def way(spec: OpenStackClusterSpec, *, has_external_network: bool, of_cluster: Endpoint | None) -> Way:
    """Return the first row of the table that holds.

    Args:
        of_cluster: the endpoint of Cluster API's Cluster, None unless it is complete.
    """
    if load_balancer(spec):
        return Way.LOAD_BALANCER
    if of_spec(spec):
        return Way.GIVEN
    if of_cluster:
        return Way.CLUSTER
    if wants_floating_ip(spec, has_external_network=has_external_network):
        return Way.FLOATING_IP
    return Way.FIXED_IP if api_server(spec).fixed_ip else Way.AWAITED


def demanded_address(spec: OpenStackClusterSpec) -> str | None:
    """Return the floating IP address that it must be: the one the spec names, or the one already written down."""
    return api_server(spec).floating_ip or _literal_host(spec)


def wanted_vip_address(spec: OpenStackClusterSpec, *, known: str | None, has_floating_ip: bool) -> str | None:
    """Return the address that the VIP must have; None leaves it to Neutron.

    Args:
        known: the VIP of an earlier load balancer: one that is made again keeps it.
    """
    host = None if has_floating_ip else _literal_host(spec)
    return known or api_server(spec).fixed_ip or host


def host_name(spec: OpenStackClusterSpec) -> str | None:
    """Return the host of the endpoint if it is a name, which DNS may know; None for an address or no endpoint."""
    given = of_spec(spec)
    return given.host if given and not is_address(given.host) else None


def is_address(host: str) -> bool:
    """Tell whether a host is an IP address, as opposed to a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _literal_host(spec: OpenStackClusterSpec) -> str | None:
    given = of_spec(spec)
    return given.host if given and is_address(given.host) else None
