"""Nova: server groups."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Json
from capo.simulator.error_page import empty
from capo.simulator.nova.quota import limit, usage
from capo.simulator.nova.schema import NAME, POLICY, body_of
from capo.simulator.nova.service import bad_request, not_found, over_quota, service, since
from capo.simulator.nova.state import servers
from capo.simulator.routing import Request, Response
from capo.simulator.validation import check_body, check_query, many

PATH: Final = "/v2.1/os-server-groups"
RULES: Final[Json] = {"type": "object", "properties": {"max_server_per_host": {}}, "additionalProperties": False}

NUMBER: Final = many({"type": "string", "pattern": "^[0-9]*$", "minLength": 1})
LIST: Final[Json] = {
    "type": "object",
    "properties": {"all_projects": many({"type": "string"}), "limit": NUMBER, "offset": NUMBER},
}


def _shown(request: Request, group: Json) -> Json:
    shown = {"id": group["id"], "name": group["name"], "members": sorted(group["members"])}
    if since(request, 64):
        shown |= {"policy": group["policy"], "rules": group["rules"]}
    else:
        shown |= {"policies": [group["policy"]], "metadata": {}}
    if since(request, 13):
        shown |= {"project_id": group["project_id"], "user_id": group["user_id"]}
    return shown


def _body(request: Request) -> Json:
    if since(request, 64):
        return body_of("server_group", {"name": NAME, "policy": POLICY, "rules": RULES}, ("name", "policy"))
    policies = {"type": "array", "items": POLICY, "minItems": 1, "maxItems": 1}
    return body_of("server_group", {"name": NAME, "policies": policies}, ("name", "policies"))


@service.route("GET", PATH)
async def list_groups(request: Request) -> Response:
    check_query({**LIST, "additionalProperties": not since(request, 75)}, request.query)
    groups = request.cloud.table("compute", "server_groups").values()
    owned = [_shown(request, group) for group in groups if group["project_id"] == request.project_id]
    first = int(request.query.get("offset", "0"))
    most = request.cloud.config.max_limit
    limit = min(int(request.query.get("limit", "0")) or most, most)
    return Response(200, {"server_groups": owned[first : first + limit]})


@service.route("POST", PATH)
async def create_group(request: Request) -> Response:
    body = request.json
    check_body(_body(request), body)
    wanted, cloud = body["server_group"], request.cloud
    if wanted.get("rules") and wanted["policy"] != "anti-affinity":
        raise bad_request("Only anti-affinity policy supports rules.")
    allowed = limit(cloud, request.project_id, "server_groups")
    if 0 <= allowed < usage(cloud, request.project_id)["server_groups"] + 1:
        raise over_quota("Quota exceeded, too many server groups.")
    group: Json = {
        "id": cloud.new_id(),
        "name": wanted["name"],
        "policy": wanted["policy"] if since(request, 64) else wanted["policies"][0],
        "rules": wanted.get("rules", {}),
        "members": [],
        "project_id": request.project_id,
        "user_id": request.user_id,
    }
    cloud.table("compute", "server_groups")[group["id"]] = group
    return Response(200, {"server_group": _shown(request, group)})


@service.route("GET", PATH + "/{id}")
async def get_group(request: Request) -> Response:
    return Response(200, {"server_group": _shown(request, _find(request))})


@service.route("DELETE", PATH + "/{id}")
async def delete_group(request: Request) -> Response:
    group = _find(request)
    del request.cloud.table("compute", "server_groups")[group["id"]]
    for server in servers(request.cloud).values():
        if server["server_group"] == group["id"]:
            server |= {"server_group": None, "scheduler_hints": {}}
    return empty(204, "application/json")


def _find(request: Request) -> Json:
    group_id = request.match["id"]
    group = request.cloud.table("compute", "server_groups").get(group_id)
    if group is None or not (request.is_admin or group["project_id"] == request.project_id):
        raise not_found(f"Instance group {group_id} could not be found.")
    return group
