"""Nova's service object: versions, microversion headers, wording of refusals.

The package registers the routes of the other modules; the life of servers is in `build`.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from multidict import CIMultiDict

from capo.simulator.cloud import Json
from capo.simulator.error_page import FAULT_NAMES, NOT_FOUND, error_page
from capo.simulator.routing import (
    INTERNAL,
    METHOD_NOT_ALLOWED,
    MICROVERSION,
    ROUTE_NOT_FOUND,
    Fault,
    Microversions,
    Request,
    Response,
    Service,
)

MINIMUM: Final = (2, 1)
MAXIMUM: Final = (2, 104)
NO_VERSION: Final = (0, 0)
VARY: Final = "OpenStack-API-Version, X-OpenStack-Nova-API-Version"
KINDS: Final = FAULT_NAMES | {429: "overLimit"}
UNEXPECTED: Final = (
    "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if "
    "possible.\n<class '{kind}'>"
)


def render_fault(fault: Fault, request: Request) -> Response:
    if fault.kind in {ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED}:
        request.microversion = NO_VERSION  # an unknown path is answered before versions are checked
        return error_page(request, 404, NOT_FOUND)
    message = UNEXPECTED.format(kind="nova.exception.NovaException") if fault.kind == INTERNAL else fault.message
    body = {KINDS.get(fault.status, "computeFault"): {"code": fault.status, "message": message}}
    headers = dict(fault.headers)
    if fault.kind == MICROVERSION and fault.status == 406:
        headers |= _version_headers(fault.message.split()[1])
    return Response(fault.status, body, headers, content_type="application/json; charset=UTF-8")


def _version_headers(version: str) -> dict[str, str]:
    return {
        "OpenStack-API-Version": f"compute {version}",
        "X-OpenStack-Nova-API-Version": version,
        "Vary": VARY,
    }


def decorate(request: Request, headers: CIMultiDict[str]) -> None:
    headers["x-openstack-request-id"] = request.request_id
    headers["x-compute-request-id"] = request.request_id
    if request.microversion != NO_VERSION:
        headers.update(_version_headers("{}.{}".format(*request.microversion)))


service: Final = Service(
    name="compute",
    prefix="/compute",
    microversions=Microversions("compute", MINIMUM, MAXIMUM, "X-OpenStack-Nova-API-Version"),
    render_fault=render_fault,
    decorate=decorate,
)


def bad_request(message: str) -> Fault:
    return Fault(400, message, "badRequest")


def unknown_marker(marker: str) -> Fault:
    """Return Nova's refusal of a page marker that is not in the list."""
    return bad_request(f"marker [{marker}] not found")


def limit_of(request: Request) -> int:
    """Return how many resources a page has at most."""
    most = request.cloud.config.max_limit
    return min(int(request.query.get("limit") or most), most)


def next_links(request: Request, page: list[Json], *, key: str = "id") -> list[Json]:
    """Return the link to the rest of a list: a full page has one, whether or not the request had a limit.

    Source: nova/api/openstack/common.py, ``_get_collection_links``.
    """
    if not page or len(page) != limit_of(request):
        return []
    rest = [*((name, value) for name, value in request.query.items() if name != "marker"), ("marker", page[-1][key])]
    return [{"rel": "next", "href": f"{request.service_url}{request.path}?{urlencode(rest)}"}]


def not_found(message: str) -> Fault:
    return Fault(404, message, "itemNotFound")


def conflict(message: str) -> Fault:
    return Fault(409, message, "conflictingRequest")


def over_quota(message: str) -> Fault:
    return Fault(403, message, "forbidden")


def not_allowed(rule: str) -> Fault:
    """Return the refusal by a policy."""
    return Fault(403, f"Policy doesn't allow {rule} to be performed.", "forbidden")


def since(request: Request, minor: int) -> bool:
    """Return whether the request has this minor version or a later one."""
    return request.microversion >= (2, minor)


def require(request: Request, minor: int) -> None:
    """Refuse a route that the request's microversion does not have yet.

    Raises:
        Fault: 404.
    """
    if not since(request, minor):
        raise not_found(NOT_FOUND)


def links(request: Request, collection: str, resource_id: str) -> list[Json]:
    """Return the links that each resource carries."""
    root = request.service_url
    return [
        {"rel": "self", "href": f"{root}/v2.1/{collection}/{resource_id}"},
        bookmark(request, collection, resource_id),
    ]


def bookmark(request: Request, collection: str, resource_id: str) -> Json:
    """Return the link without a version."""
    return {"rel": "bookmark", "href": f"{request.service_url}/{collection}/{resource_id}"}


def _version(request: Request, *, is_legacy: bool) -> Json:
    path = "v2" if is_legacy else "v2.1"
    return {
        "id": "v2.0" if is_legacy else "v2.1",
        "status": "DEPRECATED" if is_legacy else "CURRENT",
        "version": "" if is_legacy else "{}.{}".format(*MAXIMUM),
        "min_version": "" if is_legacy else "{}.{}".format(*MINIMUM),
        "updated": "2025-07-04T12:00:00Z" if is_legacy else "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{request.service_url}/{path}/"}],
    }


def _one_version(request: Request, *, is_legacy: bool) -> Response:
    version = _version(request, is_legacy=is_legacy)
    version["links"].append({"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"})
    media = f"application/vnd.openstack.compute+json;version={'2' if is_legacy else '2.1'}"
    version["media-types"] = [{"base": "application/json", "type": media}]
    return Response(200, {"version": version})


@service.route("GET", "/", public=True)
async def list_versions(request: Request) -> Response:
    request.microversion = NO_VERSION
    versions = [_version(request, is_legacy=True), _version(request, is_legacy=False)]
    return Response(200, {"versions": versions})


@service.route("GET", "/v2", public=True)
async def get_legacy_version(request: Request) -> Response:
    request.microversion = NO_VERSION
    return _one_version(request, is_legacy=True)


@service.route("GET", "/v2.1", public=True)
async def get_version(request: Request) -> Response:
    return _one_version(request, is_legacy=False)
