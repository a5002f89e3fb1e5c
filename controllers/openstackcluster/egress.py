"""Where the nodes of a cluster with restricted egress connect to: the API server, and the name servers of its subnets.

What this reconcile did not find is taken from spec and status: an address whose load balancer cannot be read at the
moment keeps its rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from api.v1beta2.network import SubnetParam
from capo.json_types import Body
from capo.openstack import subnet
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.resource_cache import with_ids
from controllers.openstackcluster import endpoint_policy, failure_domains
from controllers.openstackcluster.scope import ClusterScope

UNKNOWN_ADDRESS: Final = (
    "egress to the API server: the control plane endpoint is a name, and its addresses are not known here; "
    "permit them by a rule in clusterNodesSecurityGroupRules"
)


def api_servers(scope: ClusterScope) -> tuple[tuple[str, int], ...]:
    """Return the addresses of the API server, each with every port that nodes use; empty while none is known."""
    spec, endpoint = scope.cluster.spec, scope.found.endpoint
    port = endpoint.port if endpoint else endpoint_policy.given_port(spec)
    ports = dict.fromkeys((*((port,) if port else ()), *endpoint_policy.ports(spec)))
    return tuple((address, each) for address in dict.fromkeys(_addresses(scope)) for each in ports)


def _addresses(scope: ClusterScope) -> Iterator[str]:
    found, known = scope.found, scope.known_load_balancer
    host = found.endpoint.host if found.endpoint else endpoint_policy.given_host(scope.cluster.spec)
    floating_ip = found.floating_ip or (known.ip if known else "")
    return (each for each in (host or "", floating_ip, *_vips(scope)) if endpoint_policy.is_address(each))


def _vips(scope: ClusterScope) -> list[str]:
    """Return all virtual IPs of the load balancer: nodes may use the one of either IP version."""
    body, known = scope.found.load_balancer, scope.known_load_balancer
    if body is not None:
        return LoadBalancer(body).vip_addresses
    return [known.internal_ip, *known.additional_internal_ips] if known else []


def note(scope: ClusterScope) -> str:
    """Return a message if the endpoint is a name and no address of the API server is known; else an empty one."""
    host = scope.found.endpoint.host if scope.found.endpoint else endpoint_policy.given_host(scope.cluster.spec)
    return UNKNOWN_ADDRESS if host and not api_servers(scope) else ""


def name_servers(scope: ClusterScope) -> tuple[str, ...]:
    """Return the name servers that the cluster's subnets announce.

    Raises:
        SubnetNotFoundError: an existing subnet was deleted.
    """
    return tuple(dict.fromkeys(server for body in _subnets(scope) for server in subnet.Subnet(body).dns_nameservers))


def _subnets(scope: ClusterScope) -> list[Body]:
    """Return the subnets of nodes as they were last listed; those of networks that are not ours are read."""
    ids = dict.fromkeys((*(each.id for each in scope.found.subnets), *failure_domains.subnet_ids(scope)))
    found = {body["id"]: body for body in scope.cloud_view.peek("subnet", among=with_ids(ids))}
    if not found.keys() >= ids.keys() and scope.found.network is not None:
        found |= {body["id"]: body for body in subnet.list_in_network(scope.cloud, scope.found.network.id)}
    return [found[id_] if id_ in found else subnet.resolve(scope.cloud, SubnetParam(id=id_)) for id_ in ids]
