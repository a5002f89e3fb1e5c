"""One scenario on one API server, simulated or real: its requests and every answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from capo.json_types import Json
from capo.kube import client
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER, Kind

MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
IDENTITY: Final = {"type": "Secret", "name": "credentials", "cloudName": "openstack"}
SPEC: Final[Json] = {"identityRef": IDENTITY, "controlPlaneAvailabilityZones": ["a"]}
SERVER_SPEC: Final[Json] = {
    "identityRef": IDENTITY,
    "flavor": "small",
    "image": {"filter": {"name": "ubuntu"}},
    "ports": [{"network": {"filter": {"name": "net"}}}],
    "sshKeyName": "",
}
MACHINE_SPEC: Final[Json] = {
    "identityRef": IDENTITY,
    "flavor": {"filter": {"name": "small"}},
    "image": {"filter": {"name": "ubuntu"}},
}


class Server(Protocol):
    """The API server of a scenario."""

    def send(self, method: str, path: str, query: Mapping[str, str], content_type: str, body: Any) -> tuple[int, Any]:
        """Return status and parsed body of an answer, text where it is no JSON."""

    def events(self, kind: Kind, namespace: str, version: int) -> list[tuple[str, Json]]:
        """Return the events since a version: types and objects."""


@dataclass
class Play:
    """One scenario on one server, and its results."""

    server: Server
    namespace: str
    answers: list[Json] = field(default_factory=list)

    def ask(
        self, method: str, path: str, body: Any = None, type_: str = JSON, query: Mapping[str, str] | None = None
    ) -> Any:
        """Send a request and record the answer."""
        wanted = {"fieldManager": "capo"} if method in ("POST", "PUT", "PATCH") else {}
        if type_ == APPLY:
            wanted["force"] = "true"
        status, answer = self.server.send(method, path, {**wanted, **(query or {})}, type_, body)
        self.answers.append({"request": f"{method} {path}", "status": status, "answer": answer})
        return answer

    def path(self, kind: Kind, name: str = "") -> str:
        return client.path(kind, self.namespace, name or None)

    def create(self, kind: Kind, name: str, content: Json, **metadata: Any) -> Any:
        known = {"name": name, "namespace": self.namespace, **metadata}
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": known, **content}
        return self.ask("POST", self.path(kind), obj)

    def cluster(self, name: str = "s", **metadata: Any) -> Any:
        return self.create(OPENSTACK_CLUSTER, name, {"spec": SPEC}, **metadata)

    def server_object(self, name: str, spec: Json = SERVER_SPEC) -> Any:
        return self.create(OPENSTACK_SERVER, name, {"spec": spec})

    def patch(self, kind: Kind, name: str, body: Any, sub: str = "", type_: str = MERGE) -> Any:
        return self.ask("PATCH", self.path(kind, name) + (f"/{sub}" if sub else ""), body, type_)

    def put(self, kind: Kind, obj: Json, sub: str = "") -> Any:
        return self.ask("PUT", self.path(kind, obj["metadata"]["name"]) + (f"/{sub}" if sub else ""), obj)

    def get(self, kind: Kind, name: str) -> Any:
        return self.ask("GET", self.path(kind, name))

    def delete(self, kind: Kind, name: str, **options: Any) -> Any:
        return self.ask("DELETE", self.path(kind, name), {"apiVersion": "v1", "kind": "DeleteOptions", **options})
