"""Records every answer of the cloud unchanged, with its route."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import requests

from capo.openstack.connections import AnswerMemory, Limits
from capo.openstack.transport import HttpSession

SERVICES: Final[Mapping[str, str]] = {
    "block-storage": "volume",
    "compute": "compute",
    "identity": "identity",
    "image": "image",
    "load-balancer": "load-balancer",
    "network": "network",
    "volumev3": "volume",
}
_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE)
_NAMED_AFTER: Final[Mapping[str, str]] = {
    "application_credentials": "{id}",
    "extensions": "{alias}",
    "flavors": "{id}",
    "metadata": "{key}",
    "os-keypairs": "{name}",
    "roles": "{id}",
    "tags": "{tag}",
}
_WORDS: Final = ("detail", "tenant")


@dataclass(frozen=True)
class Exchange:
    """One answer.

    Args:
        route: the path with ``{id}`` for every id, from the service's root on; ``?fields`` at its end when only some
            are asked for.
        body: parsed JSON, or the text of another body.
    """

    service: str
    method: str
    route: str
    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def key(self) -> str:
        """Return the name of the answer in recordings."""
        return f"{self.method} {self.route} {self.status}"


@dataclass
class Wire:
    """Passes every answer to listeners; reads the services' end points from tokens.

    Args:
        identity_url: root of the Identity service.
    """

    identity_url: str
    listeners: list[Callable[[Exchange], None]] = field(default_factory=list)
    last: Exchange | None = None

    def __post_init__(self) -> None:
        self.roots: dict[str, str] = {_root(self.identity_url): "identity"}

    def note(self, response: requests.Response) -> None:
        """Record an answer."""
        method, url = str(response.request.method), str(response.request.url)
        body = _body(response)
        if "X-Subject-Token" in response.headers and isinstance(body, dict):
            self._learn(body)
        service, path, is_partial = self._place(url)
        if service == "load-balancer":
            path = path.replace("/v2.0", "/v2", 1)  # Octavia has the same behind both
        route = template(path) + ("?fields" if is_partial else "")
        exchange = Exchange(service, method, route, response.status_code, body, response.headers)
        self.last = exchange
        for listener in self.listeners:
            listener(exchange)

    def _learn(self, body: Mapping[str, Any]) -> None:
        for entry in body["token"].get("catalog", ()):
            for endpoint in entry["endpoints"]:
                self.roots.setdefault(_root(endpoint["url"]), SERVICES.get(entry["type"], entry["type"]))

    def _place(self, url: str) -> tuple[str, str, bool]:
        """Return service, path, and whether only some of the fields are asked for."""
        parts = urlsplit(url)
        bare = f"{parts.scheme}://{parts.netloc}{parts.path}"
        fitting = [root for root in self.roots if bare == root or bare.startswith(f"{root}/")]
        if not fitting:
            raise AssertionError(f"{url} belongs to no service of the catalogue")
        root = max(fitting, key=len)
        return self.roots[root], bare.removeprefix(root) or "/", "fields" in parse_qs(parts.query)


class TappedSession(HttpSession):
    """The provider's own session, with a wire that records its answers."""

    def __init__(self, wire: Wire, limits: Limits) -> None:
        super().__init__(ssl.create_default_context(), limits, AnswerMemory(limits.max_bytes, limits.max_bytes))
        self._wire = wire

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request and record its answer."""
        response = super().request(method, url, *args, **kwargs)
        self._wire.note(response)
        return response


def template(path: str) -> str:
    """Return a path with placeholders for the parts that differ between calls."""
    found: list[str] = []
    before = ""
    for segment in path.strip("/").split("/"):
        if _ID.fullmatch(segment):
            found.append("{id}")
        elif before in _NAMED_AFTER and segment not in _WORDS:
            found.append(_NAMED_AFTER[before])
        else:
            found.append(segment)
        before = segment
    # The Block Storage API's paths may omit the project's id.
    return f"/{'/'.join(found)}".replace("/v3/{id}/", "/v3/")


def _root(url: str) -> str:
    return re.sub(r"/v\d.*$", "", url.rstrip("/"))


def _body(response: requests.Response) -> Any:
    if not response.content:
        return ""
    try:
        return response.json()
    except ValueError:
        return response.text
