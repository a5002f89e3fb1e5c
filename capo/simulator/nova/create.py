"""Nova: POST of servers; the checks, in Nova's order, before a server is recorded."""

from __future__ import annotations

import secrets
import string
from typing import Final

from capo.simulator import ports
from capo.simulator.cloud import Cloud, Json
from capo.simulator.glance import service as glance
from capo.simulator.neutron import network as networks
from capo.simulator.neutron.kind import Caller
from capo.simulator.nova import build, instance_actions
from capo.simulator.nova.devices import check_devices, devices_of, image_properties, reserve_devices
from capo.simulator.nova.flavors import find_flavor
from capo.simulator.nova.quota import check_metadata, check_servers, group_member_limit
from capo.simulator.nova.schema import create_server, truth
from capo.simulator.nova.service import bad_request, conflict, links, not_allowed, over_quota, service
from capo.simulator.nova.state import notes, servers, time_of
from capo.simulator.routing import Request, Response
from capo.simulator.validation import check_body

GIB: Final = 1024**3
MANY_NETWORKS: Final = "Multiple possible networks found, use a Network ID to be more specific."
ONE_PORT: Final = (
    "Failed to launch instances: Unable to launch multiple instances with a single configured port ID. Please launch "
    "your instance one by one with different ports."
)
ALPHABET: Final = string.ascii_letters + string.digits


@service.route("POST", "/v2.1/servers")
async def create(request: Request) -> Response:
    if not request.raw:
        raise bad_request("None is not of type 'object'")
    body = request.json
    check_body(create_server(request.microversion), body)
    wanted = body["server"]
    hints = _hints(body)
    record = _record(request, wanted, hints)
    made = _store(request, record, wanted)
    for server in made:
        instance_actions.begin(request, server, "create")
        build.start(request.cloud, server)
    if truth(wanted.get("return_reservation_id", False)):
        return Response(202, {"reservation_id": made[0]["reservation_id"]})
    return _answer(request, wanted, made[0])


def _answer(request: Request, wanted: Json, server: Json) -> Response:
    shown = {
        "id": server["id"],
        "links": links(request, "servers", server["id"]),
        "OS-DCF:diskConfig": server["disk_config"],
        "security_groups": wanted.get("security_groups") or [{"name": "default"}],
        "adminPass": wanted.get("adminPass") or "".join(secrets.choice(ALPHABET) for _ in range(12)),
    }
    return Response(202, {"server": shown}, {"Location": f"{request.service_url}/v2.1/servers/{server['id']}"})


def _hints(body: Json) -> Json:
    found: Json = body.get("os:scheduler_hints") or body.get("OS-SCH-HNT:scheduler_hints") or {}
    return {key: value if isinstance(value, list) else [value] for key, value in found.items()}


def _record(request: Request, wanted: Json, hints: Json) -> Json:
    """Return the record of the requested server, everything checked, nothing reserved yet."""
    if ("host" in wanted or "hypervisor_hostname" in wanted) and not request.is_admin:
        raise not_allowed("compute:servers:create:requested_destination")
    devices = devices_of(wanted)
    flavor = find_flavor(request.cloud, str(wanted["flavorRef"]))
    if flavor is None:
        raise bad_request(f"Flavor {wanted['flavorRef']} could not be found.")
    image = _image(request, wanted, devices)
    _check_disk(flavor, image, devices)
    check_metadata(request, wanted.get("metadata", {}))
    _check_count(wanted)
    zone = _zone(request, wanted)
    _check_key(request, wanted)
    group_ids = _groups(request, wanted)
    nets = _networks(request, wanted)
    check_devices(request, devices)
    return {
        **_plain_fields(request, wanted, hints),
        "flavor": flavor,
        "image_id": image["id"] if image else "",
        "pinned_availability_zone": zone,
        "availability_zone": zone,
        "server_group": _server_group(request, hints),
        "port_ids": [entry["port_id"] for entry in nets if entry["port_id"]],
        "_image_properties": image_properties(image) if image else {},
        "_networks": nets,
        "_group_ids": group_ids,
        "_devices": devices,
    }


def _plain_fields(request: Request, wanted: Json, hints: Json) -> Json:
    now = time_of(request.cloud)
    return {
        "name": wanted["name"],
        "description": wanted.get("description"),
        "status": "BUILD",
        "task_state": "scheduling",
        "project_id": request.project_id,
        "user_id": request.user_id,
        "created": now,
        "updated": now,
        "launched_at": None,
        "terminated_at": None,
        "metadata": dict(wanted.get("metadata", {})),
        "tags": list(dict.fromkeys(wanted.get("tags", []))),
        "key_name": wanted.get("key_name"),
        "config_drive": truth(wanted.get("config_drive", False)),
        "user_data": wanted.get("user_data"),
        "hostname": wanted.get("hostname") or _hostname(wanted["name"]),
        "disk_config": wanted.get("OS-DCF:diskConfig", "MANUAL"),
        "access_ipv4": wanted.get("accessIPv4", ""),
        "access_ipv6": wanted.get("accessIPv6", ""),
        "locked": False,
        "locked_reason": None,
        "fault": None,
        "host": None,
        "scheduler_hints": hints,
        "volumes_attached": [],
        "_own_port_ids": [],
        "_is_mapped": False,
    }


def _hostname(name: str) -> str:
    """Return the host name that Nova derives from a server's name."""
    kept = "".join("-" if char in " _" else char for char in name.lower() if char.isalnum() or char in " _-.")
    return kept.replace(".", "-").strip("-")[:63]


def _image(request: Request, wanted: Json, devices: list[Json]) -> Json | None:
    image_id = wanted.get("imageRef", "")
    if not image_id:
        if not wanted.get("block_device_mapping_v2") and not devices:
            raise bad_request("Missing imageRef attribute")
        return None
    image = glance.find_image(request.cloud, image_id, request.project_id)
    if image is None:
        raise bad_request("Can not find requested image")
    if image["status"] != "active":
        raise bad_request(f"Image {image_id} is not active.")
    return image


def _check_disk(flavor: Json, image: Json | None, devices: list[Json]) -> None:
    is_on_volume = any(device["boot_index"] == 0 for device in devices)
    if image is None or is_on_volume or flavor["disk"] == 0:
        return
    if flavor["disk"] < image["min_disk"]:
        raise bad_request(
            "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is "
            f"{flavor['disk'] * GIB} bytes, minimum size is {image['min_disk'] * GIB} bytes."
        )


def _check_count(wanted: Json) -> None:
    low, high = _counts(wanted)
    if low > high:
        raise bad_request("min_count must be <= max_count")
    has_port = any(entry.get("port") for entry in _listed(wanted))
    if high > 1 and has_port:
        raise bad_request(ONE_PORT)


def _counts(wanted: Json) -> tuple[int, int]:
    low = int(wanted.get("min_count", 1))
    return low, int(wanted.get("max_count", low))


def _listed(wanted: Json) -> list[Json]:
    asked = wanted.get("networks", [])
    return asked if isinstance(asked, list) else []


def _zone(request: Request, wanted: Json) -> str | None:
    asked = wanted.get("availability_zone")
    if asked is None:
        return None
    zone, _, host = str(asked).partition(":")
    if host and not request.is_admin:
        raise not_allowed("os_compute_api:servers:create:forced_host")
    if zone not in request.cloud.config.zones:
        raise bad_request("The requested availability zone is not available")
    return zone


def _check_key(request: Request, wanted: Json) -> None:
    name = wanted.get("key_name")
    pairs = request.cloud.table("compute", "keypairs").values()
    if name is not None and not any(p["name"] == name and p["user_id"] == request.user_id for p in pairs):
        raise bad_request("Invalid key_name provided.")


def _groups(request: Request, wanted: Json) -> list[str]:
    """Return the ids of the requested security groups; they apply to ports that Nova creates."""
    ids: list[str] = []
    for entry in wanted.get("security_groups", []):
        name = entry["name"]
        found = ports.find_groups(request.cloud, name, request.project_id)
        if not found:
            raise bad_request(f"Unable to find security_group with name or id '{name}'")
        if len(found) > 1:
            raise conflict(f"Multiple security groups found matching '{name}'. Use an ID to be more specific.")
        ids.append(found[0]["id"])
    return ids


def _networks(request: Request, wanted: Json) -> list[Json]:
    if wanted.get("networks") == "none":
        return []
    asked = _listed(wanted)
    if not asked:
        return _automatic(request)
    given = [entry["port"] for entry in asked if entry.get("port")]
    for port_id in given:
        if given.count(port_id) > 1:
            raise bad_request(f"Port ID '{port_id}' was specified twice: you cannot attach a port multiple times.")
    return [_network(request, entry) for entry in asked]


def _automatic(request: Request) -> list[Json]:
    """Return the project's network if it has exactly one."""
    owned = [
        network
        for network in request.cloud.table("network", "networks").values()
        if network["project_id"] == request.project_id and not network["router:external"]
    ]
    if len(owned) > 1:
        raise conflict(MANY_NETWORKS)
    return [{"network_id": network["id"], "port_id": None, "fixed_ip": None} for network in owned]


def _network(request: Request, entry: Json) -> Json:
    caller = Caller.from_request(request)
    if entry.get("port"):
        port = ports.find(request.cloud, entry["port"], caller)
        if port is None:
            raise bad_request(f"Port id {entry['port']} could not be found.")
        if port["device_id"]:
            raise conflict(f"Port {port['id']} is still in use.")
        if not port["fixed_ips"]:
            raise bad_request(f"Port {port['id']} requires a FixedIP in order to be used.")
        return {"network_id": port["network_id"], "port_id": port["id"], "fixed_ip": None}
    if "uuid" not in entry:
        raise bad_request("Bad network format: missing 'uuid'")
    network_id = entry["uuid"]
    network = networks.KIND.table(request.cloud).get(network_id)
    if network is None or not networks.is_visible(request.cloud, network, caller):
        raise bad_request(f"Network {network_id} could not be found.")
    return {"network_id": network_id, "port_id": None, "fixed_ip": entry.get("fixed_ip")}


def _server_group(request: Request, hints: Json) -> str | None:
    group_id = hints.get("group", [None])[0]
    if group_id is None:
        return None
    group = request.cloud.table("compute", "server_groups").get(group_id)
    if group is None or group["project_id"] != request.project_id:
        raise bad_request(f"Instance group {group_id} could not be found.")
    limit = group_member_limit(request.cloud, request.project_id)
    if 0 <= limit < len(group["members"]) + 1:
        raise over_quota("Quota exceeded, too many servers in group")
    return str(group_id)


def _store(request: Request, record: Json, wanted: Json) -> list[Json]:
    cloud = request.cloud
    _, count = _counts(wanted)
    check_servers(request, record["flavor"], count)
    reserve_devices(request, wanted, record["flavor"], record["_devices"])
    reservation = "r-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))
    made = [_copy(cloud, record, index, count, reservation) for index in range(count)]
    for server in made:
        servers(cloud)[server["id"]] = server
        if record["server_group"]:
            cloud.table("compute", "server_groups")[record["server_group"]]["members"].append(server["id"])
    return made


def _copy(cloud: Cloud, record: Json, index: int, count: int, reservation: str) -> Json:
    mine = notes(cloud)
    mine.last_number += 1
    name = record["name"] if count == 1 else f"{record['name']}-{index + 1}"
    return {
        **record,
        "id": cloud.new_id(),
        "name": name,
        "hostname": record["hostname"] if count == 1 else _hostname(name),
        "reservation_id": reservation,
        "metadata": dict(record["metadata"]),
        "tags": list(record["tags"]),
        "port_ids": list(record["port_ids"]),
        "volumes_attached": [],
        "_own_port_ids": [],
        "_devices": [dict(device) for device in record["_devices"]],
        "_number": mine.last_number,
        "_launch_index": index,
    }
