"""One authenticated project of one cloud.

A call is one HTTP request: JSON in, JSON out, errors of the catalogue. Calls are not retried here: the engine retries
reconciles, and :mod:`capo.openstack.list_poller` retries lists.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, Unpack

import requests
from keystoneauth1 import exceptions as sdk

from capo.clock import Clock
from capo.errors import (
    AmbiguousAnswerError,
    CapoError,
    CloudUnavailableError,
    IdentityError,
    NotAuthorizedError,
    NotFoundError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.ledger import Location
from capo.openstack import answers, credential_expiry, faults, foreign, own_token, pages
from capo.openstack.ages import Ages
from capo.openstack.auth_backoff import AuthBackoff
from capo.openstack.connections import Limits
from capo.openstack.endpoints import Endpoint, Endpoints
from capo.openstack.identity import Credentials
from capo.openstack.identity_outage import UNCONFIRMED_S
from capo.openstack.kinds import KINDS
from capo.openstack.list_poller import ListPoller
from capo.openstack.pages import Listing
from capo.openstack.quota_holds import QuotaHolds
from capo.openstack.reference_cache import ReferenceCache
from capo.openstack.shared_state import SharedState, Sharing, Unshared
from capo.openstack.token_scope import TokenScope, scope_of
from capo.version import VERSION

USER_AGENT: Final = f"cluster-api-provider-openstack/{VERSION}"
CATALOGUE_S: Final = 60.0
"""Minimum age of the catalogue before a failed connection triggers fetching a new one."""
CONFIRMED_S: Final = 300.0
"""Credentials that were accepted within this time may use what others of their scope read."""


class _Extras(TypedDict, total=False):
    """Parts of a request besides its path.

    Args:
        headers: additional ones.
    """

    json: Any
    params: Mapping[str, Any] | None
    microversion: str | None
    headers: Mapping[str, str]


_LOGIN: Final = "login"
"""Service key of token requests, to distinguish them from the Identity service's other resources."""
_DELETIONS_WITH_BODY: Final = {"attachments"}
"""Services that answer a deletion with a body; Cinder returns the remaining attachments."""


def unfenced() -> None:
    """Allow every write: for tests and tools that hold no lease."""


class Cloud:
    """One project, opened by one set of credentials; thread safe.

    Args:
        fence: called before each write; raises when this process may no longer write.
        wake: called with a key when a resource that it waits for was observed.
        sharing: has the state of credentials that see the same; None keeps it apart from all others.
    """

    def __init__(  # noqa: PLR0913 - the surroundings of a cloud, each named at the one call
        self,
        credentials: Credentials,
        http: requests.Session,
        *,
        clock: Clock,
        wake: Callable[[Any], None],
        fence: Callable[[], None] = unfenced,
        sharing: Sharing | None = None,
        max_list_bytes: int = pages.LARGEST_ANSWERS * Limits.max_bytes,
    ) -> None:
        from capo.openstack import sdk_connection  # the SDK is loaded for the first cloud

        self.credentials = credentials
        self.fingerprint = credentials.fingerprint
        self.fence = fence
        self.clock = clock
        self.ages = Ages(clock.now)
        self.is_closed = False
        self._sharing = sharing or Unshared(clock.now, wake)
        self._max_list_bytes = max_list_bytes
        self.joined: SharedState | None = None
        """The shared state, None before the first login."""
        self._joining = threading.Lock()
        self._token: Any = None
        self._scope: TokenScope | None = None
        self._confirming = threading.Lock()
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
    def shared(self) -> SharedState:
        """What these credentials share with those that see the same; the first use logs in.

        Raises:
            CapoError: the credentials are refused, or the Identity service does not answer.
        """
        with self._joining:
            if self.joined is None:
                self.joined = self._sharing.join(self, scope_of(self.credentials, self._access()))
                if self.is_closed:  # closed in between, or before: it is of no use to others
                    self._sharing.end(self)
                self._require_scope()  # another thread may have taken a token in between
            return self.joined

    @property
    def poller(self) -> ListPoller:
        """Lists of the project; raises as :attr:`shared`."""
        return self.shared.poller

    @property
    def lookups(self) -> ReferenceCache:
        """Answers about resources that others own; raises as :attr:`shared`."""
        return self.shared.lookups

    @property
    def quota_holds(self) -> QuotaHolds:
        """Creates that wait for the project's quota; raises as :attr:`shared`."""
        return self.shared.quota_holds

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

    @property
    def accepted_s(self) -> float:
        """When the credentials were accepted last, steady seconds; minus infinity if they were refused since."""
        return self._refusals.accepted_s

    def authenticate(self) -> TokenScope:
        """Ensure that there is a valid token with a project, return its scope.

        Raises:
            NotAuthorizedError: the credentials are refused.
            IdentityError: the token has no project, or the certificate of the endpoint is not trusted.
            CloudUnavailableError: the Identity service does not answer.
        """
        access = self._access()
        _ = self.shared  # before the state is left by the credentials that these replace
        return scope_of(self.credentials, access)

    def confirm(self) -> None:
        """Raise if the credentials were revoked although others still read the lists of the project.

        Sends a request if others share the state and these were not accepted for a while; where they are alone, their
        lists are refused.

        Raises:
            NotAuthorizedError, IdentityError: the credentials are refused.
        """
        if self._is_confirmed():
            return
        with self._confirming:
            if self.joined is not None and not self._is_confirmed():
                with self.joined.outage.asking():
                    self._ask_for_own_token()

    def _is_confirmed(self) -> bool:
        state, refusals = self.joined, self._refusals
        is_recent = self.clock.now() < refusals.accepted_s + CONFIRMED_S
        return state is None or state.is_alone or is_recent or (state.outage.is_on and refusals.was_accepted)

    def _ask_for_own_token(self) -> None:
        try:
            response = own_token.read(self._session, self.credentials, str(self._catalogue().access.auth_token))
            if response.status_code == 401:
                raise self._noted(_LOGIN, faults.error_from_response("identity", response))
            if response.status_code == 200:
                self._refusals.accepted(_LOGIN)
            elif response.status_code < 500:  # the token was renewed in between, or Keystone has another path or policy
                self._log_in_again()
            else:
                self._wait_unconfirmed()
        except (IdentityError, NotAuthorizedError):
            raise
        except sdk.ClientException as error:
            if isinstance(error, sdk.Unauthorized) or faults.is_of_login(error):
                self._note_refusal(self._login_error(error))
            self._wait_unconfirmed()
        except CapoError:
            if self.is_closed:  # the token has another scope than before: what others read is not for it
                raise
            self._wait_unconfirmed()

    def _log_in_again(self) -> None:
        """Fetch a new token; the present one stays in use if there is no answer."""
        with self._login:
            self._auth.auth_ref = self._auth.get_auth_ref(self._session)
        self._refusals.accepted(_LOGIN)

    def _note_refusal(self, error: CapoError) -> None:
        """Record and raise a refused login; other failures are no refusal: Keystone may be down."""
        if isinstance(error, IdentityError | NotAuthorizedError):
            raise self._noted(_LOGIN, error)

    def _wait_unconfirmed(self) -> None:
        waited_s = self.clock.now() + UNCONFIRMED_S - CONFIRMED_S
        self._refusals.accepted_s = max(self._refusals.accepted_s, waited_s)
        if self.joined is not None:
            self.joined.outage.begin()

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

    def listing(  # noqa: PLR0913 - parts of a request, each named at its calls
        self,
        service: str,
        path: str,
        key: str,
        *,
        params: Mapping[str, Any] | None = None,
        microversion: str | None = None,
        keep: Callable[[Body], Body] = lambda body: body,
    ) -> Listing:
        """Return all pages of a list with the service's time.

        Args:
            keep: returns what is kept of a resource; of the rest there is never more than one page.

        Raises:
            CloudUnavailableError: a page is missing or is not a page of such a list, or the list is too large; partial
                lists are never returned.
        """

        def get(asked: Mapping[str, Any]) -> requests.Response:
            return self._send(service, "GET", path, params=asked, microversion=microversion)

        wanted = pages.Wanted(service, path, key, self._max_list_bytes, keep)
        return pages.read(get, wanted, params or {})

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
        """Leave the shared state, wake the keys that use these credentials; calls still work."""
        self.is_closed = True
        if self.joined is not None:
            self.joined.leave(self)

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
                headers={"Accept": "application/json", **extras.get("headers", {})},
                microversion=extras.get("microversion"),
                log=False,
            )
        except sdk.Unauthorized as error:  # not an answer of the service: its 401 triggered a login, which was refused
            raise self._noted(_LOGIN, faults.error_from_exception(error, method=method, service="identity")) from error
        except sdk.ClientException as error:
            if faults.is_of_login(error):  # the same with another status: 404 for a deleted credential
                raise self._noted(_LOGIN, self._login_error(error)) from error
            self._note_lost(error)
            raise faults.error_from_exception(error, method=method, service=service) from error
        if response.status_code == 401:
            raise self._noted(kind, faults.error_from_response(service, response))
        if response.status_code < 500:  # a service that fails may not have checked the token
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
            former = self._auth.auth_ref
            try:
                access = self._auth.get_access(self._session)
            except (sdk.ClientException, ValueError, RecursionError) as error:  # RecursionError: deeply nested JSON
                raise self._noted(_LOGIN, self._login_error(error)) from error
            self._refusals.accepted(_LOGIN, was_asked=access is not former)
        if not access.project_id:
            raise IdentityError("the token is not one of a project: name the project in clouds.yaml")
        self.known_project_id = str(access.project_id)
        if access is not self._token:
            self._take(access)
        return access

    def _take(self, access: Any) -> None:
        """Take a new token; one that may see something else than the former one ends the use of what that one saw."""
        self._scope = scope_of(self.credentials, access)
        self._token = access  # last: a thread that finds it known relies on its scope
        self._require_scope()

    def _require_scope(self) -> None:
        if self.joined is not None and self._scope != self.joined.scope and not self.is_closed:
            self._sharing.end(self)
            raise CloudUnavailableError("the user or the roles of the token changed: its project is listed again")

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
