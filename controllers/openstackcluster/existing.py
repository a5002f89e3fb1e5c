"""Network, subnets and router provided by the user: read once per resync from the shared lists.

They are identified by the ids that were found first: others may rename them, or change their subnets and addresses.
A resource that the project's list does not show belongs to another project or was deleted: then it is read by id.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from api.v1beta2.network import NetworkParam, RouterParam, SubnetParam
from api.v1beta2.openstackclusterstatus import NetworkStatusWithSubnets, Subnet
from capo.errors import RouterNotFoundError
from capo.json_types import Body
from capo.openstack import network, router, subnet
from capo.openstack.resource_cache import found_by
from controllers.openstackcluster import status
from controllers.openstackcluster.scope import ClusterScope

NETWORK: Final = "network"
ROUTER: Final = "router"


def network_as_it_is(scope: ClusterScope, known: NetworkStatusWithSubnets) -> NetworkStatusWithSubnets:
    """Return the current state of a known network, with those of its subnets that the cluster uses.

    Raises:
        NetworkNotFoundError: it was deleted.
        SubnetNotFoundError: a subnet that the spec names was deleted, or the network has none.
        NotYetObserved: the lists are being polled.
    """
    if scope.is_seen(NETWORK, known):
        return known
    scope.relist("network")
    body = network.resolve(scope.cloud, NetworkParam(id=known.id))
    shown = status.network(body)
    found = NetworkStatusWithSubnets(**dict(shown), subnets=_subnets(scope, body, known))
    scope.note_seen(NETWORK, found)
    return found


def _subnets(scope: ClusterScope, body: Body, known: NetworkStatusWithSubnets) -> tuple[Subnet, ...]:
    """Return the subnets that the cluster uses; read them only if the network's subnet ids changed."""
    there, used = set(network.Network(body).subnet_ids), {each.id for each in known.subnets}
    if used == there or (scope.cluster.spec.subnets and used <= there):
        return known.subnets
    scope.relist("subnet")
    found = _named(scope, known) if scope.cluster.spec.subnets else _all(scope, there, known)
    return tuple(map(status.subnet, found))


def _named(scope: ClusterScope, known: NetworkStatusWithSubnets) -> list[Body]:
    return [subnet.resolve(scope.cloud, SubnetParam(id=each.id), network_id=known.id) for each in known.subnets]


def _all(scope: ClusterScope, there: Collection[str], known: NetworkStatusWithSubnets) -> list[Body]:
    """Return all subnets of a network, known ones first and in the known order, because the order is significant."""
    listed = scope.cloud_view.peek("subnet", among=found_by(subnet.BY_NETWORK, known.id))
    # The project's list does not show the subnets of another project's network.
    is_complete = listed and {each["id"] for each in listed} == there
    found = listed if is_complete else subnet.list_in_network(scope.cloud, known.id)
    places = {each.id: place for place, each in enumerate(known.subnets)}
    return sorted(found, key=lambda each: (places.get(each["id"], len(places)), each["id"]))


def given_router(scope: ClusterScope, given: RouterParam) -> Body:
    """Return the router that the spec names; one found by a filter is identified by its id from then on.

    Raises:
        RouterNotFoundError: no router matches.
        AmbiguousMatchError: the filter matches several.
    """
    known = scope.cluster.status.router
    if given.id or known is None:
        return router.resolve(scope.cloud, given)
    try:
        return router.resolve(scope.cloud, RouterParam(id=known.id))
    except RouterNotFoundError:
        return router.resolve(scope.cloud, given)
