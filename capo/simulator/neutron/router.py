"""Routers: interfaces on subnets and the gateway to an external network."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks, network, port, subnet
from capo.simulator.neutron.addresses import INTERFACE, INTERFACES
from capo.simulator.neutron.checks import Invalid
from capo.simulator.neutron.kind import UNSET, Attribute, Caller, Kind, new, own, touch
from capo.simulator.neutron.service import service
from capo.simulator.routing import Fault, Request, Response

GATEWAY: Final = "network:router_gateway"


def missing(router_id: str) -> Fault:
    return Fault(404, f"Router {router_id} could not be found", "RouterNotFound")


def _bad(message: str) -> Fault:
    return Fault(400, f"Bad router request: {message}", "BadRequest")


def _gateway_info(value: Any) -> Json | None:
    if not value:
        return None
    if not isinstance(value, dict):
        raise Invalid(f"'{value}' is not a dictionary")
    if "network_id" not in value:
        given = f"{{{', '.join(map(repr, value))}}}"
        raise Invalid(f"Validation of dictionary's keys failed. Expected keys: {{'network_id'}} Provided keys: {given}")
    unexpected = [name for name in value if name not in {"network_id", "enable_snat", "external_fixed_ips"}]
    if unexpected:
        raise Invalid(f"Unexpected keys supplied: {', '.join(unexpected)}")
    info: Json = {"network_id": checks.uuid_text(value["network_id"])}
    if "enable_snat" in value:
        info["enable_snat"] = checks.boolean(value["enable_snat"])
    if "external_fixed_ips" in value:
        info["external_fixed_ips"] = checks.fixed_ips(value["external_fixed_ips"])
    return info


def _zone_hints(value: Any) -> list[str]:
    hints: list[str] = checks.list_of(checks.string(255))(value)
    if hints:
        raise Fault(404, f"AvailabilityZone {hints[0]} could not be found.", "AvailabilityZoneNotFound")
    return hints


def create(cloud: Cloud, values: Json, caller: Caller) -> Json:
    info = values["external_gateway_info"]
    external = _external(cloud, info, caller) if info else None
    given = {
        **values,
        "status": "ACTIVE",
        "external_gateway_info": None,
        "availability_zones": [],
        "routes": [],
        "distributed": values["distributed"] is True,
        "ha": values["ha"] is True,
        "flavor_id": None,
    }
    router = new(cloud, given)
    KIND.table(cloud)[router["id"]] = router
    if external is not None:
        try:
            _set_gateway(cloud, router, info)
        except Fault:
            KIND.table(cloud).pop(router["id"])
            raise
    return router


def _external(cloud: Cloud, info: Json, caller: Caller) -> Json:
    found = network.KIND.table(cloud).get(info["network_id"])
    if found is None or not network.is_visible(cloud, found, caller):
        raise network.missing(info["network_id"])
    if not found["router:external"]:
        raise _bad(f"Network {found['id']} is not an external network.")
    return found


def _set_gateway(cloud: Cloud, router: Json, info: Json) -> None:
    wanted: Json = {"network_id": info["network_id"], "device_id": router["id"], "device_owner": GATEWAY}
    if info.get("external_fixed_ips"):
        wanted["fixed_ips"] = info["external_fixed_ips"]
    made = internal_port(cloud, "", wanted)
    made["_router_id"] = router["id"]
    router["external_gateway_info"] = {
        "network_id": info["network_id"],
        "external_fixed_ips": made["fixed_ips"],
        "enable_snat": info.get("enable_snat", True),
    }


def internal_port(cloud: Cloud, project_id: str, wanted: Json) -> Json:
    """Create a port of Neutron's own, outside of quotas and policy."""
    values: Json = {item.name: item.default for item in port.KIND.all_attributes if "P" in item.flags}
    values |= {"project_id": project_id, "tenant_id": project_id, **wanted}
    values.pop("tags", None)
    return port.create(cloud, values, Caller(project_id, is_admin=True))


def update(cloud: Cloud, router: Json, changes: Json, caller: Caller) -> None:
    changed = dict(changes)
    if "external_gateway_info" in changed:
        info = changed.pop("external_gateway_info")
        _change_gateway(cloud, router, info, caller)
    if "routes" in changed:
        _check_routes(cloud, router, changed["routes"])
    router.update(changed)
    touch(cloud, router)


def _change_gateway(cloud: Cloud, router: Json, info: Json | None, caller: Caller) -> None:
    if info:
        _external(cloud, info, caller)
    old = router["external_gateway_info"]
    is_same = old and info and old["network_id"] == info["network_id"] and not info.get("external_fixed_ips")
    if is_same:
        old["enable_snat"] = info.get("enable_snat", old["enable_snat"]) if info else old["enable_snat"]
        return
    if old:
        for floating in cloud.table("network", "floatingips").values():
            if floating["router_id"] == router["id"]:
                message = (
                    f"Gateway cannot be updated for router {router['id']}, since a gateway to external network "
                    f"{old['network_id']} is required by one or more floating IPs."
                )
                raise Fault(409, message, "RouterExternalGatewayInUseByFloatingIp")
        for gateway in ports_of(cloud, router, GATEWAY):
            port.drop(cloud, gateway)
        router["external_gateway_info"] = None
    if info:
        _set_gateway(cloud, router, info)


def _check_routes(cloud: Cloud, router: Json, routes: list[Json]) -> None:
    subnets = subnet.KIND.table(cloud)
    connected = [
        ipaddress.ip_network(subnets[fixed["subnet_id"]]["cidr"])
        for attached in ports_of(cloud, router)
        for fixed in attached["fixed_ips"]
    ]
    for route in routes:
        if not any(ipaddress.ip_address(route["nexthop"]) in cidr for cidr in connected):
            message = f"Invalid format for routes: {[route]}, the nexthop is not connected with router"
            raise Fault(400, message, "InvalidRoutes")


def ports_of(cloud: Cloud, router: Json, *owners: str) -> list[Json]:
    """Return a router's ports, those of some device owners or all."""
    wanted = owners or (*INTERFACES, GATEWAY)
    return [
        found
        for found in port.KIND.table(cloud).values()
        if found.get("_router_id") == router["id"] and found["device_owner"] in wanted
    ]


def delete(cloud: Cloud, router: Json, _: Caller) -> None:
    attached = [found["id"] for found in ports_of(cloud, router, *INTERFACES)]
    if attached:
        message = f"Router {router['id']} has ports still attached: {', '.join(sorted(attached))}"
        raise Fault(409, message, "RouterInUse")
    for gateway in ports_of(cloud, router, GATEWAY):
        port.drop(cloud, gateway)
    KIND.table(cloud).pop(router["id"])


def view(_: Cloud, router: Json) -> Json:
    return router


@service.route("PUT", "/v2.0/routers/{id}/add_router_interface")
async def add_interface(request: Request) -> Response:
    cloud, caller, router = request.cloud, Caller.from_request(request), _routed(request)
    subnet_id, port_id = _interface_asked(request)
    if port_id is not None:
        attached = _attach_port(cloud, router, port_id, caller)
    else:
        attached = _attach_subnet(cloud, router, str(subnet_id), caller)
    touch(cloud, router)
    return Response(200, _interface(router, attached))


def _routed(request: Request) -> Json:
    caller = Caller.from_request(request)
    router = KIND.find(request.cloud, request.match["id"], caller)
    if not own(request.cloud, router, caller):
        raise missing(request.match["id"])
    return router


def _interface_asked(request: Request) -> tuple[str | None, str | None]:
    body = request.json
    subnet_id, port_id = body.get("subnet_id"), body.get("port_id")
    if subnet_id is None and port_id is None:
        raise _bad("Either subnet_id or port_id must be specified.")
    if subnet_id is not None and port_id is not None:
        raise _bad("Cannot specify both subnet-id and port-id.")
    for value in (subnet_id, port_id):
        if value is not None and not checks.is_uuid(value):
            raise _bad(f"'{value}' is not a valid UUID.")
    return subnet_id, port_id


def _attach_port(cloud: Cloud, router: Json, port_id: str, caller: Caller) -> Json:
    found = port.KIND.find(cloud, port_id, caller)
    if found["device_id"]:
        message = (
            f"Unable to complete operation on port {port_id} for network {found['network_id']}. "
            f"Port already has an attached device {found['device_id']}."
        )
        raise Fault(409, message, "PortInUse")
    if not found["fixed_ips"]:
        raise _bad("Router port must have at least one fixed IP.")
    for fixed in found["fixed_ips"]:
        _check_subnet(cloud, router, subnet.KIND.table(cloud)[fixed["subnet_id"]])
    found |= {"device_id": router["id"], "device_owner": INTERFACE, "_router_id": router["id"]}
    return found


def _attach_subnet(cloud: Cloud, router: Json, subnet_id: str, caller: Caller) -> Json:
    found = subnet.KIND.find(cloud, subnet_id, caller)
    if not own(cloud, found, caller):
        raise _bad(
            f"Cannot add interface to router because subnet {subnet_id} is not owned by project making the request."
        )
    if not found["gateway_ip"]:
        raise _bad("Subnet for router interface must have a gateway IP.")
    if found["ipv6_ra_mode"] is None and found["ipv6_address_mode"] is not None:
        raise _bad(
            f"IPv6 subnet {subnet_id} configured to receive RAs from an external router cannot be added to Neutron "
            "Router.."
        )
    _check_subnet(cloud, router, found)
    wanted = {
        "network_id": found["network_id"],
        "device_id": router["id"],
        "device_owner": INTERFACE,
        "fixed_ips": [{"ip_address": found["gateway_ip"], "subnet_id": subnet_id}],
    }
    made = internal_port(cloud, router["project_id"], wanted)
    made["_router_id"] = router["id"]
    return made


def _check_subnet(cloud: Cloud, router: Json, wanted: Json) -> None:
    subnets = subnet.KIND.table(cloud)
    cidr = ipaddress.ip_network(wanted["cidr"])
    for attached in ports_of(cloud, router):
        for fixed in attached["fixed_ips"]:
            other = subnets[fixed["subnet_id"]]
            if other["id"] == wanted["id"]:
                raise _bad(f"Router already has a port on subnet {wanted['id']}.")
            if cidr.overlaps(ipaddress.ip_network(other["cidr"])):
                raise _bad(
                    f"Cidr {wanted['cidr']} of subnet {wanted['id']} overlaps with cidr {other['cidr']} "
                    f"of subnet {other['id']}."
                )


@service.route("PUT", "/v2.0/routers/{id}/remove_router_interface")
async def remove_interface(request: Request) -> Response:
    cloud, router = request.cloud, _routed(request)
    subnet_id, port_id = _interface_asked(request)
    attached = _attached(cloud, router, subnet_id, port_id)
    for fixed in attached["fixed_ips"]:
        _check_unneeded(cloud, router, fixed["subnet_id"])
    answer = _interface(router, attached, subnet_id)
    port.drop(cloud, attached)
    touch(cloud, router)
    return Response(200, answer)


def _attached(cloud: Cloud, router: Json, subnet_id: str | None, port_id: str | None) -> Json:
    attached = ports_of(cloud, router, *INTERFACES)
    if port_id is not None:
        for found in attached:
            if found["id"] == port_id:
                return found
        message = f"Router {router['id']} does not have an interface with id {port_id}"
        raise Fault(404, message, "RouterInterfaceNotFound")
    for found in attached:
        if any(fixed["subnet_id"] == subnet_id for fixed in found["fixed_ips"]):
            return found
    if subnet_id not in subnet.KIND.table(cloud):
        raise subnet.missing(str(subnet_id))
    message = f"Router {router['id']} has no interface on subnet {subnet_id}"
    raise Fault(404, message, "RouterInterfaceNotFoundForSubnet")


def _check_unneeded(cloud: Cloud, router: Json, subnet_id: str) -> None:
    ports = port.KIND.table(cloud)
    for floating in cloud.table("network", "floatingips").values():
        if floating["router_id"] != router["id"] or floating["port_id"] not in ports:
            continue
        if any(fixed["subnet_id"] == subnet_id for fixed in ports[floating["port_id"]]["fixed_ips"]):
            message = (
                f"Router interface for subnet {subnet_id} on router {router['id']} cannot be deleted, "
                "as it is required by one or more floating IPs."
            )
            raise Fault(409, message, "RouterInterfaceInUseByFloatingIP")


def _interface(router: Json, attached: Json, subnet_id: str | None = None) -> Json:
    subnet_ids = [fixed["subnet_id"] for fixed in attached["fixed_ips"]]
    return {
        "id": router["id"],
        "project_id": router["project_id"],
        "port_id": attached["id"],
        "network_id": attached["network_id"],
        "subnet_id": subnet_id or subnet_ids[-1],
        "subnet_ids": subnet_ids,
    }


KIND: Final = Kind(
    name="router",
    plural="routers",
    path="routers",
    attributes=(
        Attribute("name", "PUFS", checks.string(255), ""),
        Attribute("admin_state_up", "PUFS", checks.boolean, default=True),
        Attribute("status", "S"),
        Attribute(
            "external_gateway_info",
            "PUE",
            _gateway_info,
            None,
            parts=("network_id", "enable_snat", "external_fixed_ips"),
            admin_parts=frozenset({"enable_snat", "external_fixed_ips"}),
        ),
        Attribute("distributed", "PUE", checks.or_none(checks.boolean), admin="PU"),
        Attribute("ha", "PUE", checks.or_none(checks.boolean), admin="PU"),
        Attribute("routes", "U", checks.host_routes),
        Attribute("flavor_id", "PS", default=UNSET),
        Attribute("availability_zones", ""),
        Attribute("availability_zone_hints", "P", _zone_hints, []),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=own,
    is_owner=own,
    hidden=frozenset({"distributed", "ha"}),
    lost_marker="empty",
)
