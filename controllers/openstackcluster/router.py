"""The router between the cluster's subnets and the external network.

Source: docs/explanation/go-provider.md, G-8 and G-9. The router of an existing network is only read. A managed subnet
gets its own router, or is connected to the one that the spec names.
"""

from __future__ import annotations

from typing import Any, Final

from api.v1beta2.network import RouterParam
from capo import names
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.errors import AmbiguousMatchError, ConflictError, RouterNotFoundError
from capo.json_types import Body
from capo.openstack import floating_ip, router, subnet
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.port import BY_DEVICE, Port
from capo.openstack.resource_cache import Index, either, found_by, with_ids
from capo.openstack.router import WantedRouter
from capo.parts import ROUTER_INTERFACES
from controllers.drift import ROUTER as ROUTER_POLICY
from controllers.openstackcluster import deletion_blockers, drift, existing, managed_subnets, status
from controllers.openstackcluster.changes import doubting, tagged
from controllers.openstackcluster.scope import ClusterScope
from controllers.roles import ADDITIONAL_ROUTER_INTERFACE, ROUTER, ROUTER_INTERFACE

CONDITION: Final = "RouterReady"
NO_ROUTER: Final = "no external network: the cluster has no router"
UNADVERTISED: Final = ", and nothing advertises the prefix of IPv6: nodes get no address of it by themselves"
INTERFACES: Final = (ROUTER_INTERFACE, ADDITIONAL_ROUTER_INTERFACE)
"""The roles of the ports that connect the first and the second subnet."""


def ensure_router(scope: ClusterScope) -> Outcome:
    """Connect the managed subnets to the external network, if there is one."""
    given = scope.cluster.spec.router
    if not scope.is_network_managed:
        return _look_up(scope, given) if given else NotNeeded()
    if scope.found.external_network is None:
        return Done(f"{NO_ROUTER}{UNADVERTISED if managed_subnets.has_advertisements(scope.cluster.spec) else ''}")
    found = existing.given_router(scope, given) if given else scope.find("router", ROUTER)
    if found is None:
        return Create("router", (ROUTER,), lambda: {ROUTER: router.create(scope.cloud, wanted_router(scope))})
    if not given:
        found = tagged(scope, "router", found)
    if not given or external_ips(scope):
        found = _with_gateway(scope, found)
    for role, each in zip(INTERFACES, scope.found.subnets, strict=False):
        _ensure_interface(scope, found["id"], role, each.id)
    scope.found.router = status.router(found)
    return Done("; ".join(scope.found.changes.get("router", ())))


def _look_up(scope: ClusterScope, given: RouterParam) -> Outcome:
    known = scope.cluster.status.router
    if known is not None and scope.is_settled(CONDITION):
        if scope.is_seen(existing.ROUTER, known):
            scope.found.router = known
            return Done()
        scope.relist("router")
    scope.found.router = status.router(existing.given_router(scope, given))
    scope.note_seen(existing.ROUTER, scope.found.router)
    return Done()


def wanted_router(scope: ClusterScope) -> WantedRouter:
    """Return the router to create."""
    external = scope.found.external_network
    return WantedRouter(
        stamp=scope.stamp(ROUTER),
        name=names.network(scope.resource_name),
        description=scope.description,
        external_network_id=external.id if external else None,
        external_fixed_ips=external_ips(scope),
    )


def external_ips(scope: ClusterScope) -> tuple[tuple[str | None, str | None], ...]:
    """Return subnet id and address of each gateway address that the spec asks for."""
    options, external = scope.cluster.spec.managed_router, scope.found.external_network
    if options is None or external is None:
        return ()
    # A subnet named by id is not resolved: the subnets of an external network may be invisible to the project.
    return tuple(
        (ip.subnet.id or str(subnet.resolve(scope.cloud, ip.subnet, network_id=external.id)["id"]), ip.fixed_ip or None)
        for ip in options.external_ips
    )


def _with_gateway(scope: ClusterScope, found: Body) -> Body:
    """Set the router's gateway with the requested addresses; return the updated router."""
    wanted, router_id = wanted_router(scope), str(found["id"])
    changes = router.difference(wanted, found)
    if not changes:
        return found
    # Gateway and addresses of the spec cannot change: a router that the status shows has had them.
    was_in_place, before = drift.is_shown(scope, router_id), _gateway(found)
    asked = (wanted.external_network_id, *wanted.external_fixed_ips)
    text = drift.held(
        scope, drift.Change(ROUTER_POLICY, router_id, asked, f"gateway of router {router_id} ({before})", was_in_place)
    )
    if text is not None:
        scope.found.changes.setdefault("router", []).extend([text] if text else ())
        return found
    with doubting(scope, "router", found["id"]):
        changed = router.update(scope.cloud, found["id"], changes)
    scope.cloud_view.upsert("router", changed)
    scope.emit("SuccessfulUpdateRouter", f"Updated gateway of router {found['id']}")
    if was_in_place:
        text = f"gateway of router {router_id} was changed externally: {before}; it is {_gateway(changed)} again"
        drift.repaired(scope, ROUTER_POLICY, router_id, text)
    return changed


def _gateway(found: Body) -> str:
    network_id = router.Router(found).gateway_network_id
    return " ".join([f"network {network_id}", *sorted(router.addresses(found))]) if network_id else "none"


def _ensure_interface(scope: ClusterScope, router_id: str, role: str, subnet_id: str) -> None:
    """Connect a subnet and record the port, so that the deletion disconnects the right router."""

    def connects(body: Body) -> bool:
        return _connects(Port(body), router_id, subnet_id)

    among = found_by(_INTERFACES, subnet_id)
    # The port has no stamp to find it by when its record was lost, as after a move.
    if not scope.context.ledger.id_of(role) and (there := scope.cloud_view.peek("port", connects, among=among)):
        scope.context.ledger.record("port", role, there[0]["id"])
    if scope.cloud_view.find("port", role, upstream=connects, among=among) is not None:
        return
    made = router.Interface(router.add_interface(scope.cloud, router_id, subnet_id))
    if made.port_id:
        scope.cloud_view.upsert("port", _port_of(made, router_id))
    port_id = made.port_id or _connecting_port_id(scope, router_id, subnet_id)
    if port_id:
        scope.context.ledger.record("port", role, port_id)


def _connecting_port_id(scope: ClusterScope, router_id: str, subnet_id: str) -> str | None:
    """Return the port of a connection that others made, or whose answer was lost; None if there is none."""
    for is_second_look in (False, True):
        if is_second_look:
            scope.cloud_view.mark_written("port")
        ports = scope.cloud_view.list_matching(
            "port", lambda body: _connects(Port(body), router_id, subnet_id), among=found_by(_INTERFACES, subnet_id)
        )
        if ports:
            return str(ports[0]["id"])
    return None


def _port_of(made: router.Interface, router_id: str) -> dict[str, Any]:
    """Return the port of a new interface."""
    return {
        "id": made.port_id,
        "name": "",
        "description": "",
        "network_id": made.network_id,
        "device_id": router_id,
        "device_owner": ROUTER_INTERFACES[0],
        "fixed_ips": [{"subnet_id": made.subnet_id}],
    }


def _connects(found: Port, router_id: str, subnet_id: str) -> bool:
    return found.device_id == router_id and _is_interface(found) and subnet_id in found.subnet_ids


def _is_interface(found: Port) -> bool:
    return found.device_owner in ROUTER_INTERFACES


def _ends(body: Body) -> list[str]:
    """Return the router and the subnets that an interface connects; nothing for any other port."""
    found = Port(body)
    return [found.device_id, *found.subnet_ids] if _is_interface(found) else []


_INTERFACES: Final = Index(_ends)


def remove_router(scope: ClusterScope) -> Outcome:
    """Disconnect the subnet and delete the cluster's routers; a router that the spec names is kept."""
    routers = scope.owned("router")
    given = scope.cluster.spec.router if scope.is_network_managed else None
    if not routers and not given and not _recorded(scope):
        return NotNeeded()
    for port in _interfaces(scope, {body["id"] for body in routers}, given):
        if wait := _disconnect(scope, port):
            return wait
    for body in routers:
        _delete(scope, body)
    return NotNeeded()


def _delete(scope: ClusterScope, body: Body) -> None:
    try:
        router.delete(scope.cloud, body["id"])
    except ConflictError as error:
        router_id = body["id"]
        ports = scope.cloud_view.list_matching("port", among=found_by(BY_DEVICE, router_id))
        # An interface may be missing from the list: the next attempt requires a new one.
        scope.cloud_view.mark_written("port")
        blocking = deletion_blockers.in_network(ports)
        raise deletion_blockers.error(
            f"router {router_id}", blocking, "port", error, is_own=lambda port: scope.is_on_own_network(port["id"])
        ) from error
    scope.cloud_view.forget("router", body["id"])
    scope.emit("SuccessfulDeleteRouter", f"Deleted router {body.get('name')} with id {body['id']}")


def _recorded(scope: ClusterScope) -> set[str]:
    """Return the ids of the recorded interfaces."""
    return {id_ for role in INTERFACES if (id_ := scope.context.ledger.id_of(role))}


def _interfaces(scope: ClusterScope, router_ids: set[str], given: RouterParam | None) -> list[Port]:
    """Return the recorded ports, all interfaces of our routers, and the given router's interfaces in our subnets."""
    # Others, or a reconcile that died, may have connected the given router again: that port has no stamp.
    recorded = _recorded(scope)
    subnet_ids = {body["id"] for body in scope.owned("subnet")} if given else set()

    def is_near(body: Body) -> bool:
        port = Port(body)
        is_known = port.id in recorded or port.device_id in router_ids or bool(port.subnet_ids & subnet_ids)
        return is_known and _is_interface(port)

    among = either(with_ids(recorded), found_by(_INTERFACES, *router_ids, *subnet_ids))
    found = [Port(body) for body in scope.cloud_view.list_matching("port", is_near, among=among)]
    known = router_ids | {port.device_id for port in found if port.id in recorded}
    if given and any(port.device_id not in known for port in found):
        known |= _given_ids(scope, given)
    return [port for port in found if port.device_id in known]


def _given_ids(scope: ClusterScope, given: RouterParam) -> set[str]:
    """Return the ids of the router that the spec names: as first resolved, and as resolved now."""
    known = scope.cluster.status.router
    ids = {known.id} if known else set()
    try:
        return ids | {str(existing.given_router(scope, given)["id"])}
    except (RouterNotFoundError, AmbiguousMatchError):
        return ids


def _disconnect(scope: ClusterScope, port: Port) -> Wait | None:
    """Disconnect the subnets of a port; return what to wait for first, None when they are disconnected.

    Raises:
        BlockedError: floating IPs use the router to reach resources that are not ours.
    """
    router_id = port.device_id
    for fixed_ip in port.fixed_ips:
        try:
            router.remove_interface(scope.cloud, router_id, fixed_ip.subnet_id)
        except ConflictError as error:
            if balancers := scope.context.ledger.records_of_kind("load_balancer"):
                return Wait("Deleting", f"waiting for load balancer {balancers[0].id} to be deleted")
            left = scope.cloud_view.list_matching("floating_ip", among=found_by(floating_ip.BY_ROUTER, router_id))
            # The list may be incomplete, and the ports show what the floating IP leads to: the next attempt requires
            # new lists.
            scope.cloud_view.mark_written("floating_ip")
            scope.cloud_view.mark_written("port")
            # A given router serves other clusters, too.
            raise deletion_blockers.error(
                f"router {router_id}",
                left,
                "floating IP",
                error,
                is_own=lambda ip: scope.is_on_own_network(FloatingIP(ip).port_id),
            ) from error
    scope.cloud_view.forget("port", port.id)
    return None
