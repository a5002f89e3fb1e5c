"""The control plane endpoint with its floating IP.

Source: docs/explanation/go-provider.md, G-17; ``endpoint_policy.py`` decides which row of its table applies.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final, assert_never

from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.errors import CapoError, InvalidSpecError
from capo.json_types import Body
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.load_balancer import LoadBalancer
from controllers.openstackcluster import control_plane, dns, endpoint_policy, floating_ips, vip_addresses
from controllers.openstackcluster.endpoint_policy import EndpointSource, HostedControlPlane
from controllers.openstackcluster.floating_ips import FloatingIPRequest
from controllers.openstackcluster.scope import ClusterScope
from controllers.roles import API_FLOATING_IP

log = logging.getLogger(__name__)

CONDITION: Final = "APIEndpointReady"
LOOKED_FOR_S: Final = 60.0
"""Interval at which a missing external network is searched for again."""


def ensure_endpoint(scope: ClusterScope) -> Outcome:
    """Determine the endpoint; create and associate its floating IP if it has one."""
    has_external = _has_floating_ips(scope)
    if not endpoint_policy.depends_on_control_plane(scope.cluster.spec, has_external_network=has_external):
        return _from_source(scope, None)
    found = control_plane.look(scope)
    return found if isinstance(found, Wait) else _from_source(scope, found)


def _from_source(scope: ClusterScope, hosted: HostedControlPlane | None) -> Outcome:
    spec = scope.cluster.spec
    has_external = _has_floating_ips(scope)
    way = endpoint_policy.endpoint_source(spec, has_external_network=has_external, control_plane=hosted)
    match way:
        case EndpointSource.LOAD_BALANCER:
            return _of_load_balancer(scope)
        case EndpointSource.GIVEN:
            has_network = scope.found.external_network is not None
            is_theirs = scope.context.is_taken_over and has_network and endpoint_policy.wants_floating_ip(spec)
            if is_theirs or scope.context.ledger.knows(API_FLOATING_IP):
                _record_floating_ip(scope)
            return _at(scope, endpoint_policy.given_host(spec) or "")
        case EndpointSource.FLOATING_IP:
            if not _is_reached_by_ipv4(scope):
                raise _no_ipv4("network of the cluster has no subnet of IPv4")
            return _of_floating_ip(
                scope, FloatingIPRequest(API_FLOATING_IP, address=endpoint_policy.demanded_address(spec))
            )
        case EndpointSource.FIXED_IP:
            return _at(scope, endpoint_policy.api_server(spec).fixed_ip or "")
        case EndpointSource.CONTROL_PLANE:
            return _of_control_plane(scope, hosted)
        case EndpointSource.AWAITED:
            return _awaited_of(hosted) if hosted else _awaited(scope)
        case _:
            assert_never(way)


def _has_floating_ips(scope: ClusterScope) -> bool:
    """Return whether floating IPs are possible: there is an external network, and the cluster's has IPv4."""
    return scope.found.external_network is not None and _is_reached_by_ipv4(scope)


def _is_reached_by_ipv4(scope: ClusterScope) -> bool:
    return any(endpoint_policy.is_ipv4(each.cidr) for each in scope.found.subnets)


def _no_ipv4(why: str) -> InvalidSpecError:
    return InvalidSpecError(
        f"a floating IP cannot be the control plane endpoint: the {why}, and floating IPs are of IPv4",
        next_step="Set spec.apiServer.enableFloatingIP to false and remove spec.apiServer.floatingIP; the endpoint is "
        "then the virtual IP of the load balancer, or what spec.controlPlaneEndpoint names.",
    )


def _of_control_plane(scope: ClusterScope, hosted: HostedControlPlane | None) -> Outcome:
    """Use the endpoint of a hosted control plane; Cluster API copies it only once that is initialized (C-79)."""
    if hosted is None:
        raise AssertionError("the source is the endpoint of a hosted control plane")
    scope.found.endpoint = hosted.endpoint
    return Done()


def _awaited_of(hosted: HostedControlPlane) -> Wait:
    text = (
        f"no control plane endpoint yet: {hosted.name} has no machines here, so its provider has to set one, on it, "
        "the Cluster or the OpenStackCluster; for a floating IP instead, set spec.apiServer.enableFloatingIP to true"
    )
    return Wait("WaitingForControlPlaneEndpoint", text, control_plane.LOOK_S)


def _awaited(scope: ClusterScope) -> Wait:
    text = "no control plane endpoint configured: set spec.controlPlaneEndpoint of the Cluster"
    if not endpoint_policy.wants_floating_ip(scope.cluster.spec) or not _is_reached_by_ipv4(scope):
        return Wait("WaitingForControlPlaneEndpoint", text)
    more = f"{text}, or make an external network visible to the project for a floating IP ({_LOOKED_FOR})"
    return Wait("WaitingForControlPlaneEndpoint", more, LOOKED_FOR_S)


_LOOKED_FOR: Final = f"checked every {LOOKED_FOR_S:.0f} s"


def _record_floating_ip(scope: ClusterScope) -> None:
    """Record the floating IP of an existing endpoint, so that it is deleted with the cluster; delete a duplicate."""
    # An earlier reconcile may have written the endpoint and ended before it recorded the floating IP: then only an
    # intent exists.
    found = scope.find("floating_ip", API_FLOATING_IP)
    until_s = scope.cloud_view.pending_until("floating_ip")
    if found is None and until_s is not None and until_s <= scope.context.started_s:
        scope.context.ledger.drop(API_FLOATING_IP)  # proven never to have been created, and no longer wanted


def _at(scope: ClusterScope, host: str, message: str = "") -> Outcome:
    scope.found.endpoint = endpoint_policy.completed(scope.cluster.spec, host)
    return Done(message)


def _of_load_balancer(scope: ClusterScope) -> Outcome:
    spec, body = scope.cluster.spec, scope.found.load_balancer
    if body is None:
        raise AssertionError("the load balancer is known: the step needs it")
    balancer = LoadBalancer(body)
    if host := vip_addresses.lost_endpoint(scope, balancer):
        raise _lost(host, balancer)
    vip = balancer.vip_address
    if _is_vip(scope, vip) or _is_vip_of_ipv6(scope, balancer):
        return _at(scope, vip)
    name = endpoint_policy.host_name(spec)
    address = endpoint_policy.demanded_address(spec)
    wish = FloatingIPRequest(API_FLOATING_IP, balancer.vip_port_id, address, takes_any_at_port=name is not None)
    if name and not address and floating_ips.existing(scope, wish) is None:
        return _of_name(scope, wish, name=name, vip=vip)
    return _of_floating_ip(scope, wish)


def _lost(host: str, balancer: LoadBalancer) -> InvalidSpecError:
    vips = ", ".join(balancer.vip_addresses)
    return InvalidSpecError(
        f"control plane endpoint {host} is no virtual IP of load balancer {balancer.name}, which has {vips}: in a "
        "subnet with SLAAC no address can be chosen",
        next_step="An endpoint never changes: create the cluster again, with a virtual IP in a subnet with "
        "dhcpv6-stateful or of IPv4.",
    )


def _is_vip(scope: ClusterScope, vip: str) -> bool:
    """Return whether the VIP is the endpoint, with no other floating IP requested."""
    spec = scope.cluster.spec
    if not endpoint_policy.wants_floating_ip(spec):
        return True
    can_have_other = endpoint_policy.api_server(spec).floating_ip and scope.found.external_network
    return endpoint_policy.literal_host(spec) == vip and not can_have_other


def _is_vip_of_ipv6(scope: ClusterScope, balancer: LoadBalancer) -> bool:
    """Return whether the VIP is the endpoint because it is of IPv6 and the spec asks for no floating IP.

    Raises:
        InvalidSpecError: the spec asks for one, and no VIP is of IPv4.
    """
    spec = scope.cluster.spec
    if endpoint_policy.is_ipv4(balancer.vip_address):
        return False
    host = endpoint_policy.literal_host(spec)
    if not endpoint_policy.asks_for_floating_ip(spec) and not (host and endpoint_policy.is_ipv4(host)):
        return True
    if not any(map(endpoint_policy.is_ipv4, balancer.vip_addresses)):
        raise _no_ipv4("load balancer has no virtual IP of IPv4")
    return False


def _of_name(scope: ClusterScope, wish: FloatingIPRequest, *, name: str, vip: str) -> Outcome:
    """Use the floating IP among the name's DNS addresses, or create one; use none if the name resolves to the VIP."""
    known = scope.known_load_balancer
    if known and known.ip == known.internal_ip == vip:
        return _at(scope, vip)  # as recorded earlier: a running cluster does not depend on DNS
    found = dns.addresses(scope.resolver, name, namespace=scope.namespace, now_s=scope.context.deps.clock.now())
    if isinstance(found, Wait):
        return found
    return _at(scope, vip) if vip in found else _of_floating_ip(scope, replace(wish, candidates=found))


def _of_floating_ip(scope: ClusterScope, wish: FloatingIPRequest) -> Outcome:
    if scope.found.external_network is None and not _is_in_place(scope, wish):
        return _await_external_network(scope)
    found = floating_ips.ensure(scope, wish)
    if isinstance(found, Create):
        return found
    scope.found.floating_ip = FloatingIP(found).address
    return _at(scope, FloatingIP(found).address, floating_ips.changes(scope))


def _is_in_place(scope: ClusterScope, wish: FloatingIPRequest) -> bool:
    """Return whether the floating IP is associated with its port."""
    # Neutron associates a floating IP only with a port whose network has a router to the external network.
    found = floating_ips.existing(scope, wish)
    return found is not None and bool(wish.port_id) and FloatingIP(found).port_id == wish.port_id


def _await_external_network(scope: ClusterScope) -> Wait:
    """Wait: the endpoint is immutable once written, so nothing is used instead of the floating IP."""
    instead = (
        "the virtual IP of the load balancer"
        if endpoint_policy.load_balancer(scope.cluster.spec)
        else "another endpoint"
    )
    text = (
        "the project sees no external network to take the floating IP of the control plane endpoint from: share one "
        f"with it, {_LOOKED_FOR}, or set spec.apiServer.enableFloatingIP to false for {instead}"
    )
    return Wait("WaitingForExternalNetwork", text, LOOKED_FOR_S)


def remove_endpoint(scope: ClusterScope) -> Outcome:
    """Delete the cluster's floating IPs; dissociate those that the user claims."""
    for body in scope.owned("floating_ip"):
        if not floating_ips.is_kept(scope, body):
            floating_ips.release(scope, body)
    for body in _at_load_balancer(scope):
        _detach(scope, body)
    return NotNeeded()


def _at_load_balancer(scope: ClusterScope) -> list[Body]:
    """Return the spec's floating IPs that are associated with the VIP of our load balancer, if Octavia can be asked."""
    if not scope.context.ledger.records_of_kind("load_balancer"):
        return []
    try:
        balancers = scope.owned("load_balancer")
    except CapoError:
        return []  # the step that deletes it reports that
    port_ids = filter(None, (LoadBalancer(body).vip_port_id for body in balancers))
    there = (found for port_id in port_ids for found in floating_ips.at_port(scope, port_id))
    return [found for found in there if _is_lent(scope, found)]


def _is_lent(scope: ClusterScope, body: Body) -> bool:
    """Return whether a floating IP is that of the endpoint; others were associated externally."""
    known = scope.known_load_balancer
    addresses = (endpoint_policy.demanded_address(scope.cluster.spec), known.ip if known else None)
    return FloatingIP(body).address in addresses


def _detach(scope: ClusterScope, body: Body) -> None:
    """Dissociate a floating IP. The router cannot be disconnected while the VIP has one."""
    try:
        floating_ips.dissociate(scope, body)
    except CapoError as error:
        # No retry: Neutron dissociates it when the load balancer is deleted.
        log.info("Floating IP was not disassociated", extra={"id": body["id"], "err": error.sentence})
