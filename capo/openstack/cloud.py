"""One authenticated project of one cloud.

A call is one HTTP request: JSON in, JSON out, errors of the catalogue. Calls are not retried here: the engine retries
reconciles, and :mod:`capo.openstack.list_poller` retries lists.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypedDict, Unpack
from urllib.parse import urlsplit

import requests
from keystoneauth1 import exceptions as sdk

from capo.clock import Clock
from capo.errors import (
    AmbiguousAnswerError,
    CapoError,
    CloudUnavailableError,
    IdentityError,
    NotFoundError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.ledger import Location
from capo.openstack import answers, credential_expiry, faults, foreign
from capo.openstack.ages import Ages
from capo.openstack.auth_backoff import AuthBackoff
from capo.openstack.endpoints import Endpoint, Endpoints
from capo.openstack.identity import Credentials
from capo.openstack.kinds import KINDS
from capo.openstack.list_poller import ListPoller
from capo.openstack.reference_cache import ReferenceCache
from capo.version import VERSION

log = logging.getLogger(__name__)


USER_AGENT: Final = f"cluster-api-provider-openstack/{VERSION}"
MAX_PAGES: Final = 1000
CATALOGUE_S: Final = 60.0
"""Minimum age of the catalogue before a failed connection triggers fetching a new one."""


class _Extras(TypedDict, total=False):
    """Parts of a request besides its path."""

    json: Any
    params: Mapping[str, Any] | None
    microversion: str | None


_LOGIN: Final = "login"
"""Service key of token requests, to distinguish them from the Identity service's other resources."""
_DELETIONS_WITH_BODY: Final = {"attachments"}
"""Services that answer a deletion with a body; Cinder returns the remaining attachments."""


@dataclass(frozen=True)
class Listing:
    """All pages of a list.

    Args:
        cloud_s: the service's own time when it answered the first page, seconds since 1970; None if it sent none.
    """

    items: list[Body]
    cloud_s: float | None


def unfenced() -> None:
    """Allow every write: for tests and tools that hold no lease."""


class Cloud:
    """One project, opened by one set of credentials; thread safe.

    Args:
        fence: called before each write; raises when this process may no longer write.
        wake: called with a key when a resource that it waits for was observed.
    """

    def __init__(
        self,
        credentials: Credentials,
        http: requests.Session,
        *,
        clock: Clock,
        wake: Callable[[Any], None],
        fence: Callable[[], None] = unfenced,
    ) -> None:
        from capo.openstack import sdk_connection  # the SDK is loaded for the first cloud

        self.credentials = credentials
        self.fingerprint = credentials.fingerprint
        self.fence = fence
        self.clock = clock
        self.ages = Ages(clock.now)
        self.lookups = ReferenceCache(clock.now)
        self.poller = ListPoller(self, clock.now, wake)
        self._connection = sdk_connection.connect(credentials, http, clock.now, USER_AGENT)
        self._session = self._connection.session
        self._auth = self._session.auth
        self._endpoints: Endpoints | None = None
        self._refusals = AuthBackoff(clock.now)
        self._login = threading.Lock()
        self._regions: str | None = None
        self.expires_s: float | None = None
        """When the credentials expire, seconds since 1970; None if they do not, or if that is unknown."""
        self._is_expiry_known = False
        self.known_project_id: str | None = None
        """Project of the latest token, None before the first login."""

    @property
    def region(self) -> str | None:
        """The region whose endpoints are used."""
        return self.credentials.region_name

    @property
    def project_id(self) -> str:
        """The id of the project.

        Raises:
            CapoError: the credentials are refused, or the Identity service does not answer.
        """
        return str(self._access().project_id)

    @property
    def location(self) -> Location:
        """Return where the credentials lead to; sends no request once there was a token.

        Raises:
            CapoError: the credentials are refused, or the Identity service does not answer.
        """
        project_id = self.known_project_id or self.project_id
        if self._regions is None:
            self._regions = self.region or self._catalogue().regions()
        return Location(self.credentials.auth_host, project_id, self._regions)

    @property
    def refusal(self) -> CapoError | None:
        """Why the credentials were refused, unless they were accepted since; sends no request."""
        return self._refusals.refusal

    def authenticate(self) -> None:
        """Ensure that there is a valid token with a project.

        Raises:
            NotAuthorizedError: the credentials are refused.
            IdentityError: the token has no project, or the certificate of the endpoint is not trusted.
            CloudUnavailableError: the Identity service does not answer.
        """
        self._access()

    def offers(self, service: str) -> bool:
        """Return whether the catalogue has an endpoint of a service; optional services such as Octavia may be missing.

        Raises:
            CapoError: the credentials are refused, or the Identity service does not answer.
        """
        return self._catalogue().offers(service)

    def get(
        self, service: str, path: str, *, params: Mapping[str, Any] | None = None, microversion: str | None = None
    ) -> Body:
        """Return the answer of a read."""
        return answers.read(self._send(service, "GET", path, params=params, microversion=microversion))

    def list_all(
        self,
        service: str,
        path: str,
        key: str,
        *,
        params: Mapping[str, Any] | None = None,
        microversion: str | None = None,
    ) -> list[Body]:
        """Return the items of a list, all pages of it."""
        return self.listing(service, path, key, params=params, microversion=microversion).items

    def listing(
        self,
        service: str,
        path: str,
        key: str,
        *,
        params: Mapping[str, Any] | None = None,
        microversion: str | None = None,
    ) -> Listing:
        """Return all pages of a list with the service's time.

        Raises:
            CloudUnavailableError: a page is missing or is not a page of such a list; partial lists are never returned.
        """
        items: list[Body] = []
        cloud_s: float | None = None
        asked = dict(params or {})
        for page in range(MAX_PAGES):
            response = self._send(service, "GET", path, params=asked, microversion=microversion)
            body = answers.read(response)
            cloud_s = answers.date_s(response) if page == 0 else cloud_s
            shown = body.page_of(key)
            items += shown
            following = body.next_page(key)
            if following is None or not shown:
                return Listing(items, cloud_s)
            asked = {**asked, **following}
        raise CloudUnavailableError(f"{service}: the list of {path} does not end after {MAX_PAGES} pages")

    def post(self, service: str, path: str, **extras: Unpack[_Extras]) -> Body:
        """Send a POST, return its answer."""
        return answers.read(self._send(service, "POST", path, **extras))

    def put(self, service: str, path: str, **extras: Unpack[_Extras]) -> Body:
        """Send a PUT, return its answer."""
        return answers.read(self._send(service, "PUT", path, **extras))

    def patch(self, service: str, path: str, **extras: Unpack[_Extras]) -> Body:
        """Send a PATCH, return its answer."""
        return answers.read(self._send(service, "PATCH", path, **extras))

    def delete(self, service: str, path: str, **extras: Unpack[_Extras]) -> Body:
        """Send a DELETE, return its answer, which is usually empty."""
        return answers.read(self._send(service, "DELETE", path, **extras))

    def remove(self, service: str, path: str, **extras: Unpack[_Extras]) -> None:
        """Delete a resource; a 404 counts as success only if a read confirms it.

        A policy may answer 404, too: accepting it would leave the resource behind, forgotten. Where both requests are
        answered by 404, a list that begins later has to confirm it (ADR 0001); until then the resource is in doubt.

        Raises:
            CloudUnavailableError: the deletion was answered by 404, but the resource exists.
            AmbiguousAnswerError: the service did not write the body of the answer.
        """
        try:
            answer = self.delete(service, path, **extras)
            if answer and not _DELETIONS_WITH_BODY & answer.keys():
                raise AmbiguousAnswerError(f"{service} does not answer a deletion with a body of this kind")
        except NotFoundError as error:
            try:
                self.get(service, path, microversion=extras.get("microversion"))
            except NotFoundError:
                self._doubt(service, path)
                return
            text = f"{service} answered the deletion of {path} by 404, and yet it is there: {error.message}"
            raise CloudUnavailableError(text, request_id=error.request_id) from error

    def _doubt(self, service: str, path: str) -> None:
        collection, _, resource_id = path.rpartition("/")
        for kind in KINDS.values():
            if (kind.service, kind.collection) == (service, collection):
                self.poller.invalidate(kind.name, resource_id)

    def close(self) -> None:
        """Stop observing; calls still work."""
        self.poller.close()

    def _send(self, service: str, method: str, path: str, **extras: Unpack[_Extras]) -> requests.Response:
        kind = f"{service} {'reads' if method == 'GET' else 'writes'}"  # successful reads prove nothing about writes
        version = f"{service} {extras.get('microversion')}"
        self._refusals.check(kind)
        self._refusals.check(version)
        endpoint = self._endpoint(service)
        if method != "GET":
            self.fence()
        try:
            response = endpoint.proxy.request(
                f"{endpoint.url}{path}",
                method,
                json=extras.get("json"),
                params=dict(extras.get("params") or {}),
                headers={"Accept": "application/json"},
                microversion=extras.get("microversion"),
                log=False,
            )
        except sdk.Unauthorized as error:  # not an answer of the service: its 401 triggered a login, which was refused
            raise self._noted(_LOGIN, faults.error_from_exception(error, method=method, service="identity")) from error
        except sdk.ClientException as error:
            if _is_of_login(error):  # the same, with another status: Keystone answers 404 for a deleted credential
                raise self._noted(_LOGIN, self._login_error(error)) from error
            self._note_lost(error)
            raise faults.error_from_exception(error, method=method, service=service) from error
        if response.status_code == 401:
            raise self._noted(kind, faults.error_from_response(service, response))
        self._refusals.accepted(kind)
        if response.status_code >= 400:
            refusal = faults.error_from_response(service, response)
            is_of_version = response.status_code == 406 and isinstance(refusal, UnsupportedByCloudError)
            raise self._noted(version, refusal) if is_of_version and extras.get("microversion") else refusal
        if response.status_code >= 300:
            raise answers.misplaced(service, method, response)
        self.ages.note(service, response.headers.get("Date", ""))
        return response

    def _access(self) -> Any:
        # One login at a time: threads that wait for a failing login need not try it themselves.
        with self._login:
            self._refusals.check(_LOGIN)
            try:
                access = self._auth.get_access(self._session)
            except (sdk.ClientException, ValueError, RecursionError) as error:  # RecursionError: deeply nested JSON
                raise self._noted(_LOGIN, self._login_error(error)) from error
            self._refusals.accepted(_LOGIN)
        if not access.project_id:
            raise IdentityError("the token is not one of a project: name the project in clouds.yaml")
        self.known_project_id = str(access.project_id)
        return access

    def _noted(self, service: str, refusal: CapoError) -> CapoError:
        self._refusals.note(service, refusal)
        return refusal

    def _login_error(self, error: Exception) -> CapoError:
        response = getattr(error, "response", None)
        if response is not None and 300 <= response.status_code < 400:
            return answers.misplaced("identity", "POST", response)
        found = faults.error_from_exception(error, method="GET", service="identity")
        if isinstance(error, sdk.NotFound | sdk.DiscoveryFailure | sdk.BadRequest | ValueError | RecursionError):
            where = foreign.address(self.credentials.entry["auth"]["auth_url"])
            text = f"identity: {found.message.removeprefix('identity: ')} (auth_url {where})"
            return IdentityError(text, request_id=found.request_id)
        return found if not isinstance(found, AmbiguousAnswerError) else CloudUnavailableError(found.message)

    def _catalogue(self) -> Endpoints:
        """Return the endpoints of the latest token; a token is fetched or renewed here, before any write is sent."""
        access, known = self._access(), self._endpoints
        if known is None or access is not known.access:
            known = self._endpoints = Endpoints(self._connection, self.credentials, access, self.clock.now())
            self._read_expiry(known)
        return known

    def _read_expiry(self, known: Endpoints) -> None:
        """Read when the credentials expire, with each new token until it is known; failures are silent."""
        credential_path = credential_expiry.path(known.access)
        if self._is_expiry_known or credential_path is None:
            return
        with contextlib.suppress(sdk.ClientException, CapoError, ValueError, RecursionError):
            response = credential_expiry.read(known.of("identity"), credential_path)
            if response.status_code == 200:
                self.expires_s = credential_expiry.parse(response.json())
                self._is_expiry_known = True

    def _endpoint(self, service: str) -> Endpoint:
        try:
            return self._catalogue().of(service)
        except sdk.ClientException as error:
            self._note_lost(error)
            raise faults.error_from_exception(error, method="GET", service=service) from error

    def _note_lost(self, error: Exception) -> None:
        """Fetch a new token and catalogue after a failed connection, at most once a minute.

        The service may have moved. If the login fails the current token is kept: the other services still accept it.
        """
        known = self._endpoints
        if known is None or not faults.was_never_sent(error):
            return
        with self._login:
            if self.clock.now() - known.found_s < CATALOGUE_S:
                return
            known.found_s = self.clock.now()
            with contextlib.suppress(sdk.ClientException, ValueError, RecursionError):
                self._auth.auth_ref = self._auth.get_auth_ref(self._session)


def _is_of_login(error: sdk.ClientException) -> bool:
    """Return whether an error is the Identity service's answer to a login."""
    request = getattr(getattr(error, "response", None), "request", None)
    return request is not None and request.method == "POST" and urlsplit(request.url).path.endswith("/auth/tokens")
