"""Nova: tags of servers."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Json
from capo.simulator.error_page import empty
from capo.simulator.nova.schema import MAX_TAGS, TAG
from capo.simulator.nova.service import bad_request, not_found, require, service
from capo.simulator.nova.state import find_mapped, touch
from capo.simulator.routing import Fault, Request, Response
from capo.simulator.validation import check_body

TAGS_BODY: Final[Json] = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": TAG, "maxItems": MAX_TAGS}},
    "required": ["tags"],
    "additionalProperties": False,
}
PATH: Final = "/v2.1/servers/{server_id}/tags"


@service.route("GET", PATH)
async def list_tags(request: Request) -> Response:
    require(request, 26)
    return Response(200, {"tags": find_mapped(request)["tags"]})


@service.route("PUT", PATH)
async def replace_tags(request: Request) -> Response:
    require(request, 26)
    body = request.json
    check_body(TAGS_BODY, body)
    server = find_mapped(request)
    touch(request.cloud, server, tags=list(dict.fromkeys(body["tags"])))
    return Response(200, {"tags": server["tags"]})


@service.route("DELETE", PATH)
async def remove_tags(request: Request) -> Response:
    require(request, 26)
    touch(request.cloud, find_mapped(request), tags=[])
    return empty(204, "application/json")


@service.route("GET", PATH + "/{tag}")
async def has_tag(request: Request) -> Response:
    require(request, 26)
    server, tag = find_mapped(request), request.match["tag"]
    if tag not in server["tags"]:
        raise not_found(f"Server {server['id']} has no tag '{tag}'")
    return empty(204, "application/json")


@service.route("PUT", PATH + "/{tag}")
async def add_tag(request: Request) -> Response:
    require(request, 26)
    tag = request.match["tag"]
    _check_tag(tag)
    server = find_mapped(request)
    if tag in server["tags"]:
        return empty(204)
    if len(server["tags"]) >= MAX_TAGS:
        raise bad_request(f"The number of tags exceeded the per-server limit {MAX_TAGS}")
    touch(request.cloud, server, tags=[*server["tags"], tag])
    answer = empty(201)
    answer.headers["Location"] = f"{request.service_url}/v2.1/servers/{server['id']}/tags/{tag}"
    return answer


@service.route("DELETE", PATH + "/{tag}")
async def remove_tag(request: Request) -> Response:
    require(request, 26)
    server, tag = find_mapped(request), request.match["tag"]
    if tag not in server["tags"]:
        raise not_found(f"Instance {server['id']} has no tag '{tag}'")
    touch(request.cloud, server, tags=[other for other in server["tags"] if other != tag])
    return empty(204, "application/json")


def _check_tag(tag: str) -> None:
    try:
        check_body({"type": "object", "properties": {"tag": TAG}}, {"tag": tag})
    except Fault as fault:
        reason = fault.message.partition(f"Value: {tag}. ")[2]
        raise bad_request(
            f"Tag '{tag}' is invalid. It must be a non empty string without characters '/' and ','. "
            f"Validation error message: {reason}"
        ) from fault
