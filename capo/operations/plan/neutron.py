"""What Neutron answers to the writes of a plan.

Source: Networking API. Values that the cloud chooses, as addresses, are placeholders.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, Final

from capo.json_types import Body, Json
from capo.operations.plan.overlay import NETWORK, MissingError, Overlay, Place, RefusedError

NETWORKS: Final = Place.of("network")
SUBNETS: Final = Place.of("subnet")
PORTS: Final = Place.of("port")
ROUTERS: Final = Place.of("router")
GROUPS: Final = Place.of("security_group")
RULES: Final = Place(NETWORK, "/security-group-rules")
FLOATING_IPS: Final = Place.of("floating_ip")
TRUNKS: Final = Place.of("trunk")
SUBNET_POOLS: Final = Place(NETWORK, "/subnetpools")
INTERFACE: Final = "network:router_interface"
UNKNOWN_CIDR: Final = "192.0.2.0/24"
"""Documentation range (RFC 5737): addresses of ranges that the project cannot see."""


def create(overlay: Overlay, place: Place, body: Mapping[str, Any]) -> Json:
    """Create one resource, with what Neutron fills in."""
    common = {
        "project_id": overlay.project_id(),
        "tenant_id": overlay.project_id(),
        "tags": [],
        "revision_number": 1,
        "created_at": overlay.timestamp(),
        "updated_at": overlay.timestamp(),
        "name": "",
        "description": "",
    }
    filled = _CREATES.get(place, _as_sent)(overlay, body)
    return overlay.add(place, {**common, **filled})


def _as_sent(_overlay: Overlay, body: Mapping[str, Any]) -> Json:
    return dict(body)


def _network(_overlay: Overlay, body: Mapping[str, Any]) -> Json:
    defaults: Json = {
        "status": "ACTIVE",
        "admin_state_up": True,
        "subnets": [],
        "mtu": 1450,
        "port_security_enabled": True,
        "shared": False,
        "router:external": False,
    }
    return {**defaults, **body}


def _subnet(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    cidr = body.get("cidr") or _cidr_of_pool(overlay, body)
    network = ipaddress.ip_network(cidr, strict=False)
    defaults: Json = {
        "cidr": str(network),
        "ip_version": network.version,
        "gateway_ip": str(network.network_address + 1),
        "enable_dhcp": True,
        "dns_nameservers": [],
        "host_routes": [],
        "allocation_pools": [],
        "ipv6_address_mode": None,
        "ipv6_ra_mode": None,
        "subnetpool_id": None,
    }
    made = {**defaults, **body, "cidr": str(network)}
    made["id"] = overlay.placeholder_id(SUBNETS, str(body.get("name") or ""))
    overlay.edit(NETWORKS, str(body["network_id"])).setdefault("subnets", []).append(made["id"])
    return made


def _cidr_of_pool(overlay: Overlay, body: Mapping[str, Any]) -> str:
    """Return a placeholder of the range that Neutron would take from the subnet pool."""
    pool = overlay.find(SUBNET_POOLS, str(body.get("subnetpool_id")))
    prefix = ipaddress.ip_network(str(pool["prefixes"][0]), strict=False)
    length = int(body.get("prefixlen") or pool.get("default_prefixlen") or prefix.prefixlen)
    made = str(next(iter(prefix.subnets(new_prefix=max(length, prefix.prefixlen)))))
    overlay.assigned[made] = f"<a range of subnet pool {pool.get('name') or pool['id']}>"
    return made


def _port(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    defaults: Json = {
        "status": "DOWN",
        "admin_state_up": True,
        "device_id": "",
        "device_owner": "",
        "mac_address": "fa:16:3e:00:" + f"{overlay.number():04x}"[:2] + ":" + f"{overlay.number() % 256:02x}",
        "security_groups": [],
        "allowed_address_pairs": [],
        "port_security_enabled": True,
        "binding:vnic_type": "normal",
        "binding:profile": {},
    }
    return {**defaults, **body, "fixed_ips": _fixed_ips(overlay, body)}


def _fixed_ips(overlay: Overlay, body: Mapping[str, Any]) -> list[Json]:
    wanted = body.get("fixed_ips")
    if wanted is None:
        network = overlay.find(NETWORKS, str(body["network_id"]))
        wanted = _one_of_each_family(overlay, [str(each) for each in network.get("subnets") or ()])
    return [_fixed_ip(overlay, each) for each in wanted]


def _one_of_each_family(overlay: Overlay, subnet_ids: list[str]) -> list[Json]:
    """Return what Neutron takes for a port without addresses: a subnet of each family."""
    found: dict[int, Json] = {}
    for subnet_id in subnet_ids:
        found.setdefault(int(subnet_of(overlay, subnet_id).get("ip_version") or 4), {"subnet_id": subnet_id})
    return list(found.values())


def subnet_of(overlay: Overlay, subnet_id: str) -> Body:
    """Return a subnet; one that the project cannot see has an unknown range."""
    try:
        return overlay.find(SUBNETS, subnet_id)
    except MissingError:
        return {"id": subnet_id, "cidr": UNKNOWN_CIDR, "ip_version": 4}


def _fixed_ip(overlay: Overlay, wanted: Mapping[str, Any]) -> Json:
    if wanted.get("ip_address"):
        return dict(wanted)
    subnet = subnet_of(overlay, str(wanted["subnet_id"]))
    return {"subnet_id": subnet["id"], "ip_address": overlay.address(str(subnet["cidr"]), _used(overlay, subnet))}


def _used(overlay: Overlay, subnet: Body) -> list[str]:
    fixed = (each for port in overlay.all(PORTS) for each in port.get("fixed_ips") or ())
    return [str(each["ip_address"]) for each in fixed if each.get("subnet_id") == subnet["id"]]


def _router(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    gateway = _gateway(overlay, body.get("external_gateway_info"))
    return {"status": "ACTIVE", "admin_state_up": True, "routes": [], **body, "external_gateway_info": gateway}


def _gateway(overlay: Overlay, wanted: Mapping[str, Any] | None) -> Json | None:
    """Return the gateway of a router, with placeholders of the addresses that Neutron would choose."""
    if not wanted:
        return None
    network_id = str(wanted["network_id"])
    fixed = wanted.get("external_fixed_ips") or _subnets_of(overlay, network_id)[:1]
    return {"enable_snat": True, **wanted, "external_fixed_ips": [_fixed_ip(overlay, each) for each in fixed]}


def _subnets_of(overlay: Overlay, network_id: str) -> list[Json]:
    try:
        found = overlay.find(NETWORKS, network_id).get("subnets") or ()
    except MissingError:
        found = ()
    return [{"subnet_id": str(each)} for each in found] or [{"subnet_id": "unknown"}]


def _group(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    id_ = overlay.placeholder_id(GROUPS, str(body.get("name") or ""))
    rules = [
        _rule(overlay, {"security_group_id": id_, "direction": "egress", "ethertype": ethertype})
        for ethertype in ("IPv4", "IPv6")
    ]
    return {"stateful": True, "shared": False, **body, "id": id_, "security_group_rules": rules}


def _rule(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    defaults: Json = {
        "id": overlay.placeholder_id(RULES, ""),
        "ethertype": "IPv4",
        **dict.fromkeys(("protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id")),
        "description": "",
        "project_id": overlay.project_id(),
    }
    return {**defaults, **body}


def add_rule(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    """Add a rule to its group."""
    made = _rule(overlay, body)
    group = overlay.edit(GROUPS, str(body["security_group_id"]))
    overlay.update(GROUPS, group["id"], {"security_group_rules": [*group["security_group_rules"], made]})
    return made


def remove_rule(overlay: Overlay, rule_id: str) -> Body:
    """Remove a rule from its group; return the group.

    Raises:
        MissingError: no known group has it.
    """
    for group in overlay.all(GROUPS):
        rules = [rule for rule in group["security_group_rules"] if rule["id"] != rule_id]
        if len(rules) != len(group["security_group_rules"]):
            return overlay.update(GROUPS, str(group["id"]), {"security_group_rules": rules})
    raise MissingError(RULES, rule_id)


def remove_group(overlay: Overlay, group_id: str) -> None:
    """Delete a group."""
    overlay.remove(GROUPS, group_id)


def _floating_ip(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    subnets = _subnets_of(overlay, str(body["floating_network_id"]))
    v4 = [each for each in subnets if subnet_of(overlay, each["subnet_id"]).get("ip_version") == 4]
    address = body.get("floating_ip_address") or _fixed_ip(overlay, (v4 or subnets)[0])["ip_address"]
    made = {"status": "DOWN", "port_id": None, "fixed_ip_address": None, "router_id": None, **body}
    return {**made, "floating_ip_address": address, **associated(overlay, body.get("port_id"))}


def associated(overlay: Overlay, port_id: str | None, own_id: str = "") -> Json:
    """Return the fields of a floating IP at a port, or at none.

    Args:
        own_id: of the floating IP, empty if it is being created.

    Raises:
        RefusedError: another one is at the port.
    """
    if not port_id:
        return {"port_id": None, "fixed_ip_address": None, "status": "DOWN"}
    fixed = overlay.find(PORTS, port_id).get("fixed_ips") or ()
    taken = [each for each in overlay.all(FLOATING_IPS) if each.get("port_id") == port_id and each["id"] != own_id]
    if taken:
        text = f"port {port_id} already has floating IP {taken[0].get('floating_ip_address')}"
        raise RefusedError("FloatingIPPortAlreadyAssociated", text)
    v4 = next((each["ip_address"] for each in fixed if ":" not in each["ip_address"]), None)
    return {"port_id": port_id, "fixed_ip_address": v4, "status": "ACTIVE"}


def _trunk(_overlay: Overlay, body: Mapping[str, Any]) -> Json:
    return {"status": "ACTIVE", "admin_state_up": True, "sub_ports": [], **body}


_CREATES: Final = {
    NETWORKS: _network,
    SUBNETS: _subnet,
    PORTS: _port,
    ROUTERS: _router,
    GROUPS: _group,
    FLOATING_IPS: _floating_ip,
    TRUNKS: _trunk,
}


# -- changes ---------------------------------------------------------------------------------------------------------


def update(overlay: Overlay, place: Place, resource_id: str, changes: Mapping[str, Any]) -> Json:
    """Change a resource, with what Neutron derives from it."""
    derived: Json = {}
    if place == FLOATING_IPS and "port_id" in changes:
        derived = associated(overlay, changes["port_id"], resource_id)
    if place == ROUTERS and "external_gateway_info" in changes:
        derived = {"external_gateway_info": _gateway(overlay, changes["external_gateway_info"])}
    if place == PORTS and "fixed_ips" in changes:
        derived = {"fixed_ips": [_fixed_ip(overlay, each) for each in changes["fixed_ips"]]}
    return overlay.update(place, resource_id, {**changes, **derived})


def add_interface(overlay: Overlay, router_id: str, subnet_id: str) -> Json:
    """Connect a subnet to a router."""
    subnet = overlay.find(SUBNETS, subnet_id)
    port = {
        "network_id": subnet["network_id"],
        "device_id": router_id,
        "device_owner": INTERFACE,
        "status": "ACTIVE",
        "fixed_ips": [{"subnet_id": subnet_id, "ip_address": subnet.get("gateway_ip")}],
    }
    made = create(overlay, PORTS, port)
    overlay.update(PORTS, made["id"], {"status": "ACTIVE"})
    return {"id": router_id, "subnet_id": subnet_id, "port_id": made["id"], "network_id": subnet["network_id"]}


def remove_interface(overlay: Overlay, router_id: str, subnet_id: str) -> Json:
    """Disconnect a subnet from a router.

    Raises:
        MissingError: it is not connected.
    """
    for port in overlay.all(PORTS):
        subnets = {each.get("subnet_id") for each in port.get("fixed_ips") or ()}
        if port.get("device_id") == router_id and subnet_id in subnets:
            overlay.remove(PORTS, str(port["id"]))
            return {"id": router_id, "subnet_id": subnet_id, "port_id": port["id"]}
    raise MissingError(SUBNETS, subnet_id)


def remove(overlay: Overlay, place: Place, resource_id: str) -> None:
    """Delete a resource, with what Neutron deletes along with it."""
    _check_unused(overlay, place, resource_id)
    body = overlay.remove(place, resource_id)
    if place == SUBNETS:
        network = overlay.edit(NETWORKS, str(body["network_id"]))
        network["subnets"] = [each for each in network.get("subnets") or () if each != resource_id]
    if place == NETWORKS:
        for subnet in [each for each in overlay.all(SUBNETS) if each.get("network_id") == resource_id]:
            overlay.remove(SUBNETS, str(subnet["id"]))
    if place == PORTS:
        for address in [each for each in overlay.all(FLOATING_IPS) if each.get("port_id") == resource_id]:
            overlay.update(FLOATING_IPS, str(address["id"]), associated(overlay, None))


def _check_unused(overlay: Overlay, place: Place, resource_id: str) -> None:
    """Raise if a known port uses a resource that is to be deleted.

    Raises:
        RefusedError: one does.
    """
    if place in _IN_USE:
        type_, uses = _IN_USE[place]
        users = [str(port["id"]) for port in overlay.all(PORTS) if not _is_of_neutron(port) and uses(port, resource_id)]
        if users:
            raise RefusedError(type_, f"{place.keys[1].replace('_', ' ')} {resource_id} is in use by port {users[0]}")


def _is_of_neutron(port: Body) -> bool:
    """Return whether Neutron deletes a port with its network."""
    return str(port.get("device_owner") or "").startswith(("network:dhcp", "network:distributed", "network:local"))


def _has_subnet(port: Body, subnet_id: str) -> bool:
    return any(each.get("subnet_id") == subnet_id for each in port.get("fixed_ips") or ())


_IN_USE: Final[Mapping[Place, tuple[str, Callable[[Body, str], bool]]]] = {
    NETWORKS: ("NetworkInUse", lambda port, id_: port.get("network_id") == id_),
    SUBNETS: ("SubnetInUse", _has_subnet),
    ROUTERS: ("RouterInUse", lambda port, id_: port.get("device_id") == id_),
    GROUPS: ("SecurityGroupInUse", lambda port, id_: id_ in (port.get("security_groups") or ())),
}


def sub_ports(overlay: Overlay, trunk_id: str, changes: list[Json], *, is_added: bool) -> Json:
    """Add sub-ports to a trunk, or remove them."""
    known = list(overlay.find(TRUNKS, trunk_id).get("sub_ports") or ())
    ids = {each["port_id"] for each in changes}
    kept = [each for each in known if each["port_id"] not in ids]
    return overlay.update(TRUNKS, trunk_id, {"sub_ports": [*kept, *changes] if is_added else kept})
