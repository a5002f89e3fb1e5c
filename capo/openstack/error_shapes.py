"""Texts of services in error bodies: only a body in the shape that the service uses is quoted; pure.

The endpoints come from a catalogue that a tenant may have written, and so may lead to any address that the manager
reaches. What answers there is not shown to the tenant: a body is attributed to the service only with as much of its
shape as the real ones have, as recorded in ``e2e/contract/recordings``. For other bodies see
:mod:`capo.openstack.foreign`.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Body

MAX_BODY: Final = 1 << 20
"""Bytes of an error body that are read: Nova repeats refused user data of 64 KiB several times."""
_MAX_PAGE: Final = 4096
_IMAGE_PAGE: Final = ("No image found with ID", "Failed to find image")
"""Text of Glance before Wallaby, which answers in HTML."""
_FAULT_NAMES: Final[Mapping[int, str]] = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}
"""Keys of Nova and Cinder; any other status is a ``computeFault``, also in Cinder, which uses fewer keys than Nova."""
_UNROUTED: Final = "The resource could not be found."
"""WebOb's sentence, which each service uses for an unknown path."""
_PHRASE: Final = re.compile(r"[A-Za-z' -]{1,40}")
_BREAK: Final = re.compile(r"<br ?/?>")


@dataclass(frozen=True)
class Said:
    """Content of an error body.

    Args:
        kind: the exception's class if the service sends it, as Neutron does; else empty.
    """

    message: str
    kind: str = ""

    @property
    def text(self) -> str:
        """Text that the expressions of the table in ``faults.py`` match."""
        return f"{self.kind}: {self.message}" if self.kind else self.message


_Shape = Callable[[Body, int], Said | None]


def said(service: str, status: int, body: bytes) -> Said | None:
    """Return the service's text in an error body; None if it does not have one of the service's shapes."""
    data = _document(body)
    if data is None or status < 400:
        return None
    shapes = (*_SHAPES.get(service, ()), *((_identity_fault,) if status == 401 else ()))
    return next((words for shape in shapes if (words := shape(data, status)) is not None), None)


class Absence(enum.Enum):
    """Meaning of an answer with status 404."""

    RESOURCE = "the service does not have the resource"
    PATH = "the service does not have the path"
    FOREIGN = "somebody else answered"


def absence(service: str, body: bytes, status: int = 404) -> Absence:
    """Return what a body of status 404 proves about a resource.

    Proxies, ingresses and gateways answer 404 with their own pages, and a service does so for a path that it does not
    route: neither proves that a resource does not exist (ADR 0001).
    """
    words = said(service, status, body)
    if words is None:
        return Absence.RESOURCE if is_image_page(service, body) else Absence.FOREIGN
    is_path = not words.message or words.message.startswith(_UNROUTED) or "NotFound" not in (words.kind or "NotFound")
    return Absence.PATH if is_path else Absence.RESOURCE


def is_image_page(service: str, body: bytes) -> bool:
    """Return whether a page is the one of an old Glance for an image that does not exist."""
    page = body[:_MAX_PAGE].decode(errors="replace")
    return service == "image" and _document(body) is None and any(words in page for words in _IMAGE_PAGE)


def _document(body: bytes) -> Body | None:
    """Return a body that is a JSON object, None for any other."""
    if len(body) > MAX_BODY:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _fault(data: Body, status: int) -> Said | None:
    """Nova and Cinder: one key named for the status, a generic one or one for a rate limit; it repeats the status."""
    names = {_FAULT_NAMES.get(status), "computeFault", "overLimitFault"}
    fault = next((value for name, value in data.items() if name in names), None)
    if len(data) != 1 or not isinstance(fault, dict) or not _is_code(fault.get("code"), status):
        return None
    return _spoken(fault.get("message"))


def _neutron(data: Body, status: int) -> Said | None:
    """Neutron: the exception's class and its text; old releases send only the text, which proves no absence."""
    fault = data.get("NeutronError")
    if isinstance(fault, str) and len(data) == 1 and status not in (404, 410):
        return _spoken(fault)
    if len(data) != 1 or not isinstance(fault, dict):
        return None
    kind, words = fault.get("type"), _spoken(fault.get("message"))
    if not isinstance(kind, str) or not re.fullmatch(r"\w{1,100}", kind) or words is None or "detail" not in fault:
        return None
    detail = _spoken(fault["detail"]) or Said("")
    return Said(" ".join(filter(None, (words.message, detail.message))), kind)


def _webob(data: Body, status: int) -> Said | None:
    """WebOb: always used by Glance; by Nova, Cinder and Neutron where they have no error format of their own."""
    title = data.get("title")
    is_own = _is_phrase(title) and data.keys() == {"code", "title", "message"} and data["code"] == f"{status} {title}"
    return _spoken(data["message"]) if is_own else None


def _wsme(data: Body, _status: int) -> Said | None:
    """Octavia: WSME's fault."""
    is_own = data.get("faultcode") in ("Client", "Server") and data.keys() <= {"faultcode", "faultstring", "debuginfo"}
    return _spoken(data.get("faultstring")) if is_own else None


def _described(data: Body, status: int) -> Said | None:
    """Octavia: pecan's page."""
    is_own = data.keys() == {"code", "title", "description"} and _is_code(data["code"], status)
    return _spoken(data["description"]) if is_own and _is_phrase(data["title"]) else None


def _identity_fault(data: Body, status: int) -> Said | None:
    """Keystone, and its middleware that refuses a token in front of any service."""
    fault = data.get("error")
    if len(data) != 1 or not isinstance(fault, dict) or not _is_phrase(fault.get("title")):
        return None
    is_own = fault.keys() == {"code", "message", "title"} and _is_code(fault["code"], status)
    return _spoken(fault["message"]) if is_own else None


def _is_code(value: Any, status: int) -> bool:
    return type(value) is int and value == status


def _is_phrase(value: Any) -> bool:
    return isinstance(value, str) and _PHRASE.fullmatch(value) is not None


def _spoken(value: Any) -> Said | None:
    """Return a text as one line without WebOb's line breaks; None if it is not a text."""
    return Said(" ".join(_BREAK.sub(" ", value).split())) if isinstance(value, str) else None


_SHAPES: Final[Mapping[str, tuple[_Shape, ...]]] = {
    "compute": (_fault, _webob),
    "volume": (_fault, _webob),
    "network": (_neutron, _webob),
    "load-balancer": (_wsme, _described),
    "identity": (_identity_fault,),
    "image": (_webob,),
}
