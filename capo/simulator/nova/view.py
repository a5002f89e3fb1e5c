"""Servers as answers of a microversion."""

from __future__ import annotations

import hashlib
from typing import Final

from capo.simulator import ports
from capo.simulator.cloud import Cloud, Json
from capo.simulator.nova.flavors import embedded
from capo.simulator.nova.service import bookmark, links, since
from capo.simulator.nova.state import VM_STATES, is_mapped, notes
from capo.simulator.routing import Request

SHOWS_PROGRESS: Final = frozenset({"ACTIVE", "BUILD", "REBUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING"})
SHOWS_FAULT: Final = frozenset({"ERROR", "DELETED"})
POWER_STATES: Final = {"active": 1, "stopped": 4}


def brief(request: Request, server: Json, *, is_down: bool = False) -> Json:
    """Return a server of a list without details."""
    shown = {"id": server["id"], "name": server["name"], "links": links(request, "servers", server["id"])}
    if is_down and is_mapped(server):
        del shown["name"]
        shown["status"] = "UNKNOWN"
    return shown


def list_entry(request: Request, server: Json, *, is_down: bool = False) -> Json:
    """Return a server of a list with details."""
    if is_down and is_mapped(server):
        return _unreachable(request, server)
    return _full(request, server)


def details(request: Request, server: Json) -> Json:
    """Return a server that was requested by id."""
    is_down = notes(request.cloud).is_cell_down and is_mapped(server)
    if not is_down:
        shown = _full(request, server)
        if since(request, 71):
            shown["server_groups"] = _groups(server)
        return shown
    shown = _unreachable(request, server)
    shown |= {
        "image": _image(request, server),
        "flavor": _flavor(request, server),
        "OS-EXT-AZ:availability_zone": server["pinned_availability_zone"] or "UNKNOWN",
        "OS-EXT-STS:power_state": 0,
        "user_id": server["user_id"],
    }
    if since(request, 71):
        shown["server_groups"] = _groups(server)
    return shown


def _unreachable(request: Request, server: Json) -> Json:
    """Return what is known of a server whose cell is down."""
    return {
        "id": server["id"],
        "status": "UNKNOWN",
        "tenant_id": server["project_id"],
        "created": server["created"],
        "links": links(request, "servers", server["id"]),
    }


def _full(request: Request, server: Json) -> Json:
    status = server["status"]
    shown: Json = {
        "accessIPv4": server["access_ipv4"],
        "accessIPv6": server["access_ipv6"],
        "addresses": addresses(request.cloud, server),
        "created": server["created"],
        "flavor": _flavor(request, server),
        "hostId": _host_id(server),
        "id": server["id"],
        "image": _image(request, server),
        "links": links(request, "servers", server["id"]),
        "metadata": server["metadata"],
        "name": server["name"],
        "status": status,
        "tenant_id": server["project_id"],
        "user_id": server["user_id"],
        "updated": server["updated"],
        "OS-DCF:diskConfig": server["disk_config"],
        "OS-EXT-AZ:availability_zone": server["availability_zone"] or "",
        "config_drive": "True" if server["config_drive"] else "",
        "key_name": server["key_name"],
        "OS-SRV-USG:launched_at": server["launched_at"],
        "OS-SRV-USG:terminated_at": server["terminated_at"],
        "OS-EXT-STS:task_state": server["task_state"],
        "OS-EXT-STS:vm_state": VM_STATES[status],
        "OS-EXT-STS:power_state": 0 if server["host"] is None else POWER_STATES.get(VM_STATES[status], 0),
        "os-extended-volumes:volumes_attached": _volumes(request, server),
    }
    if status in SHOWS_FAULT and server["fault"]:
        shown["fault"] = _fault(request, server)
    if status in SHOWS_PROGRESS:
        shown["progress"] = 0
    groups = security_groups(request.cloud, server)
    if groups:
        shown["security_groups"] = groups
    return shown | _later(request, server) | _of_admin(request, server)


def _later(request: Request, server: Json) -> Json:
    """Return the fields that microversions added."""
    additions = (
        (9, "locked", server["locked"]),
        (19, "description", server["description"]),
        (26, "tags", server["tags"]),
        (63, "trusted_image_certificates", None),
        (73, "locked_reason", server["locked_reason"]),
        (90, "OS-EXT-SRV-ATTR:hostname", server["hostname"]),
        (96, "pinned_availability_zone", server["pinned_availability_zone"]),
        (100, "scheduler_hints", server["scheduler_hints"]),
    )
    return {key: value for minor, key, value in additions if since(request, minor)}


def _of_admin(request: Request, server: Json) -> Json:
    if not request.is_admin:
        return {}
    shown = {
        "OS-EXT-SRV-ATTR:host": server["host"],
        "OS-EXT-SRV-ATTR:instance_name": f"instance-{server['_number']:08x}",
        "OS-EXT-SRV-ATTR:hypervisor_hostname": server["host"],
    }
    if since(request, 3):
        shown |= {
            "OS-EXT-SRV-ATTR:hostname": server["hostname"],
            "OS-EXT-SRV-ATTR:kernel_id": "",
            "OS-EXT-SRV-ATTR:launch_index": server["_launch_index"],
            "OS-EXT-SRV-ATTR:ramdisk_id": "",
            "OS-EXT-SRV-ATTR:reservation_id": server["reservation_id"],
            "OS-EXT-SRV-ATTR:root_device_name": "/dev/sda" if server["host"] else None,
            "OS-EXT-SRV-ATTR:user_data": server["user_data"],
        }
    if since(request, 16):
        shown["host_status"] = "UP" if server["host"] else ""
    return shown


def addresses(cloud: Cloud, server: Json) -> Json:
    """Return the addresses of a server by network, the fixed ones of a port before its floating ones."""
    if server["status"] in {"BUILD", "DELETED"}:
        return {}
    found: dict[str, list[Json]] = {}
    for port in ports.ports_of_device(cloud, server["id"], server["port_ids"]):
        entries = found.setdefault(ports.network_name(cloud, port), [])
        fixed = [entry["ip_address"] for entry in port["fixed_ips"]]
        entries += [_address(address, "fixed", port) for address in fixed]
        entries += [_address(address, "floating", port) for address in ports.floating_addresses(cloud, port)]
    return found


def _address(address: str, kind: str, port: Json) -> Json:
    return {
        "version": 6 if ":" in address else 4,
        "addr": address,
        "OS-EXT-IPS:type": kind,
        "OS-EXT-IPS-MAC:mac_addr": port["mac_address"],
    }


def security_groups(cloud: Cloud, server: Json) -> list[Json]:
    """Return the names of the groups of the server's ports, one entry for each group of each port."""
    return [
        {"name": name}
        for port in ports.ports_of_device(cloud, server["id"], server["port_ids"])
        for name in ports.group_names(cloud, port)
    ]


def _flavor(request: Request, server: Json) -> Json:
    flavor = server["flavor"]
    if since(request, 47):
        return embedded(flavor)
    return {"id": flavor["id"], "links": [bookmark(request, "flavors", flavor["id"])]}


def _image(request: Request, server: Json) -> Json | str:
    image_id = server["image_id"]
    if not image_id:
        return ""
    shown: Json = {"id": image_id, "links": [bookmark(request, "images", image_id)]}
    if since(request, 98):
        shown["properties"] = server["_image_properties"]
    return shown


def _fault(request: Request, server: Json) -> Json:
    fault: Json = dict(server["fault"])
    if request.is_admin and fault["code"] == 500:
        fault["details"] = f"Traceback (most recent call last):\n{fault['message']}\n"
    return fault


def _groups(server: Json) -> list[str]:
    return [server["server_group"]] if server["server_group"] else []


def _host_id(server: Json) -> str:
    if server["host"] is None:
        return ""
    return hashlib.sha224(f"{server['project_id']}{server['host']}".encode()).hexdigest()


def _volumes(request: Request, server: Json) -> list[Json]:
    shown = []
    for volume in server["volumes_attached"]:
        entry = {"id": volume["volume_id"]}
        if since(request, 3):
            entry["delete_on_termination"] = volume["delete_on_termination"]
        shown.append(entry)
    return shown
