"""What the demo asks of OpenStack: by openstacksdk as a person's own tool, never through the provider's client."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import requests
from keystoneauth1 import exceptions as sdk

from capo.json_types import Json
from capo.local.errors import RigError

USER_AGENT: Final = "capo-demo"
"""Distinguishes our own requests from those of the provider in the services' logs."""
TIMEOUT_S: Final = 60.0
_SERVICES: Final[Mapping[str, tuple[str, str | None]]] = {
    "compute": ("compute", "2"),
    "network": ("network", None),
    "image": ("image", "2"),
    "volume": ("block-storage", "3"),
    "load-balancer": ("load-balancer", None),
    "identity": ("identity", "3"),
}
"""Type and version of each service; None leaves the version to the SDK."""


class CloudError(RigError):
    """The cloud refused a request of the demo."""


class OpenStack:
    """One cloud as one user.

    Args:
        entry: an entry of clouds.yaml with a password or an application credential.

    Raises:
        CloudError: the credentials are refused, or the cloud does not answer.
    """

    def __init__(self, entry: Mapping[str, Any]) -> None:
        from openstack.config import OpenStackConfig
        from openstack.connection import Connection

        has_application = "application_credential_secret" in entry["auth"]
        auth_type = entry.get("auth_type") or ("v3applicationcredential" if has_application else "password")
        reader = OpenStackConfig(load_yaml_config=False, load_envvars=False)
        region = reader.get_one(**{**entry, "auth_type": auth_type, "api_timeout": TIMEOUT_S})
        region.get_session().user_agent = USER_AGENT
        self._connection = Connection(config=region)
        try:
            self._access = region.get_session().auth.get_access(region.get_session())
        except sdk.ClientException as error:
            raise CloudError(f"{entry['auth']['auth_url']}: {error}") from error

    @property
    def project_id(self) -> str:
        """Id of the project of the token."""
        return str(self._access.project_id)

    @property
    def user_id(self) -> str:
        """Id of the user of the token."""
        return str(self._access.user_id)

    @property
    def roles(self) -> list[str]:
        """Names of the roles of the token."""
        return list(self._access.role_names)

    def has(self, service: str) -> bool:
        """Return whether the cloud offers a service."""
        return self._connection.config.get_endpoint_from_catalog(_SERVICES[service][0]) is not None

    @functools.lru_cache(maxsize=8)  # noqa: B019 - a demo has three clouds until it ends
    def url(self, service: str) -> str:
        """Return the URL of a service, with its version.

        Raises:
            CloudError: the catalogue does not have it.
        """
        if not self.has(service):
            raise CloudError(f"the cloud has no service of type {service}")
        kind, version = _SERVICES[service]
        found = self._connection.config.get_session_client(kind, version=version).get_endpoint()
        return str(found).rstrip("/")

    def get(self, service: str, path: str, **headers: str) -> Json:
        """Return the document at a path."""
        return self._call("GET", self.url(service) + path, headers)

    def send(self, verb: str, service: str, path: str, body: Json | None = None) -> Json:
        """Send a write and return the answer's document, empty if there is none."""
        return self._call(verb, self.url(service) + path, {}, body)

    def list(self, service: str, path: str, key: str, **headers: str) -> Iterator[Json]:
        """Yield all entries of a list, page by page."""
        url: str | None = self.url(service) + path
        while url:
            page = self._call("GET", url, headers)
            yield from page[key]
            url = _next(page, key, self.url(service)) if page[key] else None

    def _call(self, verb: str, url: str, headers: Mapping[str, str], body: Json | None = None) -> Json:
        try:
            answer = self._connection.session.request(url, verb, json=body, headers=dict(headers), raise_exc=False)
        except sdk.ClientException as error:
            raise CloudError(f"{verb} {url}: {error}") from error
        return cast(Json, _checked(answer).json()) if answer.content else {}


def _next(page: Json, key: str, base: str) -> str | None:
    for link in page.get(f"{key}_links") or ():
        if link["rel"] == "next":
            return str(link["href"])
    path = page.get("next")  # images
    return base.removesuffix("/v2") + str(path) if path else None


def _checked(answer: requests.Response) -> requests.Response:
    if not answer.ok:
        request = answer.request
        raise CloudError(f"{request.method} {request.url}: {answer.status_code} {answer.text[:400]}")
    return answer
