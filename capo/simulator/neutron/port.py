"""Ports: addresses, security, binding, and which callers may delete one."""

from __future__ import annotations

import secrets
from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks, group, network
from capo.simulator.neutron.addresses import INTERFACES, Allocation
from capo.simulator.neutron.kind import REQUIRED, UNSET, Attribute, Caller, Kind, new, own, touch
from capo.simulator.neutron.service import disallowed
from capo.simulator.routing import Fault

MAC_PREFIX: Final = "fa:16:3e"
VNIC_TYPES: Final = (
    "normal",
    "direct",
    "macvtap",
    "baremetal",
    "direct-physical",
    "virtio-forwarder",
    "smart-nic",
    "vdpa",
    "accelerator-direct",
    "accelerator-direct-physical",
    "remote-managed",
)
# A port of these belongs to its device; only an admin may delete it.
DEVICE_OWNERS: Final = ("compute:", "baremetal:", "manila:")
ROUTER_OWNERS: Final = (*INTERFACES, "network:router_gateway", "network:floatingip")
BOUND: Final = {"port_filter": True, "ovs_hybrid_plug": False, "bound_drivers": {"0": "lab"}}


def missing(port_id: str) -> Fault:
    return Fault(404, f"Port {port_id} could not be found.", "PortNotFound")


def create(cloud: Cloud, values: Json, caller: Caller) -> Json:
    parent = network.KIND.table(cloud).get(values["network_id"])
    if parent is None or not network.is_visible(cloud, parent, caller):
        raise network.missing(values["network_id"])
    if not (own(cloud, parent, caller) or parent["shared"]):
        raise disallowed("rule:create_port")
    mac = _new_mac(cloud, values)
    is_router_port = values["device_owner"] in ROUTER_OWNERS
    allocation = Allocation(cloud, parent["id"], mac)
    if values["fixed_ips"] is UNSET:
        fixed_ips = allocation.automatic()
    else:
        fixed_ips = allocation.requested(values["fixed_ips"], with_slaac=not is_router_port)
    is_secured = _is_secured(values, parent)
    given = {
        **values,
        "mac_address": mac,
        "fixed_ips": fixed_ips,
        "port_security_enabled": is_secured,
        "security_groups": _groups(cloud, values, is_secured=is_secured, fixed_ips=fixed_ips),
        "allowed_address_pairs": _pairs(values["allowed_address_pairs"], mac, is_secured=is_secured),
        "extra_dhcp_opts": [{"ip_version": 4, **option} for option in values["extra_dhcp_opts"] or []],
        "status": "DOWN",
        **_unbound(),
    }
    port = new(cloud, given)
    KIND.table(cloud)[port["id"]] = port
    if values["binding:host_id"] not in {UNSET, "", None}:
        bind(cloud, port, values["binding:host_id"])
    if values["binding:profile"] is not UNSET:
        port["binding:profile"] = values["binding:profile"] or {}
    return port


def _new_mac(cloud: Cloud, values: Json) -> str:
    used = {port["mac_address"] for port in KIND.table(cloud).values() if port["network_id"] == values["network_id"]}
    if values["mac_address"] is not UNSET:
        mac = str(values["mac_address"])
        if mac in used:
            raise Fault(
                409,
                f"Unable to complete operation for network {values['network_id']}. The mac address {mac} is in use.",
                "MacAddressInUse",
            )
        return mac
    while True:
        tail = secrets.token_hex(3)
        mac = f"{MAC_PREFIX}:{tail[:2]}:{tail[2:4]}:{tail[4:]}"
        if mac not in used:
            return mac


def _is_secured(values: Json, parent: Json) -> bool:
    if values["port_security_enabled"] is not UNSET:
        return bool(values["port_security_enabled"])
    return not values["device_owner"].startswith("network:") and bool(parent["port_security_enabled"])


def _groups(cloud: Cloud, values: Json, *, is_secured: bool, fixed_ips: list[Json]) -> list[str]:
    wanted = values["security_groups"]
    if wanted is UNSET:
        is_for_default = is_secured and values["project_id"]
        return [group.ensure_default(cloud, values["project_id"])["id"]] if is_for_default else []
    _check_groups(cloud, wanted, values["project_id"], is_allowed=is_secured and bool(fixed_ips))
    return list(wanted)


def _check_groups(cloud: Cloud, wanted: list[str], project_id: str, *, is_allowed: bool) -> None:
    if wanted and not is_allowed:
        message = "Port security must be enabled and port must have an IP address in order to use security groups."
        raise Fault(400, message, "PortSecurityAndIPRequiredForSecurityGroups")
    known = group.KIND.table(cloud)
    for group_id in wanted:
        if group_id not in known or known[group_id]["project_id"] != project_id:
            raise group.missing(group_id)


def _pairs(wanted: Any, mac: str, *, is_secured: bool) -> list[Json]:
    pairs = [] if wanted is UNSET else wanted
    if pairs and not is_secured:
        message = "Port Security must be enabled in order to have allowed address pairs on a port."
        raise Fault(409, message, "AddressPairAndPortSecurityRequired")
    filled = [{**pair, "mac_address": pair["mac_address"] or mac} for pair in pairs]
    return sorted(filled, key=lambda pair: (pair["mac_address"], pair["ip_address"]))


def _unbound() -> Json:
    return {
        "binding:host_id": "",
        "binding:profile": {},
        "binding:vif_type": "unbound",
        "binding:vif_details": {},
    }


def bind(cloud: Cloud, port: Json, host: str) -> None:
    """Bind a port to a host; it becomes ACTIVE after a delay."""
    port |= {"binding:host_id": host, "binding:vif_type": "ovs", "binding:vif_details": BOUND}
    bound_at = cloud.timings.port_active_s
    if bound_at <= 0:
        _activate(cloud, port["id"], host)
    else:
        cloud.after(bound_at, lambda: _activate(cloud, port["id"], host))


def _activate(cloud: Cloud, port_id: str, host: str) -> None:
    port = KIND.table(cloud).get(port_id)
    if port is None or port["binding:host_id"] != host or port["status"] == "ACTIVE":
        return
    port["status"] = "ACTIVE"
    touch(cloud, port)
    for trunk in cloud.table("network", "trunks").values():
        if trunk["port_id"] == port_id:
            trunk["status"] = "ACTIVE"


def unbind(cloud: Cloud, port: Json) -> None:
    """Unbind a port: it has no device, no host and is DOWN."""
    port |= {"device_id": "", "device_owner": "", "status": "DOWN", **_unbound()}
    touch(cloud, port)


def update(cloud: Cloud, port: Json, changes: Json, _: Caller) -> None:
    changed = dict(changes)
    if "fixed_ips" in changes:
        _check_router(cloud, port)
        allocation = Allocation(cloud, port["network_id"], port["mac_address"], port_id=port["id"])
        changed["fixed_ips"] = allocation.requested(changes["fixed_ips"], current=port["fixed_ips"])
    after = {**port, **changed}
    if "security_groups" in changes or "port_security_enabled" in changes:
        is_allowed = after["port_security_enabled"] and bool(after["fixed_ips"])
        if "security_groups" not in changes and after["security_groups"] and not is_allowed:
            message = (
                "Port has security group associated. Cannot disable port security or IP address until security group "
                "is removed."
            )
            raise Fault(409, message, "PortSecurityPortHasSecurityGroup")
        if changes.get("security_groups") or not after["port_security_enabled"]:
            _check_groups(cloud, after["security_groups"], port["project_id"], is_allowed=is_allowed)
    if "allowed_address_pairs" in changes or "port_security_enabled" in changes:
        changed["allowed_address_pairs"] = _pairs(
            after["allowed_address_pairs"], port["mac_address"], is_secured=after["port_security_enabled"]
        )
    host = changed.pop("binding:host_id", UNSET)
    port.update(changed)
    touch(cloud, port)
    if host is not UNSET and host:
        bind(cloud, port, host)
    elif host is not UNSET:
        port |= {**_unbound(), "status": "DOWN"}


def _check_router(cloud: Cloud, port: Json) -> None:
    is_interface = port["device_owner"] in INTERFACES
    if is_interface and port["device_id"] not in cloud.table("network", "routers"):
        raise Fault(404, f"Router {port['device_id']} could not be found", "RouterNotFound")


def delete(cloud: Cloud, port: Json, caller: Caller) -> None:
    if port["device_owner"].startswith(DEVICE_OWNERS) and not caller.is_admin:
        raise disallowed("rule:delete_port")
    if port["device_owner"] in ROUTER_OWNERS and _device_exists(cloud, port):
        message = (
            f"Port {port['id']} cannot be deleted directly via the port API: has device owner {port['device_owner']}."
        )
        raise Fault(409, message, "ServicePortInUse")
    _check_trunks(cloud, port)
    drop(cloud, port)


def _device_exists(cloud: Cloud, port: Json) -> bool:
    if port["device_owner"] == "network:floatingip":
        return port["device_id"] in cloud.table("network", "floatingips")
    return port.get("_router_id") in cloud.table("network", "routers")


def _check_trunks(cloud: Cloud, port: Json) -> None:
    for trunk in cloud.table("network", "trunks").values():
        if trunk["port_id"] == port["id"]:
            message = f"Port {port['id']} is currently a parent port for trunk {trunk['id']}."
            raise Fault(409, message, "PortInUseAsTrunkParent")
        if any(subport["port_id"] == port["id"] for subport in trunk["sub_ports"]):
            message = f"Port {port['id']} is currently a subport for trunk {trunk['id']}."
            raise Fault(409, message, "PortInUseAsSubPort")


def drop(cloud: Cloud, port: Json) -> None:
    """Delete a port; its floating IP is disassociated."""
    for floating in cloud.table("network", "floatingips").values():
        if floating["port_id"] == port["id"]:
            floating |= {"port_id": None, "fixed_ip_address": None, "router_id": None}
            touch(cloud, floating)
    KIND.table(cloud).pop(port["id"])


def view(cloud: Cloud, port: Json) -> Json:
    names = [_name_of(fixed["ip_address"]) for fixed in port["fixed_ips"]]
    shown = {**port, "dns_assignment": names}
    trunk = next((item for item in cloud.table("network", "trunks").values() if item["port_id"] == port["id"]), None)
    if trunk is not None:
        ports = KIND.table(cloud)
        sub_ports = [{**item, "mac_address": ports[item["port_id"]]["mac_address"]} for item in trunk["sub_ports"]]
        shown["trunk_details"] = {"trunk_id": trunk["id"], "sub_ports": sub_ports}
    return shown


def _name_of(address: str) -> Json:
    host = f"host-{address.replace('.', '-').replace(':', '-')}"
    return {"ip_address": address, "hostname": host, "fqdn": f"{host}.openstacklocal."}


def _is_owner(cloud: Cloud, port: Json, caller: Caller) -> bool:
    return own(cloud, port, caller) or network.owns_network(cloud, port["network_id"], caller)


def _match_fixed_ips(port: Json, values: list[str]) -> bool:
    wanted: dict[str, list[str]] = {}
    for value in values:
        key, separator, text = value.partition("=")
        if not separator:
            raise Fault(
                400,
                f"Invalid input for operation: '{value}' is not of the form <key>=[value].",
                "InvalidInput",
            )
        wanted.setdefault(key, []).append(text)
    tests = {
        "ip_address": lambda fixed, texts: fixed["ip_address"] in texts,
        "subnet_id": lambda fixed, texts: fixed["subnet_id"] in texts,
        "ip_address_substr": lambda fixed, texts: any(text in fixed["ip_address"] for text in texts),
    }
    asked = {key: texts for key, texts in wanted.items() if key in tests}
    return all(any(tests[key](fixed, texts) for fixed in port["fixed_ips"]) for key, texts in asked.items())


def _match_groups(port: Json, values: list[str]) -> bool:
    return any(value in port["security_groups"] for value in values)


KIND: Final = Kind(
    name="port",
    plural="ports",
    path="ports",
    attributes=(
        Attribute("name", "PUFS", checks.string(255), ""),
        Attribute("network_id", "PFS", checks.uuid_text, REQUIRED),
        Attribute("admin_state_up", "PUFS", checks.boolean, default=True),
        Attribute("mac_address", "PUFSE", checks.mac, admin="U"),
        Attribute("fixed_ips", "PUFE", checks.fixed_ips, parts=("ip_address", "subnet_id")),
        Attribute("device_id", "PUFSE", checks.string(255), ""),
        Attribute("device_owner", "PUFSE", checks.string(255), ""),
        Attribute("status", "FS"),
        Attribute("allowed_address_pairs", "PUE", checks.address_pairs, parts=("mac_address", "ip_address")),
        Attribute("dns_name", "PU", checks.string(255), ""),
        Attribute("dns_assignment", ""),
        Attribute("dns_domain", "PU", checks.string(255), ""),
        Attribute("extra_dhcp_opts", "PU", checks.or_none(checks.list_of(checks.anything)), None),
        Attribute("device_profile", "P", checks.or_none(checks.string(255))),
        Attribute("numa_affinity_policy", "PU"),
        Attribute("binding:vif_type", ""),
        Attribute("binding:vif_details", ""),
        Attribute("binding:vnic_type", "PUE", checks.one_of(VNIC_TYPES), "normal"),
        Attribute("binding:host_id", "PUFE", admin="PU"),
        Attribute("binding:profile", "PUE", admin="PU"),
        Attribute("port_security_enabled", "PUE", checks.boolean),
        Attribute("trunk_details", ""),
        Attribute("propagate_uplink_status", "P", checks.boolean, default=True),
        Attribute("security_groups", "PUF", checks.uuid_list),
        # Accepted for ports alone, and then neither stored nor shown.
        Attribute("tags", "P", checks.tags),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=_is_owner,
    is_owner=_is_owner,
    lost_marker="refused",
    hidden=frozenset({"binding:host_id", "binding:profile", "binding:vif_type", "binding:vif_details"}),
    matchers={"fixed_ips": _match_fixed_ips, "security_groups": _match_groups},
)
