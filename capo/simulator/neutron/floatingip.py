"""Floating IPs: allocated from an external network, associated with a port, moved, disassociated."""

from __future__ import annotations

import ipaddress
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks, network, port, router
from capo.simulator.neutron.addresses import INTERFACES
from capo.simulator.neutron.kind import REQUIRED, Attribute, Caller, Kind, new, own, touch
from capo.simulator.routing import Fault

OWNER: Final = "network:floatingip"
SHOWN_OF_PORT: Final = ("name", "network_id", "mac_address", "admin_state_up", "status", "device_id", "device_owner")


def missing(floating_id: str) -> Fault:
    return Fault(404, f"Floating IP {floating_id} could not be found", "FloatingIPNotFound")


def _bad(message: str) -> Fault:
    return Fault(400, f"Bad floatingip request: {message}", "BadRequest")


def create(cloud: Cloud, values: Json, caller: Caller) -> Json:
    network_id = values["floating_network_id"]
    external = network.KIND.table(cloud).get(network_id)
    if external is None or not network.is_visible(cloud, external, caller):
        raise network.missing(network_id)
    if not external["router:external"]:
        raise _bad(f"Network {network_id} is not a valid external network.")
    address, subnet_id, port_id = values["floating_ip_address"], values.pop("subnet_id"), values["port_id"]
    if values["fixed_ip_address"] and port_id is None:
        raise _bad("fixed_ip_address cannot be specified without a port_id.")
    wanted: Json = {"network_id": network_id, "device_owner": OWNER, "device_id": "PENDING"}
    entry = {key: value for key, value in (("ip_address", address), ("subnet_id", subnet_id)) if value}
    if entry:
        wanted["fixed_ips"] = [entry]
    outer = router.internal_port(cloud, "", wanted)
    given = {
        **values,
        "floating_ip_address": outer["fixed_ips"][0]["ip_address"],
        "port_id": None,
        "fixed_ip_address": None,
        "router_id": None,
        "status": "DOWN",
    }
    floating = new(cloud, given, revision=0)
    outer |= {"device_id": floating["id"], "status": "N/A"}
    if port_id is not None:
        try:
            _associate(cloud, floating, port_id, values["fixed_ip_address"], caller)
        except Fault:
            port.drop(cloud, outer)
            raise
    KIND.table(cloud)[floating["id"]] = floating
    return floating


def _associate(cloud: Cloud, floating: Json, port_id: str, fixed_ip: str | None, caller: Caller) -> None:
    inner = port.KIND.find(cloud, port_id, caller)
    fixed = _fixed(inner, fixed_ip)
    for other in KIND.table(cloud).values():
        is_other = other["id"] != floating["id"] and other["floating_network_id"] == floating["floating_network_id"]
        if is_other and (other["port_id"], other["fixed_ip_address"]) == (port_id, fixed["ip_address"]):
            message = (
                f"Cannot associate floating IP {floating['floating_ip_address']} ({floating['id']}) with port "
                f"{port_id} using fixed IP {fixed['ip_address']}, as that fixed IP already has a floating IP on "
                f"external network {floating['floating_network_id']}."
            )
            raise Fault(409, message, "FloatingIPPortAlreadyAssociated")
    floating |= {
        "router_id": _router_between(cloud, floating, inner, fixed["subnet_id"]),
        "port_id": port_id,
        "fixed_ip_address": fixed["ip_address"],
        "status": "ACTIVE",
    }


def _fixed(inner: Json, fixed_ip: str | None) -> Json:
    v4 = [fixed for fixed in inner["fixed_ips"] if ipaddress.ip_address(fixed["ip_address"]).version == 4]
    if fixed_ip is not None:
        for fixed in v4:
            if fixed["ip_address"] == fixed_ip:
                return dict(fixed)
        raise _bad(f"Port {inner['id']} does not have fixed ip {fixed_ip}.")
    if not v4:
        raise _bad(f"Cannot add floating IP to port {inner['id']} that has no fixed IPv4 addresses.")
    if len(v4) > 1:
        raise _bad(
            f"Port {inner['id']} has multiple fixed IPv4 addresses.  Must provide a specific IPv4 address when "
            "assigning a floating IP."
        )
    return dict(v4[0])


def _router_between(cloud: Cloud, floating: Json, inner: Json, subnet_id: str) -> str:
    """Return the router that connects the port's subnet to the external network."""
    for attached in port.KIND.table(cloud).values():
        if attached["device_owner"] not in INTERFACES or "_router_id" not in attached:
            continue
        found = router.KIND.table(cloud).get(attached["_router_id"])
        info = found["external_gateway_info"] if found else None
        is_on_subnet = any(fixed["subnet_id"] == subnet_id for fixed in attached["fixed_ips"])
        if found and info and is_on_subnet and info["network_id"] == floating["floating_network_id"]:
            return str(found["id"])
    message = (
        f"External network {floating['floating_network_id']} is not reachable from subnet {subnet_id}.  "
        f"Therefore, cannot associate Port {inner['id']} with a Floating IP."
    )
    raise Fault(404, message, "ExternalGatewayForFloatingIPNotFound")


def update(cloud: Cloud, floating: Json, changes: Json, caller: Caller) -> None:
    # Without any field the floating IP is dissociated, too. Source: API reference, Network v2, "Update floating IP".
    changed = dict(changes) or {"port_id": None}
    if "port_id" in changed or "fixed_ip_address" in changed:
        if "port_id" not in changed:
            raise _bad("fixed_ip_address cannot be specified without a port_id.")
        port_id, fixed_ip = changed.pop("port_id", floating["port_id"]), changed.pop("fixed_ip_address", None)
        if port_id is None:
            floating |= {"port_id": None, "fixed_ip_address": None, "router_id": None, "status": "DOWN"}
        else:
            _associate(cloud, floating, port_id, fixed_ip, caller)
    floating.update(changed)
    touch(cloud, floating)


def delete(cloud: Cloud, floating: Json, _: Caller) -> None:
    KIND.table(cloud).pop(floating["id"])
    for outer in [item for item in port.KIND.table(cloud).values() if item["device_id"] == floating["id"]]:
        if outer["device_owner"] == OWNER:
            port.drop(cloud, outer)


def view(cloud: Cloud, floating: Json) -> Json:
    inner = port.KIND.table(cloud).get(floating["port_id"] or "")
    details = {name: inner[name] for name in SHOWN_OF_PORT} if inner else None
    return {**floating, "port_details": details}


KIND: Final = Kind(
    name="floatingip",
    plural="floatingips",
    path="floatingips",
    attributes=(
        Attribute("floating_ip_address", "PFSE", checks.or_none(checks.ip_text), None, admin="P"),
        Attribute("subnet_id", "P", checks.or_none(checks.uuid_text), None),
        Attribute("floating_network_id", "PFS", checks.uuid_text, REQUIRED),
        Attribute("router_id", "FS"),
        Attribute("port_id", "PUF", checks.or_none(checks.uuid_text), None),
        Attribute("fixed_ip_address", "PUFS", checks.or_none(checks.ip_text), None),
        Attribute("status", "FS"),
        Attribute("port_details", ""),
        Attribute("dns_name", "P", checks.string(255), ""),
        Attribute("dns_domain", "P", checks.string(255), ""),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=own,
    is_owner=own,
    lost_marker="empty",
)
