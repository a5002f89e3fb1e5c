"""Cinder v3: the routes of volumes, their metadata and their actions."""

from __future__ import annotations

import ast
import json
import uuid
from collections.abc import Callable
from typing import Any, Final

from multidict import MultiMapping

from capo.simulator import collation
from capo.simulator.cinder import state
from capo.simulator.cinder.service import not_allowed, route
from capo.simulator.cinder.state import WantedVolume, volumes
from capo.simulator.cloud import Json, public
from capo.simulator.error_page import empty
from capo.simulator.paging import after_marker
from capo.simulator.routing import INTERNAL, Fault, Request, Response
from capo.simulator.validation import YES_AND_NO, check_body

METADATA: Final[Json] = {
    "type": ["object", "null"],
    "patternProperties": {"^[a-zA-Z0-9-_:. /]{1,255}$": {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
}
SIZE: Final[Json] = {
    "type": ["integer", "string"],
    "pattern": "^[0-9]+$",
    "minLength": 1,
    "minimum": 1,
    "maximum": 0x7FFFFFFF,
}
TEXT: Final[Json] = {"type": ["string", "null"]}
CREATE: Final[Json] = {
    "type": "object",
    "properties": {
        "volume": {
            "type": "object",
            "properties": {
                "name": TEXT,
                "description": TEXT,
                "metadata": METADATA,
                "size": {**SIZE, "type": ["integer", "string", "null"]},
                "availability_zone": {**TEXT, "minLength": 1},
                "volume_type": TEXT,
                "imageRef": TEXT,
                "snapshot_id": TEXT,
                "source_volid": TEXT,
                "multiattach": {},
            },
            "additionalProperties": True,
        },
        "OS-SCH-HNT:scheduler_hints": {"type": ["object", "null"]},
    },
    "required": ["volume"],
    "additionalProperties": False,
}
METADATA_BODY: Final[Json] = {"type": "object", "properties": {"metadata": METADATA}, "required": ["metadata"]}
# Keys of a volume that microversions added.
ADDED: Final[tuple[tuple[tuple[int, int], str, Any], ...]] = (
    ((3, 13), "group_id", None),
    ((3, 48), "shared_targets", False),
    ((3, 65), "consumes_quota", True),
)
PAGING: Final = frozenset({"limit", "marker", "offset", "sort", "sort_key", "sort_dir", "all_tenants", "with_count"})
FILTERS: Final = frozenset(
    {
        "name",
        "status",
        "metadata",
        "bootable",
        "migration_status",
        "availability_zone",
        "group_id",
        "size",
    }
)
SORT_KEYS: Final = ("created_at", "id", "name", "size", "status", "availability_zone", "bootable", "updated_at")
MALFORMED: Final = "The server could not comply with the request since it is either malformed or otherwise incorrect."
STRICT_FILTERS_SINCE: Final = (3, 34)
GENERAL_FILTERS_SINCE: Final = (3, 2)


def _links(request: Request, volume_id: str) -> list[Json]:
    root, project = request.service_url, request.project_id
    return [
        {"rel": "self", "href": f"{root}/v3/{project}/volumes/{volume_id}"},
        {"rel": "bookmark", "href": f"{root}/{project}/volumes/{volume_id}"},
    ]


def _view(request: Request, volume: Json, *, hidden: tuple[str, ...] = ()) -> Json:
    shown = {key: value for key, value in public(volume).items() if key not in hidden}
    shown["links"] = _links(request, volume["id"])
    for since, key, value in ADDED:
        if request.microversion >= since:
            shown[key] = value
    if request.microversion >= (3, 48):
        shown["service_uuid"] = str(uuid.uuid5(uuid.NAMESPACE_DNS, volume["availability_zone"]))
    if request.microversion >= (3, 63):
        kind = state.find_type(request.cloud, volume["volume_type"])
        shown["volume_type_id"] = kind["id"] if kind else None
    if request.is_admin and not hidden:
        zone = volume["availability_zone"]
        shown["migration_status"] = None
        shown["os-vol-host-attr:host"] = f"lab@{zone}#{zone}"
        shown["os-vol-mig-status-attr:migstat"] = None
        shown["os-vol-mig-status-attr:name_id"] = None
    return shown


def _volume(request: Request) -> Json:
    volume_id = request.match["id"]
    volume = volumes(request.cloud).get(volume_id)
    if volume is None or not (request.is_admin or volume["os-vol-tenant-attr:tenant_id"] == request.project_id):
        raise _no_volume(volume_id)
    return volume


@route("POST", "/volumes")
async def create_volume(request: Request) -> Response:
    if not request.raw:
        raise Fault(500, "no body", INTERNAL)
    body = request.json
    check_body(CREATE, body)
    wanted = body["volume"]
    for key in ("name", "description"):
        if len(wanted.get(key) or "") > 255:
            message = f"Invalid input received: {key} has {len(wanted[key])} characters, more than 255."
            raise Fault(400, message, "badRequest")
    _refuse_other_sources(wanted)
    volume = state.create_volume(
        request.cloud,
        WantedVolume(
            project_id=request.project_id,
            user_id=request.user_id,
            size_gib=int(wanted["size"]),
            name=wanted.get("name"),
            description=wanted.get("description"),
            type_name=wanted.get("volume_type"),
            zone=wanted.get("availability_zone"),
            image_id=wanted.get("imageRef"),
            metadata=wanted.get("metadata") or {},
            is_multiattach=bool(wanted.get("multiattach")),
        ),
    )
    shown = _view(request, volume, hidden=("os-vol-tenant-attr:tenant_id", "volume_image_metadata"))
    shown["created_at"] = f"{request.cloud.now():%Y-%m-%dT%H:%M:%S.%f}"
    return Response(202, {"volume": shown})


def _refuse_other_sources(wanted: Json) -> None:
    """Refuse snapshots, as none exist, and volumes, as they are not cloned."""
    if wanted.get("snapshot_id"):
        raise Fault(404, f"Snapshot {wanted['snapshot_id']} could not be found.", "itemNotFound")
    if wanted.get("source_volid"):
        raise _no_volume(wanted["source_volid"])
    if wanted.get("size") is None:
        raise Fault(400, MALFORMED, "badRequest")


@route("GET", "/volumes")
async def list_volumes(request: Request) -> Response:
    def brief(volume: Json) -> Json:
        return {"id": volume["id"], "name": volume["name"], "links": _links(request, volume["id"])}

    return _list(request, brief, "volumes")


@route("GET", "/volumes/detail")
async def list_volumes_detail(request: Request) -> Response:
    return _list(request, lambda volume: _view(request, volume), "volumes/detail")


def _list(request: Request, view: Callable[[Json], Json], path: str) -> Response:
    query = request.query
    filters = {key: query.getall(key)[-1] for key in query if key not in PAGING}
    if request.microversion >= GENERAL_FILTERS_SINCE and filters.get("bootable", "true").lower() not in YES_AND_NO:
        raise Fault(400, f"Invalid input received: 'bootable = {filters['bootable']}'", "badRequest")
    unknown = sorted(set(filters) - FILTERS)
    if unknown and request.microversion >= STRICT_FILTERS_SINCE:
        raise Fault(400, f"Invalid filters {', '.join(unknown)} are found in query options.", "badRequest")
    _literal(filters.get("metadata", ""))
    everyone = request.is_admin and query.get("all_tenants", "0").lower() in {"1", "true"}
    mine = [
        volume
        for volume in volumes(request.cloud).values()
        if everyone or volume["os-vol-tenant-attr:tenant_id"] == request.project_id
    ]
    found = [volume for volume in mine if _fits(volume, filters)]
    limit, offset = _limit(request), _offset(request)
    page = after_marker(_sorted(found, request), query.get("marker"), _no_volume)[offset:][:limit]
    body: Json = {"volumes": [view(volume) for volume in page]}
    if page and len(page) == limit:
        rest = "&".join(f"{key}={value}" for key, value in query.items() if key != "marker")
        href = f"{request.service_url}/v3/{request.project_id}/{path}?{rest}&marker={page[-1]['id']}"
        body["volumes_links"] = [{"rel": "next", "href": href}]
    if request.microversion >= (3, 45) and query.get("with_count", "").lower() == "true":
        body["count"] = len(found)
    return Response(200, body)


def _limit(request: Request) -> int:
    most = request.cloud.config.max_limit
    text = request.query.get("limit", str(most))
    try:
        limit = int(text)
    except ValueError as error:
        raise Fault(400, "limit param must be an integer", "badRequest") from error
    if limit < 0:
        raise Fault(400, "limit param must be positive", "badRequest")
    return min(limit, most)


def _offset(request: Request) -> int:
    text = request.query.get("offset", "0")
    try:
        offset = int(text)
    except ValueError as error:
        raise Fault(400, "offset must be an integer", "badRequest") from error
    if offset < 0:
        raise Fault(400, "offset must be >= 0", "badRequest")
    return offset


def _fits(volume: Json, filters: dict[str, str]) -> bool:
    for key, want in filters.items():
        if key not in FILTERS:
            continue
        if key == "metadata":
            wanted = _literal(want)
            if not isinstance(wanted, dict) or not wanted.items() <= volume["metadata"].items():
                return False
        elif not collation.same(str(volume.get(key)), want):
            return False
    return True


def _literal(text: str) -> object:
    """Parse a filter's value, which may be JSON or Python."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    except TypeError as error:
        raise Fault(400, MALFORMED, "badRequest") from error


def _sorted(found: list[Json], request: Request) -> list[Json]:
    ordered = list(reversed(found))
    for key, direction in reversed(_order(request)):
        if key not in SORT_KEYS:
            raise Fault(400, "Invalid input received: Invalid sort key", "badRequest")
        if direction not in {"", "asc", "desc"}:
            message = "Invalid input received: Unknown sort direction, must be 'desc' or 'asc'."
            raise Fault(400, message, "badRequest")
        ordered.sort(key=lambda volume, key=key: (volume[key] is not None, volume[key]), reverse=direction != "asc")  # type: ignore[misc]
    return ordered


def _order(request: Request) -> list[tuple[str, str]]:
    """Return keys to sort by with their directions, in the new syntax or the old one."""
    query = request.query
    if "sort" not in query:
        return [(query.get("sort_key", "created_at"), query.get("sort_dir", ""))]
    if "sort_key" in query or "sort_dir" in query:
        message = (
            "The 'sort_key' and 'sort_dir' parameters are deprecated and cannot be used with the 'sort' parameter."
        )
        raise Fault(400, message, "badRequest")
    parts = (part.partition(":") for part in query["sort"].split(","))
    return [(key, direction) for key, _, direction in parts]


def _no_volume(volume_id: str) -> Fault:
    return Fault(404, f"Volume {volume_id} could not be found.", "itemNotFound")


@route("GET", "/volumes/{id}")
async def get_volume(request: Request) -> Response:
    return Response(200, {"volume": _view(request, _volume(request))})


@route("PUT", "/volumes/{id}")
async def put_volume(request: Request) -> Response:
    volume = _volume(request)
    wanted = request.json.get("volume", {})
    check_body(METADATA_BODY, {"metadata": wanted.get("metadata", {})})
    changes = {key: wanted[key] for key in ("name", "description", "metadata") if key in wanted}
    state.touch(request.cloud, volume, **changes)
    hidden = ("os-vol-tenant-attr:tenant_id",)
    return Response(200, {"volume": _view(request, volume, hidden=hidden)})


@route("DELETE", "/volumes/{id}")
async def delete_volume(request: Request) -> Response:
    cascade = request.query.get("cascade", "false")
    if cascade.lower() not in YES_AND_NO:
        raise Fault(400, f"Value '{cascade}' for 'cascade' is not a boolean.", "badRequest")
    state.delete_volume(request.cloud, _volume(request))
    return empty(202)


@route("GET", "/volumes/{id}/metadata")
async def get_metadata(request: Request) -> Response:
    return Response(200, {"metadata": _volume(request)["metadata"]})


@route("POST", "/volumes/{id}/metadata")
async def add_metadata(request: Request) -> Response:
    volume, body = _volume(request), request.json
    check_body(METADATA_BODY, body)
    volume["metadata"] |= body["metadata"]
    return Response(200, {"metadata": body["metadata"]})


@route("PUT", "/volumes/{id}/metadata")
async def set_metadata(request: Request) -> Response:
    volume, body = _volume(request), request.json
    check_body(METADATA_BODY, body)
    volume["metadata"] = body["metadata"]
    return Response(200, {"metadata": body["metadata"]})


@route("DELETE", "/volumes/{id}/metadata/{key}")
async def delete_metadata(request: Request) -> Response:
    volume, key = _volume(request), request.match["key"]
    if key not in volume["metadata"]:
        message = f"Volume {volume['id']} has no metadata with key {key}."
        raise Fault(404, message, "itemNotFound")
    del volume["metadata"][key]
    return empty(200)


@route("POST", "/volumes/{id}/action")
async def act(request: Request) -> Response:
    volume, body = _volume(request), request.json
    action = next(iter(body), "")
    match action:
        case "os-reset_status":
            if not request.is_admin:
                raise not_allowed("volume_extension:volume_admin_actions:reset_status")
            state.touch(request.cloud, volume, status=body[action]["status"])
        case "os-force_delete":
            if not request.is_admin:
                raise not_allowed("volume_extension:volume_admin_actions:force_delete")
            state.touch(request.cloud, volume, status="error", attachments=[])
            state.delete_volume(request.cloud, volume)
        case "os-extend":
            _extend(request, volume, int(body[action]["new_size"]))
        case _:
            message = (
                f"There is no such action: {action}. Verify the request body and Content-Type header and try again."
            )
            raise Fault(400, message, "badRequest")
    return empty(202, "application/json")


def _extend(request: Request, volume: Json, size_gib: int) -> None:
    if volume["status"] != "available":
        message = (
            f"Invalid volume: Volume {volume['id']} status must be '{{'status': 'available'}}' to extend, "
            f"currently {volume['status']}."
        )
        raise Fault(400, message, "badRequest")
    if size_gib <= volume["size"]:
        message = (
            "Invalid input received: New size for extend must be greater than current size. "
            f"(current: {volume['size']}, extended: {size_gib})."
        )
        raise Fault(400, message, "badRequest")
    state.touch(request.cloud, volume, size=size_gib)


@route("GET", "/snapshots")
async def list_snapshots(request: Request) -> Response:
    return Response(200, {"snapshots": []})


@route("GET", "/attachments")
async def list_attachments(request: Request) -> Response:
    _require_attachments(request)
    found = [entry for entry in _attachments(request) if _is_wanted(entry, request.query)]
    sort_key = request.query.get("sort_key")
    if sort_key is not None and sort_key not in {"created_at", "id", "updated_at"}:
        raise Fault(400, "Invalid input received: Invalid sort key", "badRequest")
    limit = _limit(request)
    page = after_marker(found, request.query.get("marker"), _no_attachment)[:limit]
    return Response(200, {"attachments": page})


def _is_wanted(attachment: Json, query: MultiMapping[str]) -> bool:
    """Return whether an attachment matches; the states are not compared with what is shown, so none matches."""
    if "status" in query or "attach_status" in query:
        return False
    pairs = (("volume_id", "volume_id"), ("instance_id", "instance"))
    return all(collation.same(str(attachment[key]), query[name]) for name, key in pairs if name in query)


def _no_attachment(attachment_id: str) -> Fault:
    message = f"Volume attachment could not be found with filter: attachment_id = {attachment_id}."
    return Fault(404, message, "itemNotFound")


@route("GET", "/attachments/{id}")
async def get_attachment(request: Request) -> Response:
    found = _attachment(request)
    entries = [
        e for e in volumes(request.cloud)[found["volume_id"]]["attachments"] if e["attachment_id"] == found["id"]
    ]
    times = {"attached_at": entries[0]["attached_at"] if entries else "", "detached_at": ""}
    connection = _connection(found) if entries else {}
    mode = "rw" if entries else "null"
    return Response(200, {"attachment": {**found, **times, "attach_mode": mode, "connection_info": connection}})


def _connection(attachment: Json) -> Json:
    return {
        "access_mode": "rw",
        "attachment_id": attachment["id"],
        "cacheable": False,
        "driver_volume_type": "local",
        "encrypted": False,
        "enforce_multipath": False,
        "qos_specs": None,
        "volume_id": attachment["volume_id"],
    }


@route("DELETE", "/attachments/{id}")
async def delete_attachment(request: Request) -> Response:
    found = _attachment(request)
    if found["status"] == "attached":
        message = f"ConflictNovaUsingAttachment: Detach volume from instance {found['instance']} using the Compute API"
        raise Fault(409, message, "conflictingRequest")
    state.release(request.cloud, found["volume_id"], server_id="")
    return Response(200, {"attachments": []})


def _require_attachments(request: Request) -> None:
    if request.microversion < (3, 27):
        raise Fault(404, "The resource could not be found.", "itemNotFound")


def _attachment(request: Request) -> Json:
    _require_attachments(request)
    wanted = request.match["id"]
    found = next((entry for entry in _attachments(request) if entry["id"] == wanted), None)
    if found is None:
        raise _no_attachment(wanted)
    return found


def _attachments(request: Request) -> list[Json]:
    """Return the project's attachments, including reservations, whose id is derived from the volume's."""
    own = [v for v in volumes(request.cloud).values() if v["os-vol-tenant-attr:tenant_id"] == request.project_id]
    attached = [
        {"status": "attached", "instance": entry["server_id"], "id": entry["attachment_id"], "volume_id": volume["id"]}
        for volume in own
        for entry in volume["attachments"]
    ]
    reserved = [
        {"status": "reserved", "instance": "", "id": str(uuid.uuid5(uuid.NAMESPACE_OID, v["id"])), "volume_id": v["id"]}
        for v in own
        if v["status"] == "reserved"
    ]
    return attached + reserved
