"""Nova: one server shown, changed and deleted; its addresses and metadata; injected faults."""

from __future__ import annotations

import re
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.nova import build, view
from capo.simulator.nova.schema import MAX_TAGS, METADATA, NOTHING, update_server
from capo.simulator.nova.service import bad_request, not_found, service, since
from capo.simulator.nova.state import Failure, cell_failure, find, find_up, is_mapped, missing, notes, servers, touch
from capo.simulator.routing import Request, Response
from capo.simulator.validation import check_body, check_query

METADATA_BODY: Final[Json] = {
    "type": "object",
    "properties": {"metadata": METADATA},
    "required": ["metadata"],
    "additionalProperties": False,
}
ITEM_BODY: Final[Json] = {
    "type": "object",
    "properties": {"meta": METADATA},
    "required": ["meta"],
    "additionalProperties": False,
}


@service.route("GET", "/v2.1/servers/{server_id}")
async def get_server(request: Request) -> Response:
    if since(request, 102):
        check_query(NOTHING, request.query)
    server = find(request)
    if notes(request.cloud).is_cell_down and is_mapped(server) and not since(request, 69):
        raise cell_failure()
    return Response(200, {"server": view.details(request, server)})


@service.route("PUT", "/v2.1/servers/{server_id}")
async def put_server(request: Request) -> Response:
    body = request.json
    check_body(update_server(request.microversion), body)
    server = find_up(request)
    fields = {
        "name": "name",
        "description": "description",
        "hostname": "hostname",
        "OS-DCF:diskConfig": "disk_config",
        "accessIPv4": "access_ipv4",
        "accessIPv6": "access_ipv6",
    }
    touch(request.cloud, server, **{fields[key]: value for key, value in body["server"].items()})
    return Response(200, {"server": view.details(request, server)})


@service.route("DELETE", "/v2.1/servers/{server_id}")
async def delete_server(request: Request) -> Response:
    build.delete(request.cloud, find_up(request))
    return Response(204, headers={"Content-Type": "application/json"})


@service.route("GET", "/v2.1/servers/{server_id}/ips")
async def get_addresses(request: Request) -> Response:
    found = view.addresses(request.cloud, find_up(request))
    brief = {
        network: [{"version": entry["version"], "addr": entry["addr"]} for entry in entries]
        for network, entries in found.items()
    }
    return Response(200, {"addresses": brief})


@service.route("GET", "/v2.1/servers/{server_id}/metadata")
async def get_metadata(request: Request) -> Response:
    return Response(200, {"metadata": find_up(request)["metadata"]})


@service.route("POST", "/v2.1/servers/{server_id}/metadata")
async def add_metadata(request: Request) -> Response:
    body = request.json
    check_body(METADATA_BODY, body)
    server = find_up(request)
    server["metadata"] |= body["metadata"]
    return Response(200, {"metadata": server["metadata"]})


@service.route("PUT", "/v2.1/servers/{server_id}/metadata")
async def set_metadata(request: Request) -> Response:
    body = request.json
    check_body(METADATA_BODY, body)
    server = find_up(request)
    server["metadata"] = dict(body["metadata"])
    return Response(200, {"metadata": server["metadata"]})


@service.route("GET", "/v2.1/servers/{server_id}/metadata/{key}")
async def get_item(request: Request) -> Response:
    server, key = find_up(request), request.match["key"]
    if key not in server["metadata"]:
        raise not_found("Metadata item was not found")
    return Response(200, {"meta": {key: server["metadata"][key]}})


@service.route("PUT", "/v2.1/servers/{server_id}/metadata/{key}")
async def set_item(request: Request) -> Response:
    body, key = request.json, request.match["key"]
    check_body(ITEM_BODY, body)
    if key not in body["meta"]:
        raise bad_request("Request body and URI mismatch")
    server = find_up(request)
    server["metadata"][key] = body["meta"][key]
    return Response(200, {"meta": body["meta"]})


@service.route("DELETE", "/v2.1/servers/{server_id}/metadata/{key}")
async def delete_item(request: Request) -> Response:
    server, key = find_up(request), request.match["key"]
    if key not in server["metadata"]:
        raise not_found("Metadata item was not found")
    del server["metadata"][key]
    return Response(204, headers={"Content-Type": "application/json"})


@service.route("PUT", "/v2.1/servers/{server_id}/tags/{tag}")
async def add_tag(request: Request) -> Response:
    if request.match["server_id"] not in servers(request.cloud):
        raise not_found(f"Instance {request.match['server_id']} has no mapping to a cell.")
    server, tag = find_up(request), request.match["tag"]
    if tag in server["tags"]:
        return Response(204, headers={"Content-Type": "application/json"})
    if len(server["tags"]) >= MAX_TAGS:
        raise bad_request(f"The number of tags exceeded the per-server limit {MAX_TAGS}")
    server["tags"].append(tag)
    return Response(201, headers={"Content-Type": "application/json"})


@service.tweak("fail_builds")
def fail_builds(cloud: Cloud, order: Json) -> Json:
    """End the next builds in ERROR.

    The order has `message`, and may have `name` (regular expression, all otherwise), `code` (500) and `times` (1).
    """
    failure = Failure(
        name=re.compile(order.get("name", "")),
        message=str(order["message"]),
        code=int(order.get("code", 500)),
        times=int(order.get("times", 1)),
    )
    notes(cloud).failures.append(failure)
    return {"pending": sum(item.times for item in notes(cloud).failures)}


@service.tweak("break_server")
def break_server(cloud: Cloud, order: Json) -> Json:
    """Put the server of `id` into ERROR with `message` and `code` (500)."""
    server = servers(cloud).get(str(order.get("id")))
    if server is None:
        raise missing(str(order.get("id")))
    build.break_server(cloud, server, str(order["message"]), code=int(order.get("code", 500)))
    return {"status": server["status"]}


@service.tweak("cell")
def set_cell(cloud: Cloud, order: Json) -> Json:
    """Take the cell that holds all servers down, or bring it up again: `{"down": true}`."""
    notes(cloud).is_cell_down = bool(order["down"])
    return {"down": notes(cloud).is_cell_down}
