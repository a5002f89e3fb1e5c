"""A small client of OpenStack's HTTP API: token, catalogue, lists with their pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import requests

from capo.local.errors import RigError

Json = dict[str, Any]

USER_AGENT: Final = "capo-demo"
"""Tells our own requests from those of the provider in the services' logs."""
TIMEOUT_S: Final = 60.0
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "compute": ("compute",),
    "network": ("network",),
    "image": ("image",),
    "volume": ("block-storage", "volumev3", "volume"),
    "load-balancer": ("load-balancer",),
    "identity": ("identity",),
}


class CloudError(RigError):
    """The cloud refused what the demo asked of it."""


class OpenStack:
    """One cloud as one user.

    Args:
        entry: an entry of clouds.yaml with a password or an application credential.
    """

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._entry = entry
        self._session = requests.Session()
        self._session.headers["User-Agent"] = USER_AGENT
        self._session.verify = entry.get("cacert") or entry.get("verify", True)
        self._token: Json = {}
        self.login()

    @property
    def project_id(self) -> str:
        """Id of the project of the token."""
        return str(self._token["project"]["id"])

    @property
    def user_id(self) -> str:
        """Id of the user of the token."""
        return str(self._token["user"]["id"])

    @property
    def roles(self) -> list[str]:
        """Names of the roles of the token."""
        return [role["name"] for role in self._token.get("roles") or ()]

    def login(self) -> None:
        """Have a token."""
        url = f"{_auth_url(self._entry)}/auth/tokens"
        answer = self._session.post(url, json={"auth": auth_body(self._entry["auth"])}, timeout=TIMEOUT_S)
        self._session.headers["X-Auth-Token"] = _checked(answer).headers["X-Subject-Token"]
        self._token = answer.json()["token"]

    def has(self, service: str) -> bool:
        """Tell whether the cloud offers a service."""
        return self._endpoint(service) is not None

    def url(self, service: str) -> str:
        """Return where a service listens, with its version.

        Raises:
            CloudError: the catalogue does not have it.
        """
        found = self._endpoint(service)
        if found is None:
            raise CloudError(f"the cloud has no service of type {service}")
        return found

    def get(self, service: str, path: str, **headers: str) -> Json:
        """Return the document at a path."""
        return self._call("GET", self.url(service) + path, headers)

    def send(self, verb: str, service: str, path: str, body: Json | None = None) -> Json:
        """Send a write and return the document that answers it, empty when there is none."""
        return self._call(verb, self.url(service) + path, {}, body)

    def list(self, service: str, path: str, key: str, **headers: str) -> Iterator[Json]:
        """Yield all entries of a list, page by page."""
        url: str | None = self.url(service) + path
        while url:
            page = self._call("GET", url, headers)
            yield from page[key]
            url = _next(page, key, self.url(service)) if page[key] else None

    def _call(self, verb: str, url: str, headers: Mapping[str, str], body: Json | None = None) -> Json:
        options: Json = {"headers": dict(headers), "timeout": TIMEOUT_S, "json": body}
        answer = self._session.request(verb, url, **options)
        if answer.status_code == 401:
            self.login()
            answer = self._session.request(verb, url, **options)
        return cast(Json, _checked(answer).json()) if answer.content else {}

    def _endpoint(self, service: str) -> str | None:
        wanted, region = self._entry.get("interface", "public"), self._entry.get("region_name")
        for type_ in _TYPES[service]:
            for entry in self._token["catalog"]:
                for endpoint in entry["endpoints"] if entry["type"] == type_ else ():
                    if endpoint["interface"] == wanted and region in (None, endpoint["region_id"]):
                        return versioned(service, endpoint["url"])
        return None


def versioned(service: str, url: str) -> str:
    """Return an endpoint with the API version that catalogues leave out for these services."""
    url = url.rstrip("/")
    version = {"network": "/v2.0", "image": "/v2", "load-balancer": "/v2.0", "identity": "/v3"}.get(service, "")
    return url if not version or url.endswith(version) or _is_versioned(url) else url + version


def _is_versioned(url: str) -> bool:
    last = url.rpartition("/")[2]
    return last[:1] == "v" and last[1:2].isdigit()


def auth_body(auth: Mapping[str, Any]) -> Json:
    """Return the body of a request for a token from the ``auth`` part of a clouds.yaml entry."""
    if "application_credential_secret" in auth:
        credential = {
            "id": auth.get("application_credential_id"),
            "name": auth.get("application_credential_name"),
            "secret": auth["application_credential_secret"],
        }
        if credential["name"]:
            credential["user"] = _user(auth, with_password=False)
        given = {name: value for name, value in credential.items() if value}
        return {"identity": {"methods": ["application_credential"], "application_credential": given}}
    identity = {"methods": ["password"], "password": {"user": _user(auth, with_password=True)}}
    return {"identity": identity, "scope": {"project": _project(auth)}}


def _user(auth: Mapping[str, Any], *, with_password: bool) -> Json:
    user: Json = {"password": auth["password"]} if with_password else {}
    if auth.get("user_id"):
        return {**user, "id": auth["user_id"]}
    return {**user, "name": auth["username"], "domain": _domain(auth, "user_domain")}


def _project(auth: Mapping[str, Any]) -> Json:
    if auth.get("project_id"):
        return {"id": auth["project_id"]}
    return {"name": auth["project_name"], "domain": _domain(auth, "project_domain")}


def _domain(auth: Mapping[str, Any], what: str) -> Json:
    if auth.get(f"{what}_id"):
        return {"id": auth[f"{what}_id"]}
    return {"name": auth.get(f"{what}_name") or auth.get("domain_name") or "Default"}


def _auth_url(entry: Mapping[str, Any]) -> str:
    url = str(entry["auth"]["auth_url"]).rstrip("/")
    return url if url.endswith("/v3") else f"{url}/v3"


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
