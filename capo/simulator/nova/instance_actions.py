"""Nova: the log of actions on a server: what, by which user, and whether it succeeded."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.nova.service import bad_request, limit_of, next_links, require, service, since
from capo.simulator.nova.state import find, long_time_of
from capo.simulator.paging import after_marker
from capo.simulator.routing import Fault, Request, Response
from capo.simulator.validation import check_query, many

SHOWN: Final = {"os-start": "start", "os-stop": "stop", "reboot": "reboot", "lock": "lock", "unlock": "unlock"}
"""Nova's names of the logged actions, by their name in the request."""


def begin(request: Request, server: Json, action: str) -> None:
    """Record an action on a server."""
    server.setdefault("_actions", []).append(
        {
            "action": action,
            "message": None,
            "project_id": request.project_id,
            "request_id": request.request_id,
            "start_time": long_time_of(request.cloud),
            "updated_at": long_time_of(request.cloud),
            "user_id": request.user_id,
        }
    )


def failed(cloud: Cloud, server: Json) -> None:
    """Record that the last action failed."""
    for action in server.get("_actions", [])[-1:]:
        action |= {"message": "Error", "updated_at": long_time_of(cloud)}


@service.route("GET", "/v2.1/servers/{server_id}/os-instance-actions")
async def list_actions(request: Request) -> Response:
    require(request, 58)
    check_query(_query(request), request.query)
    server, query = find(request), request.query
    actions = [
        {**action, "instance_uuid": server["id"]}
        for action in reversed(server.get("_actions", []))
        if query.get("changes-since", "") <= action["updated_at"] <= query.get("changes-before", "9")
    ]
    page = after_marker(actions, query.get("marker"), _unknown_marker, key="request_id")[: limit_of(request)]
    body: Json = {"instanceActions": page}
    if links := next_links(request, page, key="request_id"):
        body["links"] = links
    return Response(200, body)


def _unknown_marker(_: str) -> Fault:
    return bad_request("Marker None could not be found.")


def _query(request: Request) -> Json:
    number = many({"type": "string", "pattern": "^[0-9]*$", "minLength": 1})
    time = many({"type": "string", "format": "date-time"})
    properties: Json = {"limit": number, "marker": many({"type": "string"}), "changes-since": time}
    if since(request, 66):
        properties["changes-before"] = time
    return {"type": "object", "properties": properties, "additionalProperties": False}
