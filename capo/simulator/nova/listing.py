"""Nova: lists of servers with filters, order and pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from capo.simulator import collation
from capo.simulator.cloud import Json
from capo.simulator.nova import view as nova_view
from capo.simulator.nova.schema import list_servers, truth
from capo.simulator.nova.service import (
    bad_request,
    limit_of,
    next_links,
    not_allowed,
    service,
    since,
    unknown_marker,
)
from capo.simulator.nova.state import VM_STATES, is_mapped, notes, servers
from capo.simulator.paging import after_marker
from capo.simulator.routing import Fault, Request, Response
from capo.simulator.validation import YES_AND_NO, check_query

STATUSES: Final = frozenset({*VM_STATES, "PASSWORD", "REVERT_RESIZE"})
# Filters of a plain member by the microversion that added them; others are ignored.
MEMBER_FILTERS: Final = {
    1: {"reservation_id", "name", "image", "flavor", "ip", "changes-since"},
    5: {"ip6"},
    26: {"tags", "tags-any", "not-tags", "not-tags-any"},
    66: {"changes-before"},
    73: {"locked"},
    83: {
        "availability_zone",
        "config_drive",
        "key_name",
        "created_at",
        "launched_at",
        "terminated_at",
        "power_state",
        "task_state",
        "vm_state",
        "progress",
        "user_id",
    },
}
PAGING: Final = frozenset({"limit", "marker", "sort_key", "sort_dir", "all_tenants", "status", "deleted"})
# Filters compared for equality, and the field they are compared with.
EXACT: Final = {
    "image": "image_id",
    "image_ref": "image_id",
    "uuid": "id",
    "host": "host",
    "node": "host",
    "task_state": "task_state",
    "project_id": "project_id",
    "tenant_id": "project_id",
    "user_id": "user_id",
}
PATTERNS: Final = {
    "name": "name",
    "display_name": "name",
    "description": "description",
    "display_description": "description",
    "hostname": "hostname",
    "key_name": "key_name",
    "reservation_id": "reservation_id",
    "availability_zone": "availability_zone",
    "launched_at": "launched_at",
    "terminated_at": "terminated_at",
    "created_at": "created",
}
SORTED_BY: Final = {
    "display_name": "name",
    "uuid": "id",
    "updated_at": "updated",
    "launched_at": "launched_at",
    "terminated_at": "terminated_at",
    "task_state": "task_state",
    "vm_state": "status",
    "host": "host",
    "node": "host",
    "hostname": "hostname",
    "image_ref": "image_id",
    "key_name": "key_name",
    "user_id": "user_id",
    "project_id": "project_id",
    "availability_zone": "availability_zone",
    "display_description": "description",
}


# Filters with comparisons of their own.
SPECIAL: Final[dict[str, Callable[[Json, str], bool]]] = {
    "flavor": lambda server, value: bool(server["flavor"]["id"] == value),
    "vm_state": lambda server, value: VM_STATES[server["status"]] == value,
    "changes-since": lambda server, value: _time(server["updated"]) >= _time(value),
    "changes-before": lambda server, value: _time(server["updated"]) <= _time(value),
    "locked": lambda server, value: bool(server["locked"]) == truth(value),
    "config_drive": lambda server, value: bool(server["config_drive"]) and truth(value),
}


@service.route("GET", "/v2.1/servers")
async def list_brief(request: Request) -> Response:
    return _answer(request, nova_view.brief, "index")


@service.route("GET", "/v2.1/servers/detail")
async def list_detail(request: Request) -> Response:
    return _answer(request, nova_view.list_entry, "detail")


def _answer(request: Request, view: Callable[..., Json], rule: str) -> Response:
    query = request.query
    check_query(list_servers(request.microversion), query)
    _check_times(request)
    _check_admin_words(request)
    everyone = truth(query.get("all_tenants", "0")) or query.get("all_tenants") == ""
    if everyone and not request.is_admin:
        raise not_allowed(f"os_compute_api:servers:{rule}:get_all_tenants")
    found = _sorted(_found(request, everyone=everyone), request)
    page = after_marker(found, query.get("marker") or None, unknown_marker)[: limit_of(request)]
    is_down = notes(request.cloud).is_cell_down
    if is_down and not _tolerates_down_cell(request):
        page = [server for server in page if not is_mapped(server)]
        is_down = False
    body: Json = {"servers": [view(request, server, is_down=is_down) for server in page]}
    if following := next_links(request, page):
        body["servers_links"] = following
    return Response(200, body)


def _check_times(request: Request) -> None:
    query = request.query
    if not since(request, 66) or "changes-since" not in query or "changes-before" not in query:
        return
    if _time(query["changes-since"]) > _time(query["changes-before"]):
        raise bad_request("The value of changes-since must be less than or equal to changes-before.")


def _check_admin_words(request: Request) -> None:
    """Refuse invalid booleans, and sorting by hosts for plain members."""
    asked = request.query.get("all_tenants", "")
    if asked and asked.lower() not in YES_AND_NO:
        known = ", ".join(f"'{word}'" for word in YES_AND_NO)
        raise bad_request(f"Unrecognized value '{asked}', acceptable values are: {known}")
    hosts = [key for key in request.query.getall("sort_key", []) if key in {"host", "node"}]
    if hosts and not request.is_admin:
        raise Fault(403, f"Only administrators can sort servers by {hosts[0]}", "forbidden")


def _tolerates_down_cell(request: Request) -> bool:
    """Return whether servers of a down cell are shown in part; with filters, order and pages they are omitted."""
    return since(request, 69) and set(request.query) <= {"all_tenants"}


def _found(request: Request, *, everyone: bool) -> list[Json]:
    query, cloud = request.query, request.cloud
    filters = _filters(request)
    wants_deleted = "changes-since" in filters or "changes-before" in filters
    states = _states(request)
    if states == {"DELETED"} or (request.is_admin and truth(query.get("deleted", "false"))):
        pool = list(notes(cloud).deleted.values())
    else:
        pool = list(servers(cloud).values()) + (list(notes(cloud).deleted.values()) if wants_deleted else [])
    if not everyone:
        pool = [server for server in pool if server["project_id"] == request.project_id]
        filters = {key: value for key, value in filters.items() if key not in {"project_id", "tenant_id"}}
    return [
        server
        for server in pool
        if (states is None or server["status"] in states)
        and all(_fits(request, server, key, values) for key, values in filters.items())
    ]


def _filters(request: Request) -> dict[str, list[str]]:
    """Return the active filters; a plain member's others are ignored, as Nova does."""
    known = {key for minor, keys in MEMBER_FILTERS.items() if since(request, minor) for key in keys}
    return {
        key: request.query.getall(key)
        for key in request.query
        if key not in PAGING and (request.is_admin or key in known)
    }


def _states(request: Request) -> set[str] | None:
    if "status" not in request.query:
        return None
    wanted = {status.upper() for status in request.query.getall("status")}
    states = wanted & STATUSES
    if not states:
        if since(request, 38):
            raise bad_request("Invalid status value")
        return set()
    if states == {"DELETED"} and not request.is_admin:
        raise Fault(403, "Only administrators may list deleted instances", "forbidden")
    return states


def _fits(request: Request, server: Json, key: str, values: list[str]) -> bool:
    value = values[-1]
    if key in EXACT:
        return str(server[EXACT[key]]) == value
    if key in PATTERNS:
        return _matches(server[PATTERNS[key]], value)
    if key in {"tags", "tags-any", "not-tags", "not-tags-any"}:
        return _fits_tags(server["tags"], key, value.split(","))
    if key in {"ip", "ip6"}:
        return _fits_address(request, server, key, value)
    return SPECIAL[key](server, value) if key in SPECIAL else True


def _matches(have: Any, pattern: str) -> bool:
    """Search as MariaDB does: anywhere in the text, case-insensitively."""
    return have is not None and re.search(pattern, str(have), re.IGNORECASE) is not None


def _fits_tags(have: list[str], key: str, wanted: list[str]) -> bool:
    found = [any(collation.same(tag, one) for tag in have) for one in wanted]
    all_there, any_there = all(found), any(found)
    return {"tags": all_there, "tags-any": any_there, "not-tags": not all_there, "not-tags-any": not any_there}[key]


def _fits_address(request: Request, server: Json, key: str, pattern: str) -> bool:
    version = 4 if key == "ip" else 6
    entries = [entry for network in nova_view.addresses(request.cloud, server).values() for entry in network]
    return any(entry["version"] == version and re.match(pattern, entry["addr"]) for entry in entries)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text.replace(" ", "+"))
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _sorted(found: list[Json], request: Request) -> list[Json]:
    """Return servers in the requested order; by default the newest first."""
    found = sorted(found, key=lambda server: int(server["_number"]), reverse=True)
    keys = request.query.getall("sort_key", [])
    directions = request.query.getall("sort_dir", [])
    if set(directions) - {"asc", "desc"}:
        raise bad_request("Invalid input received: Unknown sort direction, must be 'desc' or 'asc'")
    for index, key in reversed(list(enumerate(keys))):
        direction = directions[min(index, len(directions) - 1)] if directions else "desc"
        field = "_number" if key == "created_at" else SORTED_BY.get(key)
        if field is not None:
            found.sort(key=lambda s: (s[field] is not None, s[field]), reverse=direction != "asc")
    return found
