"""The error page of webob, where a service has no JSON for it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from capo.simulator.routing import ROUTE_NOT_FOUND, Fault, Request, Response

FAULT_NAMES: Final = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    501: "notImplemented",
    503: "serviceUnavailable",
}
"""Nova's and Cinder's name of a fault, by status; Nova has one more."""
NOT_FOUND: Final = "The resource could not be found."
UNVERIFIED: Final = (
    "This server could not verify that you are authorized to access the document you requested. Either you supplied "
    "the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials "
    "required."
)


def empty(status: int, content_type: str = "text/html; charset=UTF-8") -> Response:
    """Return an answer without a body that has a content type, as webob does."""
    return Response(status, headers={"Content-Type": content_type})


def redirect_to_slash(request: Request) -> Response:
    """Redirect a path without a closing slash to the one with it; refuse a path with one.

    Raises:
        Fault: 404.
    """
    if request.path.endswith("/"):
        raise Fault(404, NOT_FOUND, ROUTE_NOT_FOUND)
    location = f"{request.service_url}{request.path}/"
    return Response(302, headers={"Content-Type": "text/plain; charset=utf8", "Location": location})


def error_page(request: Request, status: int, message: str, detail: str = "") -> Response:
    """Return the page of a status with a sentence or two; JSON for a client that accepts nothing else."""
    phrase = HTTPStatus(status).phrase
    title = f"{status} {phrase}"
    accepted = request.headers.get("Accept", "")
    if "application/json" in accepted and not any(other in accepted for other in ("text/html", "*/*")):
        return Response(status, {"message": f"{message}<br /><br />\n{detail}\n\n", "code": title, "title": phrase})
    text = (
        f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n"
        f"  {message}<br /><br />\n{detail}\n\n\n </body>\n</html>"
    )
    return Response(status, text=text, content_type="text/html; charset=UTF-8")
