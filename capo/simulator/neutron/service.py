"""Neutron's service object and its wording of refusals."""

from __future__ import annotations

from typing import Final

from multidict import CIMultiDict

from capo.simulator.routing import (
    INTERNAL,
    MALFORMED_BODY,
    METHOD_NOT_ALLOWED,
    ROUTE_NOT_FOUND,
    Fault,
    Request,
    Response,
    Service,
)

# Neutron's wording of the refusals of the framework itself.
WEB_FAULTS: Final = {
    ROUTE_NOT_FOUND: ("HTTPNotFound", "The resource could not be found."),
    METHOD_NOT_ALLOWED: (
        "HTTPMethodNotAllowed",
        "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    ),
    MALFORMED_BODY: ("HTTPBadRequest", "Body contains invalid data"),
    INTERNAL: ("HTTPInternalServerError", "Request Failed: internal server error while processing your request."),
}


def render_fault(fault: Fault, _: Request) -> Response:
    kind, message = WEB_FAULTS.get(fault.kind, (fault.kind or "HTTPBadRequest", fault.message))
    body = {"NeutronError": {"type": kind, "message": message, "detail": ""}}
    return Response(fault.status, body, dict(fault.headers))


def decorate(request: Request, headers: CIMultiDict[str]) -> None:
    """Add the request's id; the list of versions is answered before requests get one."""
    if request.path != "/":
        headers["x-openstack-request-id"] = request.request_id


def malformed_body() -> Fault:
    return Fault(400, "", MALFORMED_BODY)


service: Final = Service(
    name="network", prefix="/network", render_fault=render_fault, decorate=decorate, malformed_body=malformed_body
)


def bad_request(message: str) -> Fault:
    """Return the web layer's refusal of a bad body or query."""
    return Fault(400, message, "HTTPBadRequest")


def invalid_input(message: str) -> Fault:
    """Return a converter's or a plugin's refusal of a bad value."""
    return Fault(400, f"Invalid input for operation: {message}", "InvalidInput")


def disallowed(rule: str) -> Fault:
    """Return the refusal by policy."""
    return Fault(403, f"{rule} is disallowed by policy", "PolicyNotAuthorized")


def broken() -> Fault:
    """Return the answer of Neutron's own bugs, where this release has them."""
    return Fault(500, "", INTERNAL)


@service.route("GET", "/", public=True)
async def get_versions(request: Request) -> Response:
    links = [{"rel": "self", "href": f"{request.service_url}/v2.0/"}]
    return Response(200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})


@service.route("GET", "/v2.0")
async def get_index(request: Request) -> Response:
    resources = [
        {
            "name": name,
            "collection": f"{name}s",
            "links": [{"rel": "self", "href": f"{request.service_url}/v2.0/{name}s"}],
        }
        for name in ("network", "subnet", "subnetpool", "port")
    ]
    return Response(200, {"resources": resources})
