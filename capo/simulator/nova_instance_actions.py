"""Nova: what was asked of a server, by whom, and whether it came off."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Cloud
from capo.simulator.nova import require, service
from capo.simulator.nova_state import find, long_time_of
from capo.simulator.routing import Json, Request, Response

SHOWN: Final = {"os-start": "start", "os-stop": "stop", "reboot": "reboot", "lock": "lock", "unlock": "unlock"}
"""What Nova calls the actions that it notes, by their name in the request."""


def begin(request: Request, server: Json, action: str) -> None:
    """Note that something was asked of a server."""
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
    """Note that what was asked last did not come off."""
    for action in server.get("_actions", [])[-1:]:
        action |= {"message": "Error", "updated_at": long_time_of(cloud)}


@service.route("GET", "/v2.1/servers/{server_id}/os-instance-actions")
async def list_actions(request: Request) -> Response:
    require(request, 58)
    server = find(request)
    actions = [{**action, "instance_uuid": server["id"]} for action in reversed(server.get("_actions", []))]
    return Response(200, {"instanceActions": actions})
