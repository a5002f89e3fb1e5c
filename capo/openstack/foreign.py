"""Describe answers that the service did not write, and failed calls, without quoting them.

An endpoint comes from a catalogue that a tenant may have written: what answers there may be anything that the manager
reaches. So a condition contains who was called, the status, the kind of the body and its size, in our words, and never
a part of the answer. The first bytes are written to the manager's log only, at the verbosity :data:`VERBOSITY`.
"""

from __future__ import annotations

import errno
import http.client
import logging
import os
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import requests
import urllib3.exceptions
from keystoneauth1 import exceptions as sdk

from capo import logs, redaction
from capo.openstack import connections

log = logging.getLogger(__name__)

UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions of the SDK for a token, a catalogue or a list of versions that no OpenStack service wrote."""
VERBOSITY: Final = 4
MAX_LOGGED: Final = 500
_MAX_ORIGIN: Final = 200
_CONTENT_TYPES: Final = (
    "application/json",
    "application/octet-stream",
    "application/problem+json",
    "application/xml",
    "text/html",
    "text/plain",
    "text/xml",
)
_NO_URL: Final = "an end point that is no URL"
_PATH: Final = re.compile(r"[A-Za-z0-9._/-]{0,100}")
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]{1,253}")
_TLS_REASON: Final = re.compile(r"[A-Z0-9_]{1,80}")


def sentence(service: str, response: requests.Response) -> str:
    """Return the text of a condition about an answer that the service did not write."""
    who = f"{origin(response.url)} answered " if response.url else ""
    return f"{who}HTTP {response.status_code} in a form that is not the {service} service's own ({kind(response)})"


def kind(response: requests.Response) -> str:
    """Return kind and size of an answer's body."""
    named = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    known = named if named in _CONTENT_TYPES else "another content type" if named else "no content type"
    return f"{known}, {len(response.content or b'')} bytes"


def origin(url: str) -> str:
    """Return scheme, host and port of a URL, nothing else."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return _NO_URL
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        return _NO_URL
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown[:_MAX_ORIGIN]}{f':{port}' if port else ''}"


def address(url: str) -> str:
    """Return scheme, host and port of a URL, with its path if that is plain."""
    whom, path = origin(url), urlsplit(url).path if is_url(url) else ""
    return f"{whom}{path}" if _PATH.fullmatch(path) else whom


def is_url(url: str) -> bool:
    """Return whether a URL can be an endpoint."""
    return origin(url) != _NO_URL


def unusable(url: str) -> str | None:
    """Return why paths cannot be appended to an endpoint, None if they can."""
    if not is_url(url):
        return "is no http(s) URL"
    if "?" in url or "#" in url:
        return "has a query or a fragment"
    return "has a user or a password" if "@" in urlsplit(url).netloc else None


def note(service: str, response: requests.Response) -> None:
    """Log the first bytes of an answer, for the administrator of the manager."""
    if log.isEnabledFor(logs.verbosity(VERBOSITY)):
        begun = (response.content or b"")[: 4 * MAX_LOGGED].decode(errors="replace")
        fields = {"service": service, "status": response.status_code, "url": origin(response.url or "")}
        log.log(
            logs.verbosity(VERBOSITY),
            "An answer is not the service's own",
            extra={**fields, "kind": kind(response), "begins": _line(begun)},
        )


def note_failure(service: str, error: BaseException) -> None:
    """Log a library's text about a failed call; it may contain parts of an answer."""
    if log.isEnabledFor(logs.verbosity(VERBOSITY)):
        fields = {"service": service, "err": _line(str(error)[: 4 * MAX_LOGGED])}
        log.log(logs.verbosity(VERBOSITY), "A call got no answer that can be used", extra=fields)


def _line(text: str) -> str:
    return ascii(redaction.redact(" ".join(text.split()))[:MAX_LOGGED])[1:-1]


def failure(error: BaseException) -> str:
    """Return why a call got no usable answer, in our words: those of libraries quote answers."""
    asked = next((url for cause in causes(error) if (url := _url(cause))), "")
    return f"{_why(error)}{f' ({origin(asked)})' if asked else ''}"


def _url(cause: BaseException) -> str:
    request = getattr(cause, "request", None) if isinstance(cause, requests.RequestException) else None
    return str(getattr(request, "url", None) or "")


def _why(error: BaseException) -> str:
    found = list(causes(error))
    for kinds, words in _WORDS:
        for cause in found:
            if isinstance(cause, kinds):
                return f"{words}{_detail(cause, found)}"
    return f"the call failed ({type(error).__name__})"


def _detail(cause: BaseException, found: list[BaseException]) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f": {str(getattr(cause, 'verify_message', ''))[:_MAX_ORIGIN] or 'no reason given'}"
    if isinstance(cause, ssl.SSLError):
        reason = str(getattr(cause, "reason", None) or "")
        return f": {reason}" if _TLS_REASON.fullmatch(reason) else ""
    numbers = (each.errno for each in found if isinstance(each, OSError) and not isinstance(each, socket.gaierror))
    number = next((number for number in numbers if number in errno.errorcode), None)
    return f": {os.strerror(number)}" if number is not None else ""


_WORDS: Final[tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...]] = (
    (
        connections.AddressDeniedError,
        "the address is in a network to which connections are denied (--openstack-denied-networks)",
    ),
    (connections.TunnelRefusedError, "the proxy does not lead there"),
    (connections.ResponseTooLargeError, "the answer is larger than --openstack-max-response-size"),
    (connections.MemoryShareError, "other large answers take the memory that there is for them"),
    (ssl.SSLCertVerificationError, "the certificate is not trusted"),
    (ssl.SSLError, "TLS failed"),
    (sdk.SSLError, "TLS failed"),
    ((socket.gaierror, urllib3.exceptions.NameResolutionError), "the host's name cannot be resolved"),
    ((ConnectionRefusedError, urllib3.exceptions.NewConnectionError), "no connection"),
    ((requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError), "no connection in time"),
    ((requests.Timeout, urllib3.exceptions.TimeoutError, sdk.ConnectTimeout), "no answer in time"),
    (
        (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema),
        "the end point is no URL that can be asked",
    ),
    (http.client.RemoteDisconnected, "the connection was closed without an answer"),
    (
        (http.client.HTTPException, urllib3.exceptions.HTTPWarning, requests.exceptions.ChunkedEncodingError),
        "what answers does not speak HTTP, or its answer was cut short",
    ),
    (
        (requests.exceptions.ContentDecodingError, urllib3.exceptions.DecodeError),
        "the answer cannot be decoded",
    ),
    (OSError, "the connection failed"),
    (sdk.ConnectFailure, "no connection"),
    (sdk.DiscoveryFailure, "no version of the Identity API is found there"),
    (sdk.InvalidResponse, "the answer is not the service's own"),
    ((sdk.Unauthorized, sdk.AuthorizationFailure, sdk.AuthPluginException), "the credentials cannot be used"),
    ((ValueError, LookupError, TypeError, AttributeError, RecursionError), "the answer is not the service's own"),
)
"""In this order, over an error and all its causes."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all its causes, also those that urllib3 and requests wrap as arguments."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        linked = (current.__cause__, current.__context__, getattr(current, "reason", None), *current.args)
        waiting += [each for each in linked if isinstance(each, BaseException)]
