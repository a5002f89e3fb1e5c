"""Endpoints of a cloud's services: from the token's catalogue, and the versions that a service lists there.

Only the catalogue names hosts. A list of versions is written by an untrusted server, so only its path is used, at the
catalogue's address.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import requests
from keystoneauth1 import exceptions as sdk

from capo.errors import IdentityError
from capo.openstack import answers, foreign
from capo.openstack.foreign import UNREADABLE

if TYPE_CHECKING:
    from openstack.connection import Connection

    from capo.openstack.identity import Credentials
    from capo.openstack.sdk_connection import Outcome, ServiceProxy

MAX_REGION: Final = 255


@dataclass(frozen=True)
class _Service:
    """How the endpoint of a service is determined.

    Args:
        type: its type in the catalogue; the SDK resolves aliases (``volumev3``).
        version: the major version to find in its list of versions. None: an endpoint without a version is completed
            without a request, as the SDK does for services whose list may be out of reach.
        path: appended to an endpoint without a version if no version is listed: some clouds permit only what is below
            it.
    """

    type: str
    version: str | None
    path: str


_SERVICES: Final[Mapping[str, _Service]] = {
    "compute": _Service("compute", "2", "/v2.1"),
    "identity": _Service("identity", "3", "/v3"),
    "image": _Service("image", "2", "/v2"),
    "load-balancer": _Service("load-balancer", None, "/v2.0"),
    "network": _Service("network", None, "/v2.0"),
    "volume": _Service("block-storage", "3", "/v3"),
}
_HOLDING: Final = ("compute", "network", "volume", "load-balancer")
"""The services whose resources are recorded."""
_BELOW_PROJECT: Final = {"volume"}
"""Cinder before Yoga requires the project's id in the path."""
_VERSIONED: Final = re.compile(r"/v\d+(\.\d+)?(/[0-9a-fA-F-]{32,36}|/AUTH_\w+)?$")


@dataclass(frozen=True)
class Endpoint:
    """Endpoint of one service.

    Args:
        url: base to which paths are appended.
    """

    proxy: ServiceProxy
    url: str


class Endpoints:
    """The services of one catalogue, each resolved on first use; thread safe.

    Args:
        access: token with the catalogue.
    """

    def __init__(self, connection: Connection, credentials: Credentials, access: Any, found_s: float) -> None:
        self.access, self.found_s = access, found_s
        self._connection, self._credentials = connection, credentials
        self._found: dict[str, Endpoint] = {}
        self._locks: dict[str, threading.Lock] = {}

    def of(self, service: str) -> Endpoint:
        """Return the endpoint of a service; may request its list of versions.

        Raises:
            IdentityError: the catalogue has no usable endpoint.
            keystoneauth1.exceptions.ClientException: no answer at the endpoint.
        """
        found = self._found.get(service)
        if found is None:
            # One thread sends the request; only threads that need the same service wait for it.
            with self._locks.setdefault(service, threading.Lock()):
                found = self._found.get(service) or self._look_up(service)
                self._found[service] = found
        return found

    def offers(self, service: str) -> bool:
        """Return whether the catalogue has an endpoint of a service."""
        return service in self._found or self._data(service) is not None

    def regions(self) -> str:
        """Return the region whose endpoints are used when the credentials name none; all regions if they differ.

        Raises:
            IdentityError: the catalogue cannot be read.
        """
        found = (self._data(service) for service in _HOLDING)
        regions = {data.region_name for data in found if data is not None and data.region_name}
        if not all(isinstance(region, str) and len(region) <= MAX_REGION for region in regions):
            raise IdentityError("the catalogue of the token has a region without a proper name")
        return ",".join(sorted(regions))

    def _data(self, service: str) -> Any:
        """Return the entry of the catalogue for a service, None when it has none."""
        try:
            return self.access.service_catalog.endpoint_data_for(
                service_type=_SERVICES[service].type,
                interface=self._credentials.interface,
                region_name=self._credentials.region_name,
            )
        except sdk.CatalogException:
            return None
        except UNREADABLE as error:
            raise IdentityError("the catalogue of the token cannot be read") from error

    def _catalogued(self, service: str) -> str:
        """Return the endpoint of a service as written in the catalogue."""
        data, credentials = self._data(service), self._credentials
        if data is None:
            where = f" in region {credentials.region_name}" if credentials.region_name else ""
            raise IdentityError(
                f"the catalogue has no {credentials.interface} end point of the {service} service{where}"
            )
        _check(service, url := str(data.url))
        return url.rstrip("/")

    def _look_up(self, service: str) -> Endpoint:
        from capo.openstack.sdk_connection import ServiceProxy

        wanted, catalogued = _SERVICES[service], self._catalogued(service)
        try:
            proxy = self._connection.config.get_session_client(
                wanted.type, version=wanted.version, constructor=ServiceProxy, allow_version_hack=False
            )
        except UNREADABLE as error:
            raise IdentityError("the catalogue of the token cannot be read") from error
        if wanted.version is None:
            is_complete = _VERSIONED.search(catalogued)  # the SDK would append a second version to some of these
            return Endpoint(proxy, catalogued if is_complete else f"{proxy.get_endpoint()}".rstrip("/"))
        url = self._listed(service, proxy) or f"{catalogued}{'' if _VERSIONED.search(catalogued) else wanted.path}"
        if foreign.origin(url) != foreign.origin(catalogued):
            raise IdentityError(f"the {service} service lists its version at another address than the catalogue")
        if service in _BELOW_PROJECT and not _VERSIONED.search(catalogued):
            url = f"{url}/{self.access.project_id}"
        return Endpoint(proxy, url)

    def _listed(self, service: str, proxy: ServiceProxy) -> str | None:
        """Return the endpoint of the wanted version; None if the service does not list it.

        A request is sent only if the catalogue's endpoint does not contain that version itself.
        """
        from capo.openstack import sdk_connection

        with sdk_connection.outcomes() as outcomes:
            try:
                url = proxy.get_endpoint()
            except UNREADABLE:
                return None
            finally:
                self._forget_lists(proxy)
        if url is None:
            _raise_failure(service, outcomes)
            return None
        _check(service, str(url))
        return str(url).rstrip("/")

    @staticmethod
    def _forget_lists(proxy: ServiceProxy) -> None:
        """Remove lists of versions from the SDK's caches: they may be large, and would live until the token expires."""
        proxy.session._discovery_cache.clear()
        proxy.session.auth._discovery_cache.clear()


def _check(service: str, url: str) -> None:
    if trouble := foreign.unusable(url):
        raise IdentityError(f"the catalogue's end point of the {service} service {trouble}")


def _raise_failure(service: str, outcomes: list[Outcome]) -> None:
    """Raise the error of a failed request for versions; do nothing if it was answered, but without a list."""
    last = outcomes[-1] if outcomes else None
    response = last if isinstance(last, requests.Response) else getattr(last, "response", None)
    if response is None and isinstance(last, Exception):
        raise last
    if response is not None and 301 <= response.status_code < 400:
        raise answers.misplaced(service, "GET", response)
