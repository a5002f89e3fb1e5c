"""What Nova and Cinder answer to the writes of a plan. Servers and volumes are ready at once.

Source: Compute API and Block Storage API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from capo.json_types import Body, Json
from capo.operations.plan import neutron
from capo.operations.plan.overlay import VOLUME, MissingError, Overlay, Place

SERVERS: Final = Place.of("server")
SERVER_GROUPS: Final = Place.of("server_group")
VOLUMES: Final = Place.of("volume")
ATTACHMENTS: Final = Place(VOLUME, "/attachments")
_ATTACHED: Final = "os-extended-volumes:volumes_attached"


def create_server(overlay: Overlay, request: Mapping[str, Any]) -> Json:
    """Create a server that is active."""
    body, hints = request["server"], request.get("os:scheduler_hints") or {}
    server = overlay.add(SERVERS, _server(overlay, body))
    zone = server["OS-EXT-AZ:availability_zone"]
    for network in body.get("networks") or ():
        attached = {"device_id": server["id"], "device_owner": f"compute:{zone}", "status": "ACTIVE"}
        overlay.update(neutron.PORTS, network["port"], attached)
    for volume in _volumes(body):
        attachment = {"server_id": server["id"], "volume_id": volume["id"], "device": "/dev/vda"}
        overlay.update(VOLUMES, volume["id"], {"status": "in-use", "attachments": [attachment]})
    if group := hints.get("group"):
        known = overlay.find(SERVER_GROUPS, group).get("members") or ()
        overlay.update(SERVER_GROUPS, group, {"members": [*known, server["id"]]})
    server["addresses"] = addresses(overlay, server["id"])
    return server


def _server(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    now = overlay.timestamp()
    return {
        "name": body["name"],
        "status": "ACTIVE",
        "tags": list(body.get("tags") or ()),
        "metadata": dict(body.get("metadata") or {}),
        "flavor": {"original_name": ""},
        "image": {"id": body["imageRef"]} if body.get("imageRef") else "",
        "key_name": body.get("key_name"),
        "config_drive": "True" if body.get("config_drive") else "",
        "created": now,
        "updated": now,
        "hostId": f"planned-{overlay.number()}",
        "tenant_id": overlay.project_id(),
        "OS-EXT-AZ:availability_zone": body.get("availability_zone") or "nova",
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:power_state": 1,
        "OS-SRV-USG:launched_at": now,
        "OS-SRV-USG:terminated_at": None,
        _ATTACHED: _volumes(body),
    }


def _volumes(body: Mapping[str, Any]) -> list[Json]:
    devices = body.get("block_device_mapping_v2") or ()
    return [
        {"id": device["uuid"], "delete_on_termination": bool(device.get("delete_on_termination"))}
        for device in devices
        if device.get("source_type") == "volume"
    ]


def addresses(overlay: Overlay, server_id: str) -> Json:
    """Return the addresses of a server by the name of their network, as Nova shows them."""
    shown: Json = {}
    for port in overlay.all(neutron.PORTS):
        if port.get("device_id") == server_id:
            network = overlay.find(neutron.NETWORKS, str(port["network_id"]))
            shown.setdefault(network.get("name") or "", []).extend(_of_port(overlay, port))
    return shown


def _of_port(overlay: Overlay, port: Body) -> Iterator[Json]:
    for fixed in port.get("fixed_ips") or ():
        address = fixed["ip_address"]
        yield _address(address, "fixed", port)
        for floating in overlay.all(neutron.FLOATING_IPS):
            if floating.get("port_id") == port["id"] and floating.get("fixed_ip_address") == address:
                yield _address(str(floating["floating_ip_address"]), "floating", port)


def _address(address: str, type_: str, port: Body) -> Json:
    return {
        "addr": address,
        "version": 6 if ":" in address else 4,
        "OS-EXT-IPS:type": type_,
        "OS-EXT-IPS-MAC:mac_addr": port.get("mac_address"),
    }


def refresh(overlay: Overlay, port_id: str | None) -> None:
    """Show a changed floating IP in the addresses of the server at its port."""
    if not port_id:
        return
    try:
        server_id = str(overlay.find(neutron.PORTS, port_id).get("device_id") or "")
        overlay.find(SERVERS, server_id)
    except MissingError:
        return
    overlay.update(SERVERS, server_id, {"addresses": addresses(overlay, server_id)})


def delete_server(overlay: Overlay, server_id: str) -> None:
    """Delete a server: its ports are free, its volumes are deleted or free."""
    server = overlay.remove(SERVERS, server_id)
    for port in [each for each in overlay.all(neutron.PORTS) if each.get("device_id") == server_id]:
        overlay.update(neutron.PORTS, str(port["id"]), {"device_id": "", "device_owner": "", "status": "DOWN"})
    for volume in server.get(_ATTACHED) or ():
        _free(overlay, str(volume["id"]), is_deleted=bool(volume.get("delete_on_termination")))
    for group in [each for each in overlay.all(SERVER_GROUPS) if server_id in (each.get("members") or ())]:
        members = [each for each in group["members"] if each != server_id]
        overlay.update(SERVER_GROUPS, str(group["id"]), {"members": members})


def _free(overlay: Overlay, volume_id: str, *, is_deleted: bool) -> None:
    try:
        if is_deleted:
            overlay.remove(VOLUMES, volume_id)
        else:
            overlay.update(VOLUMES, volume_id, {"status": "available", "attachments": []})
    except MissingError:
        return


def set_metadata(overlay: Overlay, server_id: str, values: Mapping[str, str]) -> Json:
    """Add keys to the metadata of a server; return all of it."""
    known = dict(overlay.find(SERVERS, server_id).get("metadata") or {})
    return dict(overlay.update(SERVERS, server_id, {"metadata": {**known, **values}})["metadata"])


def add_tag(overlay: Overlay, server_id: str, tag: str) -> None:
    """Add a tag to a server."""
    known = overlay.find(SERVERS, server_id).get("tags") or ()
    overlay.update(SERVERS, server_id, {"tags": [*dict.fromkeys([*known, tag])]})


def create_group(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    """Create a server group."""
    return overlay.add(SERVER_GROUPS, {"members": [], "metadata": {}, "project_id": overlay.project_id(), **body})


def create_volume(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    """Create a volume that is available."""
    defaults = {"status": "available", "attachments": [], "metadata": {}, "bootable": "true"}
    return overlay.add(VOLUMES, {**defaults, "created_at": overlay.timestamp(), **body})
