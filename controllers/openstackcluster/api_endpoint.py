"""The control plane endpoint with its floating IP.

Source: behaviour reference, cluster.md 5.1; which row of the table holds is decided in ``endpoint.py``.
"""

from __future__ import annotations

from functools import partial
from typing import assert_never

from capo.contract import clusters
from capo.contract.clusters import Endpoint
from capo.controllers.openstackcluster import dns, endpoint, floating_ips
from capo.controllers.openstackcluster.endpoint import Way
from capo.controllers.openstackcluster.floating_ips import Wish
from capo.controllers.openstackcluster.roles import API_FLOATING_IP
from capo.controllers.openstackcluster.scope import ClusterScope
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait


def ensure_endpoint(scope: ClusterScope) -> Outcome:
    """Know the endpoint, and have its floating IP."""
    spec = scope.cluster.spec
    has_external = scope.found.external_network is not None
    of_cluster = clusters.endpoint(scope.owner) if scope.owner else None
    way = endpoint.way(spec, has_external_network=has_external, of_cluster=of_cluster)
    match way:
        case Way.LOAD_BALANCER:
            return _of_load_balancer(scope, has_external)
        case Way.GIVEN:
            is_theirs = scope.turn.is_taken_over and endpoint.wants_floating_ip(spec, has_external_network=has_external)
            if is_theirs or scope.turn.ledger.knows(API_FLOATING_IP):
                _record_floating_ip(scope)
            return Done()
        case Way.CLUSTER:
            scope.found.endpoint = of_cluster
            return Done("the endpoint is that of the Cluster")
        case Way.FLOATING_IP:
            return _of_floating_ip(scope, Wish(API_FLOATING_IP, address=endpoint.demanded_address(spec)))
        case Way.FIXED_IP:
            return _at(scope, endpoint.api_server(spec).fixed_ip or "")
        case Way.AWAITED:
            return Wait(
                "WaitingForControlPlaneEndpoint",
                "nothing in the spec tells the endpoint: somebody has to set spec.controlPlaneEndpoint of the Cluster",
            )
        case _:
            assert_never(way)


def _record_floating_ip(scope: ClusterScope) -> None:
    """Record the floating IP of an endpoint that is settled, so that it goes with the cluster; one of two goes at once.

    The endpoint may have been written by a pass that ended before its record was: then an intent is all there is.
    """
    found = scope.find("floating_ip", API_FLOATING_IP)
    until_s = scope.observed.pending_until("floating_ip")
    if found is None and until_s is not None and until_s <= scope.turn.started_s:
        scope.turn.ledger.drop(API_FLOATING_IP)  # proven never to have been created, and not wanted any more


def _at(scope: ClusterScope, host: str) -> Outcome:
    scope.found.endpoint = Endpoint(host, endpoint.api_port(scope.cluster.spec))
    return Done()


def _of_load_balancer(scope: ClusterScope, has_external: bool) -> Outcome:
    spec, body = scope.cluster.spec, scope.found.load_balancer
    if body is None:
        raise AssertionError("the load balancer is known: the step needs it")
    if not endpoint.wants_floating_ip(spec, has_external_network=has_external):
        return _at(scope, body["vip_address"])
    host = endpoint.host_name(spec)
    wish = Wish(
        API_FLOATING_IP,
        port_id=body["vip_port_id"],
        address=endpoint.demanded_address(spec),
        hint=partial(dns.address_of, host) if host else None,
    )
    return _of_floating_ip(scope, wish)


def _of_floating_ip(scope: ClusterScope, wish: Wish) -> Outcome:
    found = floating_ips.ensure(scope, wish)
    if isinstance(found, Create):
        return found
    scope.found.floating_ip = found["floating_ip_address"]
    return _at(scope, found["floating_ip_address"])


def remove_endpoint(scope: ClusterScope) -> Outcome:
    """Have no floating IP of ours left but those that the user claims; these lead to nothing once their port goes."""
    for body in scope.owned("floating_ip"):
        if not floating_ips.is_kept(scope, body):
            floating_ips.release(scope, body)
    return NotNeeded()
