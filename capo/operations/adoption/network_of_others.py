"""The network of a lost cluster that it did not create: where its servers and its load balancer are; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capo.json_types import Body
from capo.openstack.port import Port
from capo.operations.adoption.search import FoundCluster
from capo.operations.errors import OperatorError
from controllers import roles


def complete(found: FoundCluster, network: str | None = None) -> FoundCluster:
    """Return the cluster with the network that it uses; one with a network of its own as it is.

    Args:
        network: id, if a person named it.

    Raises:
        OperatorError: its servers and its load balancer are in several networks, or there is none, or not that one.
    """
    if found.body(roles.NETWORK) is not None:
        if network:
            raise OperatorError("the cluster has a network of its own: --network does not apply")
        return found
    at_ports = _all_networks(found)
    if network and at_ports and network not in at_ports:
        text = f"network {network} has no port of the cluster's servers or load balancer"
        raise OperatorError(f"{text}: --network takes an id")
    used = {network} if network else _networks(found)
    if len(used) != 1:
        shown = ", ".join(sorted(used)) or "none"
        raise OperatorError(
            f"cluster {found.namespace}/{found.name} has no network of its own; its servers and its load balancer use "
            f"{shown}: name one with --network"
        )
    network_id = next(iter(used))
    return replace(found, network_id=network_id, subnets=_subnets(found, network_id))


def _all_networks(found: FoundCluster) -> set[str]:
    """Return the networks of all ports of servers, and that of the virtual IP."""
    servers = [*found.servers, *([found.bastion] if found.bastion else ())]
    at_vip = (found.body(roles.LOAD_BALANCER) or {}).get("vip_network_id")
    return {str(body["network_id"]) for each in servers for body in each.ports} | ({at_vip} if at_vip else set())


def _networks(found: FoundCluster) -> set[str]:
    """Return the networks of the first ports, in which the nodes are, else that of the virtual IP."""
    servers = [*found.servers, *([found.bastion] if found.bastion else ())]
    first = {str(each.ports[0]["network_id"]) for each in servers}
    balancer = found.body(roles.LOAD_BALANCER)
    at_vip = {str(balancer["vip_network_id"])} if balancer and balancer.get("vip_network_id") else set[str]()
    return first or at_vip


def _subnets(found: FoundCluster, network_id: str) -> Sequence[Body]:
    """Return the subnets in use, that of the virtual IP first: the controller takes the first one for it."""
    used = [ip.subnet_id for each in found.servers for body in each.ports for ip in Port(body).fixed_ips]
    at_vip = (found.body(roles.LOAD_BALANCER) or {}).get("vip_subnet_id")
    all_subnets = [body for body in found.survey.of_all("subnet") if body["network_id"] == network_id]
    in_use = [body for body in all_subnets if body["id"] in {*used, at_vip}]
    return sorted(in_use or all_subnets, key=lambda body: (body["id"] != at_vip, body["id"]))
