"""A person with the project's credentials and a command line, whose resources are not the provider's."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from capo.json_types import Json
from capo.simulator.clouds import clouds_document
from capo.simulator.server import Incoming
from capo.simulator.testing import credentials

if TYPE_CHECKING:
    from e2e.simulation.simulation import Simulation

_NOVA: Final = "compute 2.26"
"""The first version with tags."""


class CloudUser:
    """A member of a project."""

    def __init__(self, simulation: Simulation, host: str, cloud_name: str = "sim") -> None:
        self._simulation, self._host = simulation, host
        self._site = simulation.network.sites[host]
        self._auth = clouds_document(self._site.cloud, f"http://{host}")["clouds"][cloud_name]["auth"]
        self.project_id: str = self._log_in()

    def _log_in(self) -> str:
        """Get a token; return the id of its project."""
        reply = self._send("POST", "/identity/v3/auth/tokens", credentials(self._auth), {})
        self._token = reply.headers["X-Subject-Token"]
        return str(json.loads(reply.body)["token"]["project"]["id"])

    def ask(self, method: str, path: str, body: Json | None = None) -> Any:
        """Return the body of a good answer.

        Raises:
            ValueError: the service refused.
        """
        reply = self._send(method, path, body, self._headers())
        if reply.status == HTTPStatus.UNAUTHORIZED:  # a plan may take longer than a token is valid
            self._log_in()
            reply = self._send(method, path, body, self._headers())
        if reply.status >= 400:
            raise ValueError(f"{method} {path}: {reply.status} {reply.body!r}")
        self._simulation.truth.register(self._site.cloud, reply.call.created, self._simulation.scheduler.now_s)
        return json.loads(reply.body) if reply.body else None

    def _headers(self) -> dict[str, str]:
        return {"X-Auth-Token": self._token, "OpenStack-API-Version": _NOVA}

    def make(self, path: str, kind: str, **values: Any) -> Json:
        """Create a resource and return it."""
        made: Json = self.ask("POST", path, {kind: values})[kind]
        return made

    def network(self, name: str, cidr: str = "10.9.0.0/24") -> Json:
        """Create a network with a subnet."""
        made = self.make("/network/v2.0/networks", "network", name=name)
        self.make("/network/v2.0/subnets", "subnet", network_id=made["id"], cidr=cidr, ip_version=4)
        return made

    def _send(self, method: str, path: str, body: Json | None, headers: dict[str, str]) -> Any:
        raw = b"" if body is None else json.dumps(body).encode()
        plain, _, query = path.partition("?")
        return self._site.answer(Incoming(method, f"http://{self._host}", plain, query, headers, raw))
