"""What the Go provider made for a cluster, and how it is told from what others made; pure.

It leaves no mark but names and descriptions. They count only for objects that were taken over from it (ADR 0001, 7).
Source: behaviour reference, cluster.md 2.1 and 2.3 to 2.10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from capo import names
from capo.api.v1beta2 import OpenStackCluster
from capo.controllers.openstackcluster import roles
from capo.controllers.openstackcluster.rules import BASTION, CONTROL_PLANE, WORKER

Resource = Mapping[str, Any]


@dataclass(frozen=True)
class Mark:
    """How the resource of one role is told.

    Args:
        kind: of the resource.
        fits: tells whether a resource without a stamp is the one.
    """

    kind: str
    fits: Callable[[Resource], bool]


def marks(cluster: OpenStackCluster, resource_name: str, network_id: str | None) -> dict[str, Mark]:
    """Return the marks by role.

    Args:
        resource_name: ``<namespace>-<Cluster name>``.
        network_id: id of the cluster's network, None while that is not known.
    """
    found = {
        roles.LOAD_BALANCER: _named("load_balancer", names.load_balancer(resource_name)),
        roles.API_FLOATING_IP: _floating_ip(resource_name, _api_address(cluster)),
        roles.BASTION_FLOATING_IP: _floating_ip(resource_name, _bastion_address(cluster)),
    }
    for suffix in (CONTROL_PLANE, WORKER, BASTION):
        name = names.security_group(resource_name, suffix)
        found[roles.group(suffix)] = _named("security_group", name)
    if cluster.spec.managed_subnets:
        name = names.network(resource_name)
        found[roles.NETWORK] = _named("network", name)
        found[roles.SUBNET] = _subnet(network_id, cluster.spec.managed_subnets[0].cidr)
        if cluster.spec.router is None:
            found[roles.ROUTER] = _named("router", name)
    return found


def _named(kind: str, name: str) -> Mark:
    return Mark(kind, lambda body: body.get("name") == name)


def _subnet(network_id: str | None, cidr: str) -> Mark:
    return Mark("subnet", lambda body: (body["network_id"], body["cidr"]) == (network_id, cidr))


def _floating_ip(resource_name: str, address: str | None) -> Mark:
    """Return the mark of a floating IP: they all have one description, so the recorded address counts too."""

    def fits(body: Resource) -> bool:
        is_described = body.get("description") == names.created_by(resource_name)
        return is_described and body["floating_ip_address"] == address

    return Mark("floating_ip", fits)


def _api_address(cluster: OpenStackCluster) -> str | None:
    balancer, endpoint = cluster.status.api_server_managed_load_balancer, cluster.spec.control_plane_endpoint
    return balancer.ip if balancer else endpoint.host if endpoint else None


def _bastion_address(cluster: OpenStackCluster) -> str | None:
    return cluster.status.bastion.floating_ip if cluster.status.bastion else None
