"""Cinder v3: versions, volume types, zones, limits and quotas. Volumes themselves are in `volumes`.

Paths are accepted with and without the project's id, as in Cinder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from multidict import CIMultiDict

from capo.simulator.cinder import state
from capo.simulator.cloud import Cloud, Json, public
from capo.simulator.error_page import FAULT_NAMES, NOT_FOUND, empty, error_page, redirect_to_slash
from capo.simulator.routing import (
    METHOD_NOT_ALLOWED,
    MICROVERSION,
    ROUTE_NOT_FOUND,
    Fault,
    Handler,
    Microversions,
    Request,
    Response,
    Service,
)

SERVER_ERROR: Final = "The server has either erred or is incapable of performing the requested operation."
# Limits of Cinder besides those of volumes, with their defaults.
DEFAULT_LIMITS: Final = {
    "volumes": -1,
    "per_volume_gigabytes": -1,
    "snapshots": -1,
    "gigabytes": -1,
    "backups": 10,
    "backup_gigabytes": 1000,
    "groups": 10,
}


def render_fault(fault: Fault, request: Request) -> Response:
    if fault.kind in {ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED}:
        request.microversion = (0, 0)  # an unknown path is answered before versions are checked
        return error_page(request, 404, NOT_FOUND)
    message = SERVER_ERROR if fault.status == 500 else fault.message
    body: Json = {"code": fault.status, "message": message}
    headers = dict(fault.headers)
    if fault.status == 413:
        body["retryAfter"] = headers["Retry-After"] = "0"
    if fault.kind == MICROVERSION and fault.status == 406:
        headers["OpenStack-API-Version"] = request.headers["OpenStack-API-Version"]
        headers["Vary"] = "OpenStack-API-Version"
    return Response(fault.status, {FAULT_NAMES.get(fault.status, "computeFault"): body}, headers)


def decorate(request: Request, headers: CIMultiDict[str]) -> None:
    headers["x-openstack-request-id"] = request.request_id
    headers["x-compute-request-id"] = request.request_id
    if request.microversion != (0, 0):
        headers["OpenStack-API-Version"] = "volume {}.{}".format(*request.microversion)
        headers["Vary"] = "OpenStack-API-Version"


service: Final = Service(
    name="volume",
    prefix="/volume",
    microversions=Microversions("volume", (3, 0), (3, 71)),
    render_fault=render_fault,
    decorate=decorate,
)


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Register a handler for a path below the project, which may be omitted from the URL."""

    def register(handler: Handler) -> Handler:
        async def of_project(request: Request) -> Response:
            if request.match["project_id"] != request.project_id:
                raise Fault(400, "Malformed request url", "badRequest")
            return await handler(request)

        service.route(method, f"/v3{path}")(handler)
        service.route(method, f"/v3/{{project_id}}{path}")(of_project)
        return handler

    return register


def not_allowed(rule: str) -> Fault:
    """Return the refusal by a policy."""
    return Fault(403, f"Policy doesn't allow {rule} to be performed.", "forbidden")


@service.seed
def seed(cloud: Cloud) -> None:
    """Create the volume types of a new cloud."""
    for name, description in (("ssd", None), (state.DEFAULT_TYPE, "Default Volume Type")):
        type_id = cloud.new_id()
        cloud.table("volume", "types")[type_id] = {
            "id": type_id,
            "name": name,
            "is_public": True,
            "description": description,
            "extra_specs": {},
            "os-volume-type-access:is_public": True,
        }


def _version_document(request: Request, status: int) -> Response:
    version = {
        "id": "v3.0",
        "status": "CURRENT",
        "version": "3.71",
        "min_version": "3.0",
        "updated": "2023-08-31T00:00:00Z",
        "links": [
            {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"},
            {"rel": "self", "href": f"{request.service_url}/v3/"},
        ],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
    }
    return Response(status, {"versions": [version]})


@service.route("GET", "/", public=True)
async def get_versions(request: Request) -> Response:
    return _version_document(request, 300)


@service.route("GET", "/v3", public=True)
async def get_version(request: Request) -> Response:
    return _version_document(request, 200) if request.path.endswith("/") else redirect_to_slash(request)


@route("GET", "/types")
async def list_types(request: Request) -> Response:
    types = [public(kind) for kind in request.cloud.table("volume", "types").values()]
    return Response(200, {"volume_types": types})


@route("GET", "/types/{id}")
async def get_type(request: Request) -> Response:
    type_id = request.match["id"]
    types = request.cloud.table("volume", "types")
    kind = state.find_type(request.cloud, state.DEFAULT_TYPE) if type_id == "default" else None
    kind = kind or types.get(type_id)
    if kind is None:
        raise Fault(404, f"Volume type {type_id} could not be found.", "itemNotFound")
    shown = public(kind)
    if type_id == "default":
        del shown["os-volume-type-access:is_public"]
    return Response(200, {"volume_type": shown})


@route("GET", "/os-availability-zone")
async def list_zones(request: Request) -> Response:
    zones = [{"zoneName": zone, "zoneState": {"available": True}} for zone in request.cloud.config.zones]
    return Response(200, {"availabilityZoneInfo": zones})


@route("GET", "/limits")
async def get_limits(request: Request) -> Response:
    limits = _limits(request.cloud, request.project_id)
    used = state.usage(request.cloud, request.project_id)
    absolute = {
        "maxTotalVolumes": limits["volumes"],
        "maxTotalSnapshots": limits["snapshots"],
        "maxTotalVolumeGigabytes": limits["gigabytes"],
        "maxTotalBackups": limits["backups"],
        "maxTotalBackupGigabytes": limits["backup_gigabytes"],
        "totalVolumesUsed": used["volumes"],
        "totalGigabytesUsed": used["gigabytes"],
        "totalSnapshotsUsed": 0,
        "totalBackupsUsed": 0,
        "totalBackupGigabytesUsed": 0,
    }
    return Response(200, {"limits": {"rate": [], "absolute": absolute}})


def _limits(cloud: Cloud, project_id: str) -> dict[str, int]:
    limits = dict(DEFAULT_LIMITS)
    for kind in cloud.table("volume", "types").values():
        limits |= {f"{resource}_{kind['name']}": -1 for resource in ("volumes", "gigabytes", "snapshots")}
    return {name: cloud.quota("volume", project_id, name, default) for name, default in limits.items()}


@route("GET", "/os-quota-sets/{id}")
async def get_quota(request: Request) -> Response:
    project_id = request.match["id"]
    if not request.is_admin and project_id != request.project_id:
        raise not_allowed("volume_extension:quotas:show")
    limits: Json = {**_limits(request.cloud, project_id)}
    if request.query.get("usage", "false").lower() == "true":
        used = state.usage(request.cloud, project_id)
        limits = {name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in limits.items()}
    return Response(200, {"quota_set": {**limits, "id": project_id}})


@route("PUT", "/os-quota-sets/{id}")
async def put_quota(request: Request) -> Response:
    if not request.is_admin:
        raise not_allowed("volume_extension:quotas:update")
    project_id = request.match["id"]
    used = state.usage(request.cloud, project_id)
    wanted = request.json.get("quota_set", {})
    for name, limit in wanted.items():
        if 0 <= int(limit) < used.get(name, 0):
            message = (
                f"Quota {name} limit must be equal or greater than existing resources. "
                f"Current usage is {used[name]} and the requested limit is {limit}."
            )
            raise Fault(400, message, "badRequest")
    for name, limit in wanted.items():
        request.cloud.set_quota("volume", project_id, name, int(limit))
    return Response(200, {"quota_set": _limits(request.cloud, project_id)})


@route("DELETE", "/os-quota-sets/{id}")
async def delete_quota(request: Request) -> Response:
    if not request.is_admin:
        raise not_allowed("volume_extension:quotas:delete")
    request.cloud.quotas.get("volume", {}).pop(request.match["id"], None)
    return empty(200)
