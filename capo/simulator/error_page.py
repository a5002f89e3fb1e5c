"""The HTML page that webob answers with where a service has no JSON for it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from capo.simulator.routing import Response

NOT_FOUND: Final = "The resource could not be found."
UNVERIFIED: Final = (
    "This server could not verify that you are authorized to access the document you requested. Either you supplied "
    "the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials "
    "required."
)


def error_page(status: int, message: str) -> Response:
    """Return the page of a status with a sentence in it."""
    title = f"{status} {HTTPStatus(status).phrase}"
    text = (
        f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>\n"
        f"  {message}<br /><br />\n\n\n\n </body>\n</html>"
    )
    return Response(status, text=text, content_type="text/html; charset=UTF-8")
