"""One authenticated project of one cloud.

A call is one HTTP request: JSON in, JSON out, errors of the catalogue. Nothing is tried again here; retries belong to
the engine, and the observer's lists to :mod:`capo.openstack.observer`.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypedDict, Unpack

import requests
from keystoneauth1 import exceptions as sdk
from keystoneauth1.session import Session

from capo.errors import (
    AmbiguousAnswerError,
    CapoError,
    CloudUnavailableError,
    IdentityError,
    NotFoundError,
    UnsupportedByCloudError,
)
from capo.ledger import Location
from capo.openstack import answers, faults, foreign
from capo.openstack.ages import Ages
from capo.openstack.identity import UNREADABLE, Credentials
from capo.openstack.kinds import KINDS
from capo.openstack.lookups import Lookups
from capo.openstack.observer import Observer
from capo.openstack.refusals import Refusals
from capo.version import VERSION

log = logging.getLogger(__name__)

Body = answers.Body
Params = Mapping[str, Any]

USER_AGENT: Final = f"cluster-api-provider-openstack/{VERSION}"
MAX_PAGES: Final = 1000
MAX_REGION: Final = 255
CATALOGUE_S: Final = 60.0
"""How old a catalogue is at least before a connection that fails makes us ask for another one."""
MICROVERSION_NAMES: Final = {"compute": "compute", "volume": "volume"}


class _Extras(TypedDict, total=False):
    """What a request carries besides its path."""

    json: Any
    params: Params | None
    microversion: str | None


class Clock(Protocol):
    """Time, injected so that tests own it."""

    def now(self) -> float:
        """Return steady seconds, by which all durations are counted: nobody sets them."""


@dataclass(frozen=True)
class _Service:
    """How a service's end point is found and completed.

    Args:
        type: service type in the catalogue; the SDK knows its aliases (``volumev3``).
        version: path that completes an end point that names no version; None leaves it as it is.
    """

    type: str
    version: str | None


_SERVICES: Final[Mapping[str, _Service]] = {
    "compute": _Service("compute", None),
    "identity": _Service("identity", "/v3"),
    "image": _Service("image", "/v2"),
    "load-balancer": _Service("load-balancer", "/v2"),
    "network": _Service("network", "/v2.0"),
    "volume": _Service("block-storage", "/v3/{project_id}"),
}
_HOLDING: Final = ("compute", "network", "volume", "load-balancer")
"""The services whose resources are recorded."""
_LOGIN: Final = "login"
"""Where a token comes from, as opposed to the Identity service's other resources."""
_DELETIONS_WITH_BODY: Final = {"attachments"}
"""Services answer a deletion without a body, but for Cinder: it lists the attachments that are left."""
_VERSIONED: Final = re.compile(r"/v\d+(\.\d+)?(/[0-9a-fA-F-]{32,36}|/AUTH_\w+)?$")


@dataclass(frozen=True)
class Listing:
    """All pages of a list.

    Args:
        cloud_s: the service's own time when it answered the first page, seconds since 1970; None if it told none.
    """

    items: list[Body]
    cloud_s: float | None


def unfenced() -> None:
    """Let every write through: for tests and tools that hold no lease."""


class Cloud:
    """A project that one set of credentials opens; thread safe.

    Args:
        fence: called before each write; raises when this process may not write any more.
        wake: called with a key when something that it waits for was observed.
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
        self.credentials = credentials
        self.fingerprint = credentials.fingerprint
        self.fence = fence
        self.clock = clock
        self.ages = Ages(clock.now)
        self.lookups = Lookups(clock.now)
        self.observer = Observer(self, clock.now, wake)
        self._auth = credentials.plugin(clock.now)
        self._session = Session(
            auth=self._auth, session=http, user_agent=USER_AGENT, verify=credentials.verifies, redirect=False
        )
        self._endpoints: dict[str, str] = {}
        self._catalogue: Any = None
        self._catalogue_s = clock.now()
        self._refusals = Refusals(clock.now)
        self._login = threading.Lock()
        self._regions: str | None = None
        self.known_project_id: str | None = None
        """The project of the last token, None before the first."""

    @property
    def region(self) -> str | None:
        """The region whose end points are used."""
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
        """Where the credentials lead to; needs no request once there was a token.

        Raises:
            CapoError: the credentials are refused, or the Identity service does not answer.
        """
        project_id = self.known_project_id or self.project_id
        if self._regions is None:
            self._regions = self.region or self._catalogued_regions()
        return Location(self.credentials.auth_host, project_id, self._regions)

    def authenticate(self) -> None:
        """Have a valid token of a project.

        Raises:
            NotAuthorizedError: the credentials are refused.
            IdentityError: the token is not one of a project, or TLS does not trust the end point.
            CloudUnavailableError: the Identity service does not answer.
        """
        self._access()

    def offers(self, service: str) -> bool:
        """Tell whether the catalogue has an end point of a service, which a cloud may lack, as some lack Octavia.

        Raises:
            CapoError: the credentials are refused, or the Identity service does not answer.
        """
        self._access()
        return service in self._endpoints or self._catalogued(service) is not None

    def get(self, service: str, path: str, *, params: Params | None = None, microversion: str | None = None) -> Body:
        """Return the answer of a read."""
        return answers.read(self._send(service, "GET", path, params=params, microversion=microversion))

    def list_all(
        self, service: str, path: str, key: str, *, params: Params | None = None, microversion: str | None = None
    ) -> list[Body]:
        """Return the items of a list, all pages of it."""
        return self.listing(service, path, key, params=params, microversion=microversion).items

    def listing(
        self, service: str, path: str, key: str, *, params: Params | None = None, microversion: str | None = None
    ) -> Listing:
        """Return all pages of a list with the service's time.

        Raises:
            CloudUnavailableError: a page did not come, or is not one of such a list; there is no half a list.
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
        """Send a DELETE, return its answer, which is mostly empty."""
        return answers.read(self._send(service, "DELETE", path, **extras))

    def remove(self, service: str, path: str, **extras: Unpack[_Extras]) -> None:
        """Have no resource at a path; one that is gone is fine, but only if a read says so, too.

        A policy may answer 404 as well: what would be forgotten then would stay behind. Where both are answered so, a
        list that begins later has to confirm it (ADR 0001): until then the resource is in doubt.

        Raises:
            CloudUnavailableError: the deletion was answered by 404, and the resource is there.
            AmbiguousAnswerError: the answer has a body that is not the service's.
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
                self.observer.doubt(kind.name, resource_id)

    def close(self) -> None:
        """Observe nothing any more; calls still work."""
        self.observer.close()

    def _send(self, service: str, method: str, path: str, **extras: Unpack[_Extras]) -> requests.Response:
        kind = f"{service} {'reads' if method == 'GET' else 'writes'}"  # a read that is admitted says nothing of writes
        version = f"{service} {extras.get('microversion')}"
        self._refusals.check(kind)
        self._refusals.check(version)
        url = f"{self._endpoint(service)}{path}"
        if method != "GET":
            self.fence()
        try:
            response: requests.Response = self._session.request(
                url,
                method,
                json=extras.get("json"),
                params=dict(extras.get("params") or {}),
                headers=_headers(service, extras.get("microversion")),
                raise_exc=False,
                log=False,
            )
        except sdk.Unauthorized as error:  # no answer of the service: its 401 led to a login, which was refused
            raise self._noted(_LOGIN, faults.of_exception(error, method=method, service="identity")) from error
        except sdk.ClientException as error:
            if faults.was_never_sent(error):
                self._renew_catalogue()
            raise faults.of_exception(error, method=method, service=service) from error
        if response.status_code == 401:
            raise self._noted(kind, faults.of_response(service, response))
        self._refusals.accepted(kind)
        if response.status_code >= 400:
            refusal = faults.of_response(service, response)
            is_of_version = response.status_code == 406 and isinstance(refusal, UnsupportedByCloudError)
            raise self._noted(version, refusal) if is_of_version and extras.get("microversion") else refusal
        if response.status_code >= 300:
            raise answers.misplaced(service, method, response)
        self.ages.note(service, response.headers.get("Date", ""))
        return response

    def _access(self) -> Any:
        # One at a time: those who wait for a login that fails need not try it themselves.
        with self._login:
            self._refusals.check(_LOGIN)
            try:
                access = self._auth.get_access(self._session)
            except (sdk.ClientException, ValueError, RecursionError) as error:  # the last by JSON in JSON without end
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
        found = faults.of_exception(error, method="GET", service="identity")
        if isinstance(error, sdk.NotFound | sdk.DiscoveryFailure | sdk.BadRequest | ValueError | RecursionError):
            where = foreign.address(self.credentials.entry["auth"]["auth_url"])
            text = f"identity: {found.message.removeprefix('identity: ')} (auth_url {where})"
            return IdentityError(text, request_id=found.request_id)
        return found if not isinstance(found, AmbiguousAnswerError) else CloudUnavailableError(found.message)

    def _endpoint(self, service: str) -> str:
        """Return the URL that a path is appended to; a token is fetched or renewed here, before any write is sent."""
        access = self._access()
        if access is not self._catalogue:
            self._catalogue, self._catalogue_s = access, self.clock.now()
            self._endpoints = {}
        if service not in self._endpoints:
            self._endpoints[service] = self._found_endpoint(service, str(access.project_id))
        return self._endpoints[service]

    def _renew_catalogue(self) -> None:
        """Ask for another token with its catalogue, at most once a minute: the end point may have moved.

        The token in use is kept if that fails: the other services still take it.
        """
        with self._login:
            if self.clock.now() - self._catalogue_s < CATALOGUE_S:
                return
            self._catalogue_s = self.clock.now()
            with contextlib.suppress(sdk.ClientException, ValueError, RecursionError):
                self._auth.auth_ref = self._auth.get_auth_ref(self._session)

    def _found_endpoint(self, service: str, project_id: str) -> str:
        wanted, found = _SERVICES[service], self._catalogued(service)
        if found is None:
            where = f" in region {self.region}" if self.region else ""
            interface = self.credentials.interface
            raise IdentityError(f"the catalogue has no {interface} end point of the {service} service{where}")
        if trouble := foreign.unusable(found):
            raise IdentityError(f"the catalogue's end point of the {service} service {trouble}")
        url = found.rstrip("/")
        if wanted.version and not _VERSIONED.search(url):
            url += wanted.version.format(project_id=project_id)
        return url

    def _catalogued_regions(self) -> str:
        """Return the region whose end points are used when the credentials name none; all of them if they differ."""
        found = (self._endpoint_data(service) for service in _HOLDING)
        regions = {data.region_name for data in found if data is not None and data.region_name}
        if not all(isinstance(region, str) and len(region) <= MAX_REGION for region in regions):
            raise IdentityError("the catalogue of the token has a region without a proper name")
        return ",".join(sorted(regions))

    def _catalogued(self, service: str) -> str | None:
        """Return the end point of a service as the catalogue has it, None when it has none."""
        data = self._endpoint_data(service)
        return str(data.url) if data is not None else None

    def _endpoint_data(self, service: str) -> Any:
        try:
            return self._auth.get_endpoint_data(
                self._session,
                service_type=_SERVICES[service].type,
                interface=self.credentials.interface,
                region_name=self.region,
                discover_versions=False,
            )
        except sdk.CatalogException:
            return None
        except sdk.ClientException as error:
            raise faults.of_exception(error, method="GET", service="identity") from error
        except UNREADABLE as error:
            raise IdentityError("the catalogue of the token cannot be read") from error


def _headers(service: str, microversion: str | None) -> dict[str, str]:
    headers = {"Accept": "application/json"}
    if microversion:
        headers["OpenStack-API-Version"] = f"{MICROVERSION_NAMES[service]} {microversion}"
    return headers
