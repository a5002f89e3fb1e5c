"""A simulated and a real API server with the same interface."""

from __future__ import annotations

import contextlib
import itertools
import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

import requests

from capo.json_types import Json
from capo.kube import client
from capo.kube.event_objects import EVENT
from capo.kube.kinds import LEASE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET, Kind
from capo.local.rig import Rig
from e2e.simulation.apiserver import ApiServer
from e2e.simulation.registry import Admit
from e2e.simulation.tests.play import JSON, MACHINE_SPEC, SERVER_SPEC, SPEC

NOW_S: Final = 1_800_000_000.0
ELSEWHERE: Final = "default"
"""A namespace that no scenario uses."""
MARKERS: Final[Mapping[Kind, Json]] = {
    EVENT: {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "capo-controller-manager",
        "reportingInstance": "one",
        "action": "Reconciling",
        "reason": "Test",
        "regarding": {"apiVersion": "v1", "kind": "Namespace", "namespace": ELSEWHERE, "name": ELSEWHERE},
        "type": "Normal",
    },
    SECRET: {},
    LEASE: {"spec": {}},
    OPENSTACK_SERVER: {"spec": SERVER_SPEC},
    OPENSTACK_MACHINE: {"spec": MACHINE_SPEC},
    OPENSTACK_CLUSTER: {"spec": SPEC},
}
"""The content of an object of each kind whose events are compared."""


def new_server(admit: Admit | None = None) -> ApiServer:
    """Return a server without objects whose time stands still and whose uids count up."""
    numbers = itertools.count(1)
    return ApiServer(now=lambda: NOW_S, new_uid=lambda: f"00000000-0000-4000-8000-{next(numbers):012d}", admit=admit)


WATCH_S: Final = 60


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
        """Return all events before that of an object that is created now, in another namespace."""
        name, found = f"marker-{uuid.uuid4()}", list[tuple[str, Json]]()
        with self._marked(kind, name):
            for type_, obj in self._watched(kind, version):
                if obj["metadata"].get("name") == name:
                    return found
                if obj["metadata"].get("namespace") == namespace:
                    found.append((type_, obj))
        raise AssertionError(f"the watch of {kind.plural} ended after {found}")

    @contextlib.contextmanager
    def _marked(self, kind: Kind, name: str) -> Iterator[None]:
        metadata = {"name": name, "namespace": ELSEWHERE}
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **MARKERS[kind]}
        status, answer = self.send("POST", client.path(kind, ELSEWHERE), {}, JSON, obj)
        assert status == 201, answer
        yield
        self.send("DELETE", client.path(kind, ELSEWHERE, name), {}, JSON, None)

    def _watched(self, kind: Kind, version: int) -> Iterator[tuple[str, Json]]:
        query = {"watch": "1", "resourceVersion": str(version), "timeoutSeconds": str(WATCH_S)}
        url = self.url + client.path(kind, "")
        with self.session.get(url, params=query, timeout=2 * WATCH_S, stream=True) as answer:
            for line in map(json.loads, answer.iter_lines()):
                yield line["type"], line["object"]


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
