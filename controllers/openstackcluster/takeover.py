"""How to recognise resources that the Go provider created for a cluster; pure.

It marks them only by names and descriptions. They are used only for objects taken over from it and, once their
deletion is requested, only for resources in the status (ADR 0001, 7).
Source: docs/explanation/go-provider.md, G-1 and G-7 to G-13.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from api.v1beta2 import OpenStackCluster
from capo import names
from capo.json_types import Body
from capo.ledger import Ledger
from capo.openstack import floating_ip, subnet
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.resource_cache import BY_NAME, Selection, either, found_by, with_ids
from capo.openstack.subnet import Subnet
from controllers import roles
from controllers.roles import BASTION, CONTROL_PLANE, WORKER

_PLACED: Final = (roles.SUBNET, roles.API_FLOATING_IP, roles.BASTION_FLOATING_IP)


@dataclass(frozen=True)
class Mark:
    """How to recognise the resource of a role.

    Args:
        kind: of the resource.
        fits: returns whether a resource without a stamp is the one.
        among: selects those that may be the one.
    """

    kind: str
    fits: Callable[[Body], bool]
    among: Selection


def marks(
    cluster: OpenStackCluster,
    resource_name: str,
    network_id: str | None,
    *,
    api_ports: Collection[str] = (),
    bastion_ports: Collection[str] = (),
) -> dict[str, Mark]:
    """Return the marks by role.

    Args:
        resource_name: ``<namespace>-<Cluster name>``.
        network_id: id of the cluster's network, None while unknown.
        api_ports: ids of the ports of the virtual IP.
        bastion_ports: ids of the ports of the bastion's server.
    """
    balancer, endpoint = cluster.status.api_server_managed_load_balancer, cluster.spec.control_plane_endpoint
    api_address = balancer.ip if balancer else endpoint.host if endpoint else None
    bastion_address = cluster.status.bastion.floating_ip if cluster.status.bastion else None
    found = {
        roles.LOAD_BALANCER: _named("load_balancer", names.load_balancer(resource_name)),
        roles.API_FLOATING_IP: _floating_ip(resource_name, api_address, api_ports),
        roles.BASTION_FLOATING_IP: _floating_ip(resource_name, bastion_address, bastion_ports),
    }
    # Without managed groups the Go provider creates none: one of that name is not ours, unless its id is in the status,
    # which keeps the ids of groups that were managed before.
    are_groups_managed, reported = cluster.spec.managed_security_groups is not None, reported_ids(cluster)
    for role, suffix in ((roles.group(suffix), suffix) for suffix in (CONTROL_PLANE, WORKER, BASTION)):
        if are_groups_managed or role in reported:
            found[role] = _named("security_group", names.security_group(resource_name, suffix))
    if cluster.spec.managed_subnets:
        name = names.network(resource_name)
        found[roles.NETWORK] = _named("network", name)
        found[roles.SUBNET] = _subnet(network_id, cluster.spec.managed_subnets[0].cidr)
        if cluster.spec.router is None:
            found[roles.ROUTER] = _named("router", name)
    return found


def reported_ids(cluster: OpenStackCluster) -> dict[str, str]:
    """Return the ids of network, router, load balancer and groups in the status, by role."""
    status = cluster.status
    found = {
        roles.NETWORK: status.network,
        roles.ROUTER: status.router,
        roles.LOAD_BALANCER: status.api_server_managed_load_balancer,
        roles.group(CONTROL_PLANE): status.control_plane_security_group,
        roles.group(WORKER): status.worker_security_group,
        roles.group(BASTION): status.bastion_security_group,
    }
    return {role: block.id for role, block in found.items() if block and block.id}


def named(cluster: OpenStackCluster) -> Ledger:
    """Return the resources of the Go provider whose ids are in the status."""
    ids, found = reported_ids(cluster), Ledger()
    for role, mark in marks(cluster, "", None).items():
        if role in ids:
            found.record(mark.kind, role, ids[role])
    return found


def proven(all_marks: Mapping[str, Mark], cluster: OpenStackCluster) -> dict[str, Mark]:
    """Return the marks that suffice for a deletion.

    A floating IP is identified by its recorded address or its port, the subnet by its network, others by their id in
    the status.
    """
    ids = reported_ids(cluster)
    return {
        role: _with_id(mark, ids[role]) if role in ids else mark
        for role, mark in all_marks.items()
        if role in ids or role in _PLACED
    }


def _with_id(mark: Mark, resource_id: str) -> Mark:
    return Mark(mark.kind, lambda body: body["id"] == resource_id and mark.fits(body), with_ids([resource_id]))


def _named(kind: str, name: str) -> Mark:
    return Mark(kind, lambda body: body.get("name") == name, found_by(BY_NAME, name))


def _subnet(network_id: str | None, cidr: str) -> Mark:
    def fits(body: Body) -> bool:
        return (Subnet(body).network_id, Subnet(body).cidr) == (network_id, cidr)

    return Mark("subnet", fits, found_by(subnet.BY_NETWORK, network_id))


def _floating_ip(resource_name: str, address: str | None, port_ids: Collection[str]) -> Mark:
    """Return the mark of a floating IP: all share one description, so the address or the port must match, too."""

    def fits(body: Body) -> bool:
        is_described = FloatingIP(body).description == names.created_by(resource_name)
        return is_described and (FloatingIP(body).address == address or FloatingIP(body).port_id in port_ids)

    at_ports = found_by(floating_ip.BY_PORT, *port_ids)
    return Mark("floating_ip", fits, either(found_by(floating_ip.BY_ADDRESS, address), at_ports))
