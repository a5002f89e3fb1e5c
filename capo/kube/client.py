"""Reads and writes of Kubernetes objects as plain JSON; synchronous, for the threads in which passes run.

Watching is not done here but in ``capo/engine/feed.py``. Errors are those of ``errors.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

import urllib3
from prometheus_client import Counter

from capo import names
from capo.kube.connection import Connection
from capo.kube.errors import Expired, Gone, KubeError, class_of
from capo.kube.kinds import Kind

Object = dict[str, Any]

WRITES: Final = Counter(
    "capo_kubernetes_writes_total", "Write requests to the Kubernetes API server that it carried out.", ("kind", "verb")
)
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
MAX_RELISTS: Final = 3
_MANAGED: Final = {"fieldManager": names.FIELD_MANAGER}


@dataclass(frozen=True)
class Timeouts:
    """Limits of one request, in seconds: to connect, and between two packets of the answer."""

    connect_s: float = 5.0
    read_s: float = 30.0


@dataclass(frozen=True)
class Snapshot:
    """Every object of a kind as it was at one resource version."""

    items: list[Object]
    resource_version: str


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"
    query: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Kube:
    """One API server as one identity; any thread may use it.

    Args:
        fence: called before each write of an object; raises while this process must not write.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        timeouts: Timeouts = Timeouts(),
        fence: Callable[[], None] | None = None,
        pool_size: int = 64,
    ) -> None:
        self.connection = connection
        self.fence = fence
        tls: dict[str, Any] = {}
        if connection.server.startswith("https:"):
            tls = {"ssl_context": connection.tls()}
            if connection.server_name:
                tls |= {"server_hostname": connection.server_name, "assert_hostname": connection.server_name}
        self._timeout = urllib3.Timeout(connect=timeouts.connect_s, read=timeouts.read_s)
        self._pool = urllib3.PoolManager(num_pools=2, maxsize=pool_size, retries=False, **tls)

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return the object, None when there is none."""
        try:
            return self._call(_Request("GET", path(kind, namespace, name)))
        except Gone:
            return None

    def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str | None = None, limit: int = 500
    ) -> Iterator[Object]:
        """Yield the objects of a kind, page by page; None as namespace means all of them.

        Raises:
            Expired: the pages took too long; begin again.
        """
        for page in self._pages(kind, namespace, label_selector, limit):
            yield from _items(kind, page)

    def snapshot(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str | None = None, limit: int = 500
    ) -> Snapshot:
        """Return all objects of a kind as of one moment; a listing that expires half-way is begun again."""
        for attempt in range(1, MAX_RELISTS + 1):
            try:
                pages = list(self._pages(kind, namespace, label_selector, limit))
            except Expired:
                if attempt == MAX_RELISTS:
                    raise
            else:
                items = [item for page in pages for item in _items(kind, page)]
                return Snapshot(items, pages[0]["metadata"]["resourceVersion"])
        raise AssertionError("the last attempt returns or raises")

    def newest_version(self, kind: Kind, namespace: str | None = None) -> int:
        """Return the resource version at which a list of a kind is now."""
        return int(next(self._pages(kind, namespace, None, 1))["metadata"]["resourceVersion"])

    def patch(
        self, kind: Kind, namespace: str, name: str, body: Mapping[str, Any], *, subresource: str | None = None
    ) -> Object:
        """Apply a merge patch and return the object as it is then; a resourceVersion in it makes it conditional.

        Raises:
            Conflict: the object changed since that resourceVersion.
            Gone: it does not exist.
            Invalid: the API server refuses the result.
        """
        url = path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self._write(kind, "patch", _Request("PATCH", url, body, MERGE, _MANAGED))

    def create(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create an object.

        Raises:
            Conflict: one of that name exists.
        """
        url = path(kind, obj["metadata"].get("namespace", ""))
        return self._write(kind, "create", _Request("POST", url, obj, query=_MANAGED))

    def replace(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Put an object in the place of the one whose resourceVersion it carries.

        Raises:
            Conflict: that one changed meanwhile.
        """
        url = path(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        return self._write(kind, "update", _Request("PUT", url, obj, query=_MANAGED))

    def apply(self, kind: Kind, obj: Mapping[str, Any]) -> Object:
        """Create or update an object by server-side apply as our one field manager, taking fields from others."""
        url = path(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return self._write(kind, "apply", _Request("PATCH", url, whole, APPLY, {**_MANAGED, "force": "true"}))

    def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, propagation: str | None = None
    ) -> Object | None:
        """Ask for the deletion of an object; one that is gone is fine.

        Returns:
            The object if finalizers keep it for now; None when it is gone.

        Args:
            uid: delete only this incarnation.
            propagation: ``Foreground``, ``Background`` or ``Orphan``; None leaves it to the API server.

        Raises:
            Conflict: the object there has another uid.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        try:
            answer = self._write(kind, "delete", _Request("DELETE", path(kind, namespace, name), options))
        except Gone:
            return None
        is_kept = answer.get("kind") == kind.kind and bool(answer["metadata"].get("finalizers"))
        return answer if is_kept else None

    def review(self, kind: Kind, spec: Mapping[str, Any]) -> Object:
        """Ask a question that is put as a POST (TokenReview, SubjectAccessReview); return its status.

        It stores nothing, so a replica that does not lead may ask too.
        """
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        return dict(self._call(_Request("POST", path(kind, ""), body)).get("status") or {})

    def _pages(self, kind: Kind, namespace: str | None, label_selector: str | None, limit: int) -> Iterator[Object]:
        query = {"limit": str(limit)} | ({"labelSelector": label_selector} if label_selector else {})
        while True:
            page = self._call(_Request("GET", path(kind, namespace or ""), query=query))
            yield page
            token = page["metadata"].get("continue")
            if not token:
                return
            query = {**query, "continue": token}

    def _write(self, kind: Kind, verb: str, request: _Request) -> Object:
        if self.fence:
            self.fence()
        answer = self._call(request)
        WRITES.labels(kind.kind, verb).inc()
        return answer

    def _call(self, request: _Request) -> Object:
        answer = self._send(request)
        if answer.status == 401 and self.connection.credentials.fetch:
            self.connection.credentials.forget()
            answer = self._send(request)
        if answer.status >= 400:
            raise _error(request, answer.status, answer.data)
        return cast(Object, json.loads(answer.data))

    def _send(self, request: _Request) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": names.FIELD_MANAGER, **self.connection.authorization()}
        data = None
        if request.body is not None:
            headers["Content-Type"] = request.content_type
            data = json.dumps(request.body, separators=(",", ":")).encode()
        url = self.connection.server + request.path + (f"?{urlencode(request.query)}" if request.query else "")
        try:
            return self._pool.request(
                request.method, url, body=data, headers=headers, timeout=self._timeout, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise KubeError(f"{request}: no answer from the API server: {error}") from error


def path(kind: Kind, namespace: str, name: str | None = None) -> str:
    """Return the path of an object, or of a kind's collection when no name is given."""
    parts = ["", "apis", kind.group, kind.version] if kind.group else ["", "api", kind.version]
    if kind.is_namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts += [kind.plural] + ([quote(name, safe="")] if name else [])
    return "/".join(parts)


def _items(kind: Kind, page: Object) -> Iterator[Object]:
    for item in page.get("items") or ():
        # Lists of built-in kinds leave these out.
        item.setdefault("apiVersion", kind.api_version)
        item.setdefault("kind", kind.kind)
        yield item


def _error(request: _Request, status: int, data: bytes) -> KubeError:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    answer = answer if isinstance(answer, dict) else {"message": data[:200].decode(errors="replace")}
    text = f"{request}: {status} {answer.get('message', '')}"
    return class_of(status)(text, status=status, reason=answer.get("reason") or "")
