"""Nova: attaching ports and volumes to a running server, and detaching them."""

from __future__ import annotations

from typing import Final

from capo.simulator import ports
from capo.simulator.cinder import state as cinder_state
from capo.simulator.cloud import Cloud, Json
from capo.simulator.error_page import empty
from capo.simulator.neutron import internal
from capo.simulator.neutron.kind import Caller
from capo.simulator.nova import build
from capo.simulator.nova.schema import BOOLEAN, TAG, UUID, body_of, truth
from capo.simulator.nova.service import bad_request, conflict, not_found, service, since
from capo.simulator.nova.state import VM_STATES, find_up
from capo.simulator.routing import Fault, Request, Response
from capo.simulator.validation import check_body

INTERFACES: Final = "/v2.1/servers/{server_id}/os-interface"
VOLUMES: Final = "/v2.1/servers/{server_id}/os-volume_attachments"
FIXED_IPS: Final[Json] = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1,
    "items": {
        "type": "object",
        "properties": {"ip_address": {"type": "string"}},
        "required": ["ip_address"],
        "additionalProperties": False,
    },
}


def _interface(request: Request, port: Json) -> Json:
    shown = {
        "net_id": port["network_id"],
        "port_id": port["id"],
        "mac_addr": port["mac_address"],
        "port_state": port["status"],
        "fixed_ips": port["fixed_ips"],
    }
    if since(request, 70):
        shown["tag"] = None
    return shown


@service.route("GET", INTERFACES)
async def list_interfaces(request: Request) -> Response:
    server = find_up(request)
    found = ports.ports_of_device(request.cloud, server["id"], server["port_ids"])
    return Response(200, {"interfaceAttachments": [_interface(request, port) for port in found]})


@service.route("GET", INTERFACES + "/{port_id}")
async def get_interface(request: Request) -> Response:
    server, port_id = find_up(request), request.match["port_id"]
    port = internal.find_port(request.cloud, port_id)
    if port is None:
        raise not_found(f"Port id {port_id} could not be found.")
    if port["device_id"] != server["id"]:
        raise not_found(f"Instance {server['id']} does not have a port with id {port_id}")
    return Response(200, {"interfaceAttachment": _interface(request, port)})


@service.route("POST", INTERFACES)
async def attach_interface(request: Request) -> Response:
    body = request.json if request.raw else {}
    properties: Json = {"net_id": UUID, "port_id": UUID, "fixed_ips": FIXED_IPS}
    if since(request, 49):
        properties["tag"] = TAG
    check_body({**body_of("interfaceAttachment", properties), "required": []}, body)
    wanted = body.get("interfaceAttachment", {})
    server = find_up(request)
    if VM_STATES[server["status"]] not in {"active", "stopped"}:
        state = VM_STATES[server["status"]]
        raise conflict(f"Cannot 'attach_interface' instance {server['id']} while it is in vm_state {state}")
    port = _port(request, server, wanted)
    owner = f"compute:{server['availability_zone']}"
    internal.bind_port(request.cloud, port["id"], device_id=server["id"], device_owner=owner, host=server["host"])
    server["port_ids"].append(port["id"])
    return Response(200, {"interfaceAttachment": _interface(request, port)})


def _port(request: Request, server: Json, wanted: Json) -> Json:
    if "port_id" in wanted:
        port = ports.find(request.cloud, wanted["port_id"], Caller.from_request(request))
        if port is None:
            raise not_found(f"Port id {wanted['port_id']} could not be found.")
        if port["device_id"]:
            raise conflict(f"Port {port['id']} is still in use.")
        return port
    if "net_id" not in wanted:
        raise bad_request("Failed to attach interface: no network was given.")
    request_body: Json = {"network_id": wanted["net_id"]}
    if "fixed_ips" in wanted:
        request_body["fixed_ips"] = wanted["fixed_ips"]
    try:
        made = internal.create_port(request.cloud, server["project_id"], request_body)
    except Fault as fault:
        raise bad_request(fault.message) from fault
    server["_own_port_ids"].append(made["id"])
    return made


@service.route("DELETE", INTERFACES + "/{port_id}")
async def detach_interface(request: Request) -> Response:
    server, port_id = find_up(request), request.match["port_id"]
    cloud = request.cloud
    cloud.after(cloud.timings.server_action_s, lambda: _let_go(cloud, server, port_id))
    return empty(202, "application/json")


def _let_go(cloud: Cloud, server: Json, port_id: str) -> None:
    port = internal.find_port(cloud, port_id)
    if port is None or port["device_id"] != server["id"]:
        return
    if port_id in server["_own_port_ids"]:
        internal.delete_port(cloud, port_id)
        server["_own_port_ids"].remove(port_id)
    else:
        internal.unbind_port(cloud, port_id)
    server["port_ids"] = [other for other in server["port_ids"] if other != port_id]


def _attachment(request: Request, server: Json, entry: Json) -> Json:
    shown: Json = {"volumeId": entry["volume_id"], "serverId": server["id"], "device": entry["device"]}
    if not since(request, 89):
        shown["id"] = entry["volume_id"]
    if since(request, 70):
        shown["tag"] = entry["tag"]
    if since(request, 79):
        shown["delete_on_termination"] = entry["delete_on_termination"]
    if since(request, 89):
        shown |= {"attachment_id": entry["attachment_id"], "bdm_uuid": entry["bdm_uuid"]}
    return shown


def _entry(server: Json, volume_id: str) -> Json:
    for entry in server["volumes_attached"]:
        if entry["volume_id"] == volume_id:
            found: Json = entry
            return found
    raise not_found(f"Instance {server['id']} is not attached to volume {volume_id}")


@service.route("GET", VOLUMES)
async def list_attachments(request: Request) -> Response:
    server = find_up(request)
    return Response(200, {"volumeAttachments": [_attachment(request, server, e) for e in server["volumes_attached"]]})


@service.route("GET", VOLUMES + "/{volume_id}")
async def get_attachment(request: Request) -> Response:
    server = find_up(request)
    entry = _entry(server, request.match["volume_id"])
    return Response(200, {"volumeAttachment": _attachment(request, server, entry)})


@service.route("POST", VOLUMES)
async def attach(request: Request) -> Response:
    body = request.json
    properties: Json = {"volumeId": UUID, "device": {"type": ["string", "null"]}}
    if since(request, 49):
        properties["tag"] = TAG
    if since(request, 79):
        properties["delete_on_termination"] = BOOLEAN
    check_body(body_of("volumeAttachment", properties, ("volumeId",)), body)
    wanted, server = body["volumeAttachment"], find_up(request)
    volume = cinder_state.find_volume(request.cloud, wanted["volumeId"], request.project_id)
    if volume is None:
        raise not_found(f"Volume {wanted['volumeId']} could not be found.")
    _reserve(request, volume)
    device = {
        "tag": wanted.get("tag"),
        "delete_on_termination": truth(wanted.get("delete_on_termination", False)),
    }
    cloud = request.cloud
    cloud.after(cloud.timings.server_action_s, lambda: _attach_late(cloud, server, volume, device))
    if since(request, 101):
        return empty(202)
    shown: Json = {"volumeId": volume["id"], "serverId": server["id"], "device": "/dev/sdb", "id": volume["id"]}
    return Response(200, {"volumeAttachment": shown})


def _reserve(request: Request, volume: Json) -> None:
    owners = sorted({entry["server_id"] for entry in volume["attachments"]})
    if owners and not volume["multiattach"]:
        ids = ", ".join(owners)
        raise bad_request(f"Invalid volume: volume {volume['id']} is already attached to instances: {ids}")
    try:
        cinder_state.reserve(request.cloud, volume)
    except Fault as fault:
        reason = f"{fault.message} (HTTP 400) (Request-ID: {request.request_id})"
        raise bad_request(f"Invalid volume: {reason}") from fault


def _attach_late(cloud: Cloud, server: Json, volume: Json, device: Json) -> None:
    if volume["status"] == "reserved" and server["status"] != "DELETED":
        build.attach_volume(cloud, server, volume, device)


@service.route("DELETE", VOLUMES + "/{volume_id}")
async def detach(request: Request) -> Response:
    server, cloud = find_up(request), request.cloud
    entry = _entry(server, request.match["volume_id"])
    volume = cinder_state.volumes(cloud)[entry["volume_id"]]
    cinder_state.touch(cloud, volume, status="detaching")
    cloud.after(cloud.timings.server_action_s, lambda: _detach_late(cloud, server, entry))
    return empty(202, "application/json")


def _detach_late(cloud: Cloud, server: Json, entry: Json) -> None:
    if entry in server["volumes_attached"]:
        server["volumes_attached"].remove(entry)
        server["_devices"] = [each for each in server["_devices"] if each["volume_id"] != entry["volume_id"]]
        cinder_state.release(cloud, entry["volume_id"], server_id=server["id"])
