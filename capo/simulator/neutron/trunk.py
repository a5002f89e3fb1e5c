"""Trunks and their subports."""

from __future__ import annotations

from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks, port
from capo.simulator.neutron.checks import Invalid
from capo.simulator.neutron.kind import REQUIRED, Attribute, Caller, Kind, new, own, touch
from capo.simulator.neutron.service import broken, invalid_input, service
from capo.simulator.routing import Fault, Request, Response

NO_PORT: Final = "A valid port UUID must be specified"


def missing(trunk_id: str) -> Fault:
    return Fault(404, f"Trunk {trunk_id} could not be found.", "TrunkNotFound")


def _sub_ports(value: Any) -> list[Json]:
    if not isinstance(value, list):
        raise Invalid(f"Invalid data format for subports: '{value}'")
    for entry in value:
        if not isinstance(entry, dict) or not checks.is_uuid(entry.get("port_id")):
            raise Invalid(NO_PORT)
    return value


def create(cloud: Cloud, values: Json, caller: Caller) -> Json:
    parent = port.KIND.find(cloud, values["port_id"], caller)
    trunks = KIND.table(cloud).values()
    if any(trunk["port_id"] == parent["id"] for trunk in trunks):
        raise _parent_in_use(parent["id"])
    if _is_subport(cloud, parent["id"]):
        raise _port_in_use(parent["id"])
    if any(entry["port_id"] == parent["id"] for entry in values["sub_ports"]):
        raise _parent_in_use(parent["id"])
    trunk = new(cloud, {**values, "status": "ACTIVE", "sub_ports": []})
    trunk["sub_ports"] = _checked(cloud, trunk, values["sub_ports"], caller)
    KIND.table(cloud)[trunk["id"]] = trunk
    return trunk


def _parent_in_use(port_id: str) -> Fault:
    message = f"Port {port_id} is currently in use and is not eligible for use as a parent port."
    return Fault(409, message, "ParentPortInUse")


def _port_in_use(port_id: str) -> Fault:
    return Fault(409, f"Port {port_id} is in use by another trunk.", "TrunkPortInUse")


def _is_subport(cloud: Cloud, port_id: str) -> bool:
    return any(entry["port_id"] == port_id for trunk in KIND.table(cloud).values() for entry in trunk["sub_ports"])


def _checked(cloud: Cloud, trunk: Json, wanted: list[Json], caller: Caller) -> list[Json]:
    """Return subports as they are stored; refuse what Neutron refuses."""
    used = {(entry["segmentation_type"], entry["segmentation_id"]) for entry in trunk["sub_ports"]}
    asked: set[int] = set()
    found: list[Json] = []
    for entry in wanted:
        _check_segmentation(entry)
        if entry["segmentation_id"] in asked:
            raise invalid_input(f"Segmentation ID '{entry['segmentation_id']}' for '{entry['port_id']}' is not unique.")
        asked.add(entry["segmentation_id"])
    for entry in wanted:
        port.KIND.find(cloud, entry["port_id"], caller)
        if entry["port_id"] == trunk["port_id"]:
            raise _parent_in_use(entry["port_id"])
        is_parent = any(other["port_id"] == entry["port_id"] for other in KIND.table(cloud).values())
        if is_parent or _is_subport(cloud, entry["port_id"]):
            raise _port_in_use(entry["port_id"])
        kind, number = entry["segmentation_type"], entry["segmentation_id"]
        if (kind, number) in used:
            message = f"segmentation_type {kind} and segmentation_id {number} already in use on trunk {trunk['id']}."
            raise Fault(409, message, "DuplicateSubPort")
        found.append({"port_id": entry["port_id"], "segmentation_type": kind, "segmentation_id": number})
    return found


def _check_segmentation(entry: Json) -> None:
    if "segmentation_type" not in entry or "segmentation_id" not in entry:
        raise invalid_input(
            f"Invalid subport details '{entry}': missing segmentation information. "
            "Must specify both segmentation_id and segmentation_type."
        )
    if entry["segmentation_type"] != "vlan":
        raise invalid_input(f"Unknown segmentation_type '{entry['segmentation_type']}'.")
    if not 1 <= checks.integer(entry["segmentation_id"]) <= 4094:
        raise invalid_input(f"Segmentation ID '{entry['segmentation_id']}' is not in range.")


def update(cloud: Cloud, trunk: Json, changes: Json, _: Caller) -> None:
    trunk.update(changes)
    touch(cloud, trunk)


def delete(cloud: Cloud, trunk: Json, _: Caller) -> None:
    _require_enabled(trunk)
    KIND.table(cloud).pop(trunk["id"])


def _require_enabled(trunk: Json) -> None:
    if not trunk["admin_state_up"]:
        raise Fault(409, f"Trunk {trunk['id']} is currently disabled.", "TrunkDisabled")


def view(_: Cloud, trunk: Json) -> Json:
    return trunk


def _asked(request: Request) -> tuple[Json, list[Json]]:
    trunk = KIND.find(request.cloud, request.match["id"], Caller.from_request(request))
    body = request.json
    if "sub_ports" not in body:
        raise broken()
    try:
        return trunk, _sub_ports(body["sub_ports"])
    except Invalid as error:
        raise invalid_input(f"{error}.") from error


@service.route("PUT", "/v2.0/trunks/{id}/add_subports")
async def add_subports(request: Request) -> Response:
    trunk, wanted = _asked(request)
    _require_enabled(trunk)
    added = _checked(request.cloud, trunk, wanted, Caller.from_request(request))
    if added:
        trunk["sub_ports"] += added
        trunk["status"] = "DOWN"
        touch(request.cloud, trunk)
    return Response(200, KIND.shown(request.cloud, trunk, Caller.from_request(request)))


@service.route("PUT", "/v2.0/trunks/{id}/remove_subports")
async def remove_subports(request: Request) -> Response:
    trunk, wanted = _asked(request)
    _require_enabled(trunk)
    for entry in wanted:
        kept = [item for item in trunk["sub_ports"] if item["port_id"] != entry["port_id"]]
        if len(kept) == len(trunk["sub_ports"]):
            message = f"SubPort {entry['port_id']} on trunk {trunk['id']} could not be found."
            raise Fault(404, message, "SubPortNotFound")
        trunk["sub_ports"] = kept
    trunk["status"] = "DOWN"
    touch(request.cloud, trunk)
    return Response(200, KIND.shown(request.cloud, trunk, Caller.from_request(request)))


@service.route("GET", "/v2.0/trunks/{id}/get_subports")
async def get_subports(request: Request) -> Response:
    trunk = KIND.find(request.cloud, request.match["id"], Caller.from_request(request))
    return Response(200, {"sub_ports": trunk["sub_ports"]})


KIND: Final = Kind(
    name="trunk",
    plural="trunks",
    path="trunks",
    attributes=(
        Attribute("name", "PUFS", checks.string(255), ""),
        Attribute("admin_state_up", "PUFS", checks.boolean, default=True),
        Attribute("port_id", "PFS", checks.uuid_text, REQUIRED),
        Attribute("status", "FS"),
        Attribute("sub_ports", "P", _sub_ports, []),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=own,
    is_owner=own,
)
