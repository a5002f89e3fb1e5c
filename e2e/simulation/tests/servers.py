"""A simulated and a real API server with the same interface."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import requests

from capo.json_types import Json
from capo.kube import client
from capo.kube.kinds import Kind
from capo.local.rig import Rig
from e2e.simulation.apiserver import ApiServer
from e2e.simulation.registry import Admit

NOW_S: Final = 1_800_000_000.0


def new_server(admit: Admit | None = None) -> ApiServer:
    """Return a server without objects whose time stands still and whose uids count up."""
    numbers = itertools.count(1)
    return ApiServer(now=lambda: NOW_S, new_uid=lambda: f"00000000-0000-4000-8000-{next(numbers):012d}", admit=admit)


class Simulated:
    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def send(self, method: str, path: str, query: Mapping[str, str], content_type: str, body: Any) -> tuple[int, Any]:
        answer = self.server.handle(method, path, query, content_type, _data(body) or b"")
        self.server.check_unchanged()
        return answer.status, _parsed(answer.body)

    def events(self, kind: Kind, namespace: str, version: int) -> list[tuple[str, Json]]:
        return [(event.type, event.obj) for event in self.server.events_since(kind, version, namespace)]


class Real:
    """Sends requests as the administrator of a rig."""

    def __init__(self, url: str, session: requests.Session) -> None:
        self.url, self.session = url, session

    def send(self, method: str, path: str, query: Mapping[str, str], content_type: str, body: Any) -> tuple[int, Any]:
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        answer = self.session.request(
            method, self.url + path, params=dict(query), headers=headers, data=_data(body), timeout=60
        )
        return answer.status_code, _parsed(answer.content)

    def events(self, kind: Kind, namespace: str, version: int) -> list[tuple[str, Json]]:
        query = {"watch": "1", "resourceVersion": str(version), "timeoutSeconds": "1"}
        answer = self.session.get(self.url + client.path(kind, namespace), params=query, timeout=60)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        return [(line["type"], line["object"]) for line in lines]


@contextlib.contextmanager
def session_of(rig: Rig) -> Iterator[requests.Session]:
    """Yield a session of a rig's administrator."""
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(rig.layout.pki / "ca.crt")
        session.cert = (str(rig.layout.pki / "admin.crt"), str(rig.layout.pki / "admin.key"))
        yield session


def _data(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()
