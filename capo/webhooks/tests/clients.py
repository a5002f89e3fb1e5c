"""A client of a real API server that has our webhooks; sends requests as ``kubectl`` does, in any version."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import requests

from api.model import GROUP
from capo.json_types import Json
from capo.local.rig import Rig

CLUSTER_SCOPED = ("OpenStackClusterIdentity",)


@dataclass(frozen=True)
class Client:
    """Sends requests in one namespace."""

    rig: Rig
    session: requests.Session
    namespace: str

    @cached_property
    def url(self) -> str:
        """The rig reads it from a file each time."""
        return self.rig.url

    def path(self, version: str, kind: str, name: str = "") -> str:
        scope = "" if kind in CLUSTER_SCOPED else f"namespaces/{self.namespace}/"
        plural = f"{kind.lower()}s".replace("identitys", "identities")
        base = f"{self.url}/apis/{GROUP}/{version}/{scope}{plural}"
        return f"{base}/{name}" if name else base

    def read(self, version: str, kind: str, name: str) -> Json:
        answer = self.session.get(self.path(version, kind, name), timeout=120)
        answer.raise_for_status()
        obj: Json = answer.json()
        return obj

    def apply(
        self,
        version: str,
        kind: str,
        spec: Json,
        *,
        by: str = "kubectl",
        name: str = "one",
        annotations: Json | None = None,
        params: Json | None = None,
    ) -> requests.Response:
        metadata = {"name": name} | ({"annotations": annotations} if annotations else {})
        obj = {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, "spec": spec}
        return self.session.patch(
            self.path(version, kind, name),
            params={"fieldManager": by, "fieldValidation": "Strict", **(params or {})},
            headers={"Content-Type": "application/apply-patch+yaml"},
            data=json.dumps(obj),
            timeout=120,
        )

    def create(self, obj: Json, *, is_kept: bool) -> requests.Response:
        version = obj["apiVersion"].rpartition("/")[2]
        params = {"fieldValidation": "Strict"} | ({} if is_kept else {"dryRun": "All"})
        return self.session.post(self.path(version, obj["kind"]), json=obj, params=params, timeout=120)

    def try_put(self, obj: Json, *, subresource: str = "") -> requests.Response:
        """Send an update as a dry run."""
        version, name = obj["apiVersion"].rpartition("/")[2], obj["metadata"]["name"]
        url = f"{self.path(version, obj['kind'], name)}/{subresource}".rstrip("/")
        params = {"fieldValidation": "Strict", "dryRun": "All"}
        return self.session.put(url, json=obj, params=params, timeout=120)

    def merge(self, version: str, kind: str, name: str, change: Json, *, subresource: str = "") -> requests.Response:
        return self.session.patch(
            f"{self.path(version, kind, name)}/{subresource}".rstrip("/"),
            headers={"Content-Type": "application/merge-patch+json"},
            data=json.dumps(change),
            timeout=120,
        )

    def put(self, version: str, kind: str, obj: Json, *, subresource: str = "") -> requests.Response:
        url = f"{self.path(version, kind, obj['metadata']['name'])}/{subresource}".rstrip("/")
        return self.session.put(url, json=obj, timeout=120)

    def delete(self, version: str, kind: str, name: str) -> requests.Response:
        return self.session.delete(self.path(version, kind, name), timeout=120)


def until(reached: Callable[[], object]) -> None:
    ends = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.1)


def ok(answer: requests.Response) -> Json:
    assert answer.status_code in (200, 201), answer.text
    obj: Json = answer.json()
    return obj
