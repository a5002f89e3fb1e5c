"""HTTP status and body -> an error of the catalogue: one table, one function.

Only this module decides which 400 and which 409 are retried. Rows are tried in order; the first match decides.
:func:`error_from_response` also decides what an answer means for a write whose effect is unknown.
"""

from __future__ import annotations

import email.utils
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import requests
import urllib3.exceptions
from keystoneauth1 import exceptions as sdk

from capo import errors
from capo.errors import CapoError
from capo.openstack import foreign, microversions
from capo.openstack.error_shapes import Absence, Said, absence, is_image_page, said

_MAX_MESSAGE: Final = 600
_MAX_DATE: Final = 64
THEN: Final = " ... "
_REQUEST_ID: Final = re.compile(r"(req-)?[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.I)
UNDATED_S: Final = 30.0
"""Pause in seconds after an answer with a Retry-After date but without a Date header."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        statuses: HTTP statuses that it covers.
        error: the resulting error.
        source: where the rule comes from.
        service: the service that answers so; empty for any.
        words: regular expressions over ``<type>: <message>``, which match one behind the other where `` ... ``
            separates them; empty matches all.
        next_step: overrides the error's advice.
    """

    statuses: tuple[int, ...]
    error: type[CapoError]
    source: str
    service: str = ""
    words: str = ""
    next_step: str | None = None

    def fits(self, service: str, status: int, text: str) -> bool:
        """Return whether the row covers this answer."""
        if status not in self.statuses or self.service not in ("", service):
            return False
        return _has_in_order(self.words.split(THEN), text)


def _has_in_order(expressions: Iterable[str], text: str) -> bool:
    """Return whether the expressions are found one behind the other.

    Each is searched once. As one expression with ``.*`` in between, the rest of the text would be searched again for
    every place where the first one matches.
    """
    at = 0
    for expression in expressions:
        found = re.compile(expression, re.IGNORECASE).search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


_ZONE_HELP: Final = "Name an availability zone that the cloud has and that is up."
_NOVA_CREATE: Final = "Compute API, Create Server; nova/api/openstack/compute/servers.py"
_NEUTRON_TYPES: Final = "Networking API: a fault carries the exception's class as its type; neutron_lib/exceptions"

TABLE: Final = (
    Row((401,), errors.NotAuthorizedError, "Identity API: after the token was renewed once"),
    Row(
        (403,),
        errors.ForbiddenError,
        "oslo.policy: also where the rule's own name has the word quota",
        words="^Policy doesn't",
    ),
    Row(
        (403,),
        errors.ServerGroupFullError,
        _NOVA_CREATE,
        "compute",
        "too many servers in group|server_group_members",
    ),
    Row((403,), errors.QuotaExceededError, _NOVA_CREATE, "compute", r"quota|maximum number of|exceeded"),
    Row(
        (403,),
        errors.QuotaExceededError,
        "oslo_limit/exception.py ProjectOverLimit: Nova with unified limits",
        "compute",
        "is over a limit for",
    ),
    Row((403,), errors.QuotaExceededError, "octavia/common/exceptions.py QuotaException", "load-balancer", "quota"),
    Row((413,), errors.QuotaExceededError, "Block Storage API: OverQuota is 413", "volume", "quota|limit|exceed"),
    Row((403, 413), errors.QuotaExceededError, "Image API: LimitExceeded, StorageQuotaFull", "image", "quota|limit"),
    Row((409,), errors.QuotaExceededError, _NEUTRON_TYPES, "network", r"OverQuota|Quota exceeded"),
    Row(
        (400, 409),
        errors.AddressesExhaustedError,
        _NEUTRON_TYPES,
        "network",
        "^(IpAddressGenerationFailure|ExternalIpAddressExhausted)",
    ),
    Row((429,), errors.RateLimitedError, "RFC 6585"),
    Row((413,), errors.RateLimitedError, "Compute API, overLimit of old releases"),
    Row((403,), errors.InvalidSpecError, _NOVA_CREATE, "compute", r"Only volume-backed servers|too large for"),
    Row(
        (403,),
        errors.ConflictError,
        "Networking API: a member may not delete a port while a server has it",
        "network",
        r"delete_port\b",
    ),
    Row((403,), errors.ForbiddenError, "policy"),
    Row(
        (400, 409), errors.InvalidSpecError, "nova/exception.py NetworkAmbiguous", "compute", "possible networks? found"
    ),
    Row((400,), errors.KeyPairNotFoundError, _NOVA_CREATE, "compute", r"Invalid key_name"),
    Row(
        (400, 404),
        errors.FlavorNotFoundError,
        _NOVA_CREATE,
        "compute",
        r"Flavor \S+ could not be found|attribute flavorRef\b",
    ),
    Row(
        (400,),
        errors.ImageNotFoundError,
        _NOVA_CREATE,
        "compute",
        r"can ?not find requested image|Image \S+ (could not be found|is not active|is unacceptable)",
    ),
    Row(
        (400,),
        errors.NotFoundError,
        _NOVA_CREATE,
        "compute",
        "availability zone ... (not available|not valid|invalid)",
        _ZONE_HELP,
    ),
    Row((400,), errors.ServerGroupNotFoundError, _NOVA_CREATE, "compute", "(server|instance) group ... not"),
    Row((400,), errors.SecurityGroupNotFoundError, _NOVA_CREATE, "compute", "Security group ... not found"),
    Row((400,), errors.NetworkNotFoundError, _NOVA_CREATE, "compute", r"Network \S+ could not be found"),
    Row((400,), errors.NotFoundError, _NOVA_CREATE, "compute", r"Port( id)? \S+ could not be found"),
    Row(
        (400,),
        errors.ConflictError,
        "nova/exception.py InvalidBDMVolume, InvalidVolume: the volume is not ready for it yet",
        "compute",
        "(failed to get|Invalid) volume",
    ),
    Row(
        (400,),
        errors.ConflictError,
        "nova/exception.py InvalidVolume",
        "compute",
        "volume ... (status must be|not in an available state|is already)",
    ),
    Row(
        (400,),
        errors.ImageNotFoundError,
        "Block Storage API",
        "volume",
        "image ... (not be found|unable|not active)",
    ),
    Row(
        (400, 404),
        errors.NotFoundError,
        "Block Storage API",
        "volume",
        "availability zone ... is invalid",
        "Name a zone and a type that Cinder has.",
    ),
    Row(
        (400, 404),
        errors.NotFoundError,
        "Block Storage API",
        "volume",
        "volume[ _]type ... not",
        "Name a zone and a type that Cinder has.",
    ),
    Row(
        (400,),
        errors.ConflictError,
        "Block Storage API, Delete: the volume is busy",
        "volume",
        "status must be|cannot be deleted",
    ),
    Row((400, 404), errors.ConflictError, _NEUTRON_TYPES, "network", "^ExternalGatewayForFloatingIPNotFound"),
    Row((400, 404), errors.NetworkNotFoundError, _NEUTRON_TYPES, "network", r"^NetworkNotFound|Network \S+ could not"),
    Row((400, 404), errors.SubnetNotFoundError, _NEUTRON_TYPES, "network", r"^SubnetNotFound|Subnet \S+ could not be"),
    Row((400, 404), errors.RouterNotFoundError, _NEUTRON_TYPES, "network", "^RouterNotFound"),
    Row((400, 404), errors.SecurityGroupNotFoundError, _NEUTRON_TYPES, "network", "^SecurityGroupNotFound"),
    Row((400, 404), errors.SubnetNotFoundError, "octavia: VIP, members", "load-balancer", r"Subnet \S+ not found"),
    Row((400, 404), errors.NetworkNotFoundError, "octavia: VIP", "load-balancer", r"Network \S+ not found"),
    Row(
        (400,),
        errors.UnsupportedByCloudError,
        "octavia/common/exceptions.py ProviderUnsupportedOptionError, ProviderNotEnabled",
        "load-balancer",
        "Provider ... (not support|not enabled)",
    ),
    Row((406,), errors.UnsupportedByCloudError, "API microversions: the version is out of the cloud's range"),
    Row((501,), errors.UnsupportedByCloudError, "octavia/common/exceptions.py ProviderNotImplementedError"),
    Row((400, 422), errors.InvalidSpecError, "the request is malformed whenever it is sent"),
    Row((404, 410), errors.NotFoundError, "all services"),
    Row((409, 423), errors.ConflictError, "in use, busy, immutable for now"),
    Row(
        (412,),
        errors.ConflictError,
        "neutron/services/revisions/revision_plugin.py: changed since it was read",
        "network",
        "^RevisionNumberConstraintFailed",
    ),
)


def error_from_response(service: str, response: requests.Response) -> CapoError:
    """Return the error of an answer with a status of 400 or more.

    A write answered with 5xx may have taken effect, unless the service states that it was not processed (503 with
    Retry-After) or never will be (501). So may any write whose answer the service did not write, whatever its status.
    """
    words = said(service, response.status_code, response.content or b"")
    if words is None:
        return _of_foreign(service, response)
    message, request_id = _message(service, response, words), _request_id(response)
    found = _paused(response, message, request_id) or _particular(service, response, message, request_id)
    return found or _tabled(service, response, words, request_id)


def _tabled(service: str, response: requests.Response, words: Said, request_id: str | None) -> CapoError:
    """Return the error that the table has for an answer."""
    status, message = response.status_code, _message(service, response, words)
    for row in TABLE:
        if row.fits(service, status, words.text):
            if row.error is errors.RateLimitedError:
                return errors.RateLimitedError(message, retry_after_s=_retry_after_s(response), request_id=request_id)
            return row.error(message, request_id=request_id, status=status, next_step=row.next_step)
    message = f"{service} answered HTTP {status}: {message}"
    if status < 500:
        return errors.InvalidSpecError(message, request_id=request_id, status=status)
    return _unanswered(response, message, request_id=request_id)


def _message(service: str, response: requests.Response, words: Said) -> str:
    text = words.text or f"{service} answered HTTP {response.status_code} without a word"
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}..."


def _of_foreign(service: str, response: requests.Response) -> CapoError:
    """Return the error of an answer that the service did not write; nothing of it is quoted.

    A proxy may request a pause or credentials on behalf of the service, and nothing else: its refusals are no verdict
    on the spec, the policy, or the cloud's version.
    """
    foreign.note(service, response)
    message, request_id = foreign.sentence(service, response), _request_id(response)
    if paused := _paused(response, message, request_id):
        return paused
    if response.status_code == 401:
        return errors.NotAuthorizedError(message, request_id=request_id, status=401)
    if response.status_code in (404, 410) and is_image_page(service, response.content or b""):
        return errors.NotFoundError("the service has no such image", request_id=request_id, status=response.status_code)
    return _unanswered(response, message, request_id=request_id)


def _paused(response: requests.Response, message: str, request_id: str | None) -> CapoError | None:
    """Return the error of an answer that requests a pause, also if a proxy sent it; None for any other."""
    status, pause_s = response.status_code, _retry_after_s(response)
    if status == 429 or (status == 503 and pause_s is not None):
        return errors.RateLimitedError(message, retry_after_s=pause_s, request_id=request_id)
    return None


def _particular(service: str, response: requests.Response, message: str, request_id: str | None) -> CapoError | None:
    """Return the error of an answer whose status is ambiguous; None leaves it to the table."""
    status = response.status_code
    if status == 406:
        return microversions.refusal(service, message, request_id=request_id)
    if status in (404, 410) and absence(service, response.content, status) is Absence.PATH:
        text = f"the {service} service has no such path: {message}"
        return errors.UnsupportedByCloudError(text, request_id=request_id, status=status)
    return None


def _unanswered(response: requests.Response, message: str, *, request_id: str | None) -> CapoError:
    """Return the error of an answer that the service did not write: a write may have taken effect."""
    is_read = response.request is not None and response.request.method in ("GET", "HEAD")
    kind = errors.CloudUnavailableError if is_read else errors.AmbiguousAnswerError
    return kind(message, request_id=request_id, status=response.status_code)


def _request_id(response: requests.Response) -> str | None:
    given = (response.headers.get(name, "") for name in ("x-openstack-request-id", "x-compute-request-id"))
    return next((text for text in given if _REQUEST_ID.fullmatch(text)), None)


def _retry_after_s(response: requests.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    if re.fullmatch(r"\d{1,9}", text):
        return float(text)
    until_s = date_s(text)
    if until_s is None:
        return None
    # A date is by the sender's clock, which may differ from ours.
    answered_s = date_s(response.headers.get("Date", ""))
    return UNDATED_S if answered_s is None else max(0.0, until_s - answered_s)


def date_s(text: str) -> float | None:
    """Return an HTTP date in seconds since 1970, None if it is invalid."""
    try:
        return email.utils.parsedate_to_datetime(text[:_MAX_DATE]).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def error_from_exception(error: Exception, *, method: str, service: str) -> CapoError:
    """Return the error of a call without an answer, or with one that the SDK could not use."""
    # HTTPError: base of openstacksdk's own exceptions for answers.
    if isinstance(error, sdk.HttpError | requests.HTTPError) and error.response is not None:
        return error_from_response(service, error.response)
    foreign.note_failure(service, error)
    message = f"{service}: {foreign.failure(error)}"
    if isinstance(error, sdk.SSLError) and (method in ("GET", "HEAD") or _is_untrusted(error)):
        return errors.IdentityError(message, next_step="Put the cloud's CA bundle into the Secret's key cacert.")
    if isinstance(error, sdk.Unauthorized | sdk.AuthorizationFailure | sdk.AuthPluginException):
        return errors.NotAuthorizedError(message)
    if method in ("GET", "HEAD") or was_never_sent(error):
        return errors.CloudUnavailableError(message)
    return errors.AmbiguousAnswerError(message)


def is_of_login(error: BaseException) -> bool:
    """Return whether an error is the Identity service's answer to a login."""
    request = getattr(getattr(error, "response", None), "request", None)
    return request is not None and request.method == "POST" and urlsplit(request.url).path.endswith("/auth/tokens")


def was_never_sent(error: BaseException) -> bool:
    """Return whether no connection was established, so that a write cannot have taken effect."""
    never = (requests.exceptions.ConnectTimeout, urllib3.exceptions.NewConnectionError)
    return any(isinstance(cause, never) for cause in foreign.causes(error))


def _is_untrusted(error: BaseException) -> bool:
    """Return whether the peer's certificate was refused: then nothing was sent.

    Any other TLS failure may follow the receipt of a write, as when the peer closes in the middle of an answer.
    """
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in foreign.causes(error))
