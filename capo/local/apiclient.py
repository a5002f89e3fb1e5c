"""The administrator's client of a rig's API server: plain requests, server-side apply."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import requests
from requests.adapters import HTTPAdapter

from capo.json_types import Json
from capo.local.errors import ApiError, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


_TIMEOUT_S: Final = 30
_PROBE_S: Final = 5
_ESTABLISH_S: Final = 120
_PAUSE_S: Final = 0.2
_THREADS: Final = 4
_FIELD_MANAGER: Final = "capo-local"
_MERGE: Final = "application/merge-patch+json"
_FIRST: Final = ("CustomResourceDefinition", "Namespace")


class Api:
    """Client of an API server, as its administrator."""

    def __init__(self, url: str, *, pki: Path) -> None:
        """Use the administrator's certificate from this folder."""
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy between us and 127.0.0.1
        self._session.verify = str(pki / "ca.crt")
        self._session.cert = (str(pki / "admin.crt"), str(pki / "admin.key"))
        self._session.mount("https://", HTTPAdapter(pool_maxsize=2 * _THREADS))
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def answers(self, url: str) -> bool:
        """Return whether a GET of this URL, of the API server or of another process of the rig, is answered by 200."""
        return self._session.get(url, timeout=_PROBE_S).status_code == 200

    def request(self, verb: str, path: str, **options: Any) -> Json:
        """Return the answer to a request; it is retried while the server is too busy to answer or to open a connection.

        Args:
            path: begins with ``/api`` or ``/apis``.
            options: as ``requests`` takes them.

        Raises:
            ApiError: the status is not 2xx.
        """
        limit = time.monotonic() + _ESTABLISH_S
        while True:
            is_over = time.monotonic() >= limit
            try:
                answer = self._session.request(verb, self.url + path, timeout=_TIMEOUT_S, **options)
            except requests.exceptions.SSLError as error:
                # A busy API server ends a handshake after ten seconds; a certificate that is refused stays refused.
                if "EOF" not in str(error) or verb == "POST" or is_over:
                    raise
                time.sleep(_PAUSE_S)
                continue
            if answer.status_code != 429 or is_over:  # a new kind's watch cache is still empty
                break
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        if not answer.ok:
            raise ApiError(f"{verb} {path}: {answer.status_code} {_reason(answer)}", status=answer.status_code)
        body: Json = answer.json()
        return body

    def get(self, path: str) -> Json:
        """Return the object or list at this path."""
        return self.request("GET", path)

    def find(self, path: str) -> Json | None:
        """Return the object at this path, None if there is none."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def patch(self, path: str, patch: Json) -> Json:
        """Apply a merge patch, as ``kubectl patch --type=merge`` does; return the object as stored."""
        return self.request("PATCH", path, data=json.dumps(patch), headers={"Content-Type": _MERGE})

    def change(self, path: str, change: Callable[[Json], Json]) -> Json:
        """Write an object back as a function changed it; retried after a conflict."""
        limit = time.monotonic() + _ESTABLISH_S
        while True:
            try:
                return self.request("PUT", path, json=change(self.get(path)))
            except ApiError as error:
                if error.status != 409 or time.monotonic() > limit:
                    raise

    def delete(self, path: str) -> None:
        """Request the deletion of the object at this path; a missing one counts as deleted."""
        try:
            self.request("DELETE", path)
        except ApiError as error:
            if error.status != 404:
                raise

    def wait_allowed(self, user: str, verb: str, group: str, resource: str, *, namespace: str) -> None:
        """Wait until a user may do something: the API server applies new roles some time after it has accepted them.

        Raises:
            NotReadyError: the user may not after some time.
        """
        wanted = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": wanted},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        _until(
            lambda: bool(self.request("POST", path, json=review)["status"]["allowed"]),
            f"{user} may not {verb} {resource} in {namespace}",
        )

    def wait_namespaces_deleted(self) -> None:
        """Wait until no namespace is being deleted.

        Raises:
            NotReadyError: one still is after some time; a rig without controllers never ends a deletion.
        """

        def none_is_terminating() -> bool:
            return all("deletionTimestamp" not in each["metadata"] for each in self.get("/api/v1/namespaces")["items"])

        _until(none_is_terminating, "a namespace is still being deleted")

    def path_of(self, manifest: Json) -> str:
        """Return the path of an object, with the namespace ``default`` if it names none."""
        plural, is_namespaced = self._resource(manifest["apiVersion"], manifest["kind"])
        metadata = manifest["metadata"]
        namespace = f"/namespaces/{metadata.get('namespace', 'default')}" if is_namespaced else ""
        return f"{_base(manifest['apiVersion'])}{namespace}/{plural}/{metadata['name']}"

    def apply(self, manifests: Iterable[Json]) -> list[Json]:
        """Apply these objects by server-side apply; return them as stored.

        CRDs and namespaces are applied first, and the rest waits until they are usable.
        """
        wanted = list(manifests)
        crds = [manifest for manifest in wanted if manifest["kind"] == _FIRST[0]]
        namespaces = [manifest for manifest in wanted if manifest["kind"] == _FIRST[1]]
        others = [manifest for manifest in wanted if manifest["kind"] not in _FIRST]
        done = self._apply_all(crds)
        for crd in crds:
            self._wait_established(crd)
        return done + self._apply_all(namespaces) + self._apply_all(others)

    def _apply_all(self, manifests: list[Json]) -> list[Json]:
        if len(manifests) <= 1:
            return [self._apply_one(manifest) for manifest in manifests]
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(self._apply_one, manifests))

    def _apply_one(self, manifest: Json) -> Json:
        return self.request(
            "PATCH",
            self.path_of(manifest),
            params={"fieldManager": _FIELD_MANAGER, "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            data=json.dumps(manifest),
        )

    def _wait_established(self, crd: Json) -> None:
        path = self.path_of(crd)

        def is_established() -> bool:
            conditions = self.get(path).get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        _until(is_established, f"{crd['metadata']['name']} is not established")
        spec = crd["spec"]
        served = [f"{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]]
        _until(
            lambda: all(self._is_served(version, spec["names"]["kind"]) for version in served),
            f"{crd['metadata']['name']} is not served in {', '.join(served)}",
        )

    def _is_served(self, api_version: str, kind: str) -> bool:
        """Return whether a kind can be listed: discovery may show it before, or still show its former state."""
        known = self._lookup(api_version, kind)
        if known is None:
            return False
        try:
            self.request("GET", f"{_base(api_version)}/{known[0]}", params={"limit": 1})
        except ApiError as error:
            return error.status != 404  # objects that no webhook converts yet are no reason to wait
        return True

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        known = self._resources.get((api_version, kind)) or self._lookup(api_version, kind)
        if known is None:
            raise ApiError(f"the API server knows no {kind} in {api_version}", status=404)
        return known

    def _lookup(self, api_version: str, kind: str) -> tuple[str, bool] | None:
        """Request the kinds of a group; cache them all."""
        listed = self.find(_base(api_version))
        if listed is None:
            return None
        for resource in listed["resources"]:
            if "/" not in resource["name"]:
                self._resources[api_version, resource["kind"]] = (resource["name"], resource["namespaced"])
        return self._resources.get((api_version, kind))


def _base(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _reason(answer: requests.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError):
        return answer.text[:600]


def _until(is_so: Callable[[], bool], complaint: str) -> None:
    limit = time.monotonic() + _ESTABLISH_S
    while not is_so():
        if time.monotonic() > limit:
            raise NotReadyError(f"{complaint} after {_ESTABLISH_S} s")
        time.sleep(0.1)
