"""Nova: actions on servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from capo.simulator.cloud import Json
from capo.simulator.error_page import empty
from capo.simulator.nova import build, instance_actions
from capo.simulator.nova.schema import body_of
from capo.simulator.nova.service import bad_request, conflict, not_allowed, service
from capo.simulator.nova.state import VM_STATES, find_mapped, touch
from capo.simulator.routing import Request, Response
from capo.simulator.validation import check_body

REBOOT: Final[Json] = body_of(
    "reboot",
    {"type": {"type": "string", "enum": ["HARD", "Hard", "hard", "SOFT", "Soft", "soft"]}},
    ("type",),
)
CONSOLE: Final = "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE"


@service.route("POST", "/v2.1/servers/{server_id}/action")
async def act(request: Request) -> Response:
    body = request.json
    if len(body) != 1:
        raise bad_request("Malformed request body")
    name = next(iter(body))
    if name not in ACTIONS:
        raise bad_request(f"There is no such action: {name}")
    answer = ACTIONS[name](request, body[name])
    if name in instance_actions.SHOWN:
        instance_actions.begin(request, find_mapped(request), instance_actions.SHOWN[name])
    return answer


def _settled(request: Request, verb: str, *states: str) -> Json:
    """Return the server, which must be in one of the states, without a running task.

    Raises:
        Fault: 409.
    """
    server = find_mapped(request)
    if server["host"] is None:
        raise conflict(f"Instance {server['id']} is not ready")
    state = VM_STATES[server["status"]]
    if state not in states:
        raise conflict(f"Cannot '{verb}' instance {server['id']} while it is in vm_state {state}")
    if server["task_state"] is not None:
        raise conflict(f"Cannot '{verb}' instance {server['id']} while it is in task_state {server['task_state']}")
    return server


def _start(request: Request, _: Any) -> Response:
    server = _settled(request, "start", "stopped")
    build.power(request.cloud, server, task="powering-on", status="ACTIVE")
    return empty(202, "application/json")


def _stop(request: Request, _: Any) -> Response:
    server = _settled(request, "stop", "active", "error")
    build.power(request.cloud, server, task="powering-off", status="SHUTOFF")
    return empty(202, "application/json")


def _reboot(request: Request, wanted: Any) -> Response:
    check_body(REBOOT, {"reboot": wanted})
    is_hard = wanted["type"].upper() == "HARD"
    server = _settled(request, "reboot", *(("active", "stopped", "error") if is_hard else ("active",)))
    build.power(request.cloud, server, task="rebooting_hard" if is_hard else "rebooting", status="ACTIVE")
    server["status"] = "HARD_REBOOT" if is_hard else "REBOOT"
    return empty(202, "application/json")


def _console(request: Request, _: Any) -> Response:
    find_mapped(request)
    return Response(200, {"output": CONSOLE})


def _reset_state(request: Request, wanted: Any) -> Response:
    if not request.is_admin:
        raise not_allowed("os_compute_api:os-admin-actions:reset_state")
    status = {"active": "ACTIVE", "error": "ERROR"}[wanted["state"]]
    touch(request.cloud, find_mapped(request), status=status, task_state=None)
    return empty(202, "application/json")


def _lock(request: Request, wanted: Any) -> Response:
    reason = wanted.get("locked_reason") if isinstance(wanted, dict) else None
    touch(request.cloud, find_mapped(request), locked=True, locked_reason=reason)
    return empty(202, "application/json")


def _unlock(request: Request, _: Any) -> Response:
    touch(request.cloud, find_mapped(request), locked=False, locked_reason=None)
    return empty(202, "application/json")


def _force_delete(request: Request, _: Any) -> Response:
    build.delete(request.cloud, find_mapped(request))
    return empty(202, "application/json")


ACTIONS: Final[dict[str, Callable[[Request, Any], Response]]] = {
    "os-start": _start,
    "os-stop": _stop,
    "reboot": _reboot,
    "os-getConsoleOutput": _console,
    "os-resetState": _reset_state,
    "lock": _lock,
    "unlock": _unlock,
    "forceDelete": _force_delete,
}
