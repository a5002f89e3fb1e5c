"""Reads and writes of Kubernetes objects as plain JSON; synchronous, for the threads in which reconciles run.

Watches are in ``capo/engine/watch.py``. Errors are those of ``errors.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from prometheus_client import Counter

from capo import names
from capo.json_types import Json, Object
from capo.kube.connection import Connection
from capo.kube.errors import Conflict, Expired, Gone, Invalid, KubeError, NotLeading, class_of
from capo.kube.kinds import Kind
from capo.kube.transport import DEFAULT, Answer, Request, Timeouts, Transport

WRITES: Final = Counter(
    "capo_kubernetes_writes_total", "Write requests to the Kubernetes API server that it carried out.", ("kind", "verb")
)
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
MAX_RELISTS: Final = 3
_MANAGED: Final = {"fieldManager": names.FIELD_MANAGER}


@dataclass(frozen=True)
class Snapshot:
    """Every object of a kind at one resource version."""

    items: Sequence[Object]
    resource_version: str


class Kube:
    """One API server with one identity; thread safe.

    Args:
        fence: called before each write of an object; raises while this process must not write.
        is_read_only: send nothing but GET; reviews, which store nothing, are no exception.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        timeouts: Timeouts = DEFAULT,
        fence: Callable[[], None] | None = None,
        pool_size: int = 64,
        is_read_only: bool = False,
    ) -> None:
        self.connection = connection
        self.fence = fence
        self.on_write: Callable[[Kind, str, str, Json | None], None] = lambda *_: None
        """Called after each write, with kind, namespace, name and answer; None: it may or may not have taken effect."""
        self._transport = Transport(connection, timeouts, pool_size, ("GET",) if is_read_only else None)

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object, None if it does not exist."""
        try:
            return self._call(Request("GET", path(kind, namespace, name)))
        except Gone:
            return None

    def read(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object as :meth:`get` does; None proves that it does not exist.

        Raises:
            Gone: its kind is not served at present.
        """
        try:
            return self._call(Request("GET", path(kind, namespace, name)))
        except Gone as error:
            if error.reason != "NotFound":  # the API server does not know the path
                raise
            return None

    def served(self, group: str, kind: str) -> Kind | None:
        """Return a kind in the version that the API server prefers of those that have it, None if it serves none.

        Args:
            group: not empty.
        """
        try:
            found = self._call(Request("GET", f"/apis/{quote(group, safe='')}"))
            # A version of a group need not have all kinds: other providers share groups.
            for version in (str(each["version"]) for each in found.get("versions") or ()):
                resources = self._call(Request("GET", f"/apis/{quote(group, safe='')}/{version}"))
                for each in resources.get("resources") or ():
                    if each["kind"] == kind and "/" not in each["name"]:
                        return Kind(group, version, each["name"], kind, is_namespaced=bool(each["namespaced"]))
        except Gone:
            return None
        return None

    def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str | None = None, limit: int = 500
    ) -> Iterator[Json]:
        """Yield the objects of a kind, page by page; None as namespace means all of them.

        Raises:
            Expired: the pages took too long; start again.
        """
        for page in self._pages(kind, namespace, {"labelSelector": label_selector}, limit):
            yield from _items(kind, page)

    def snapshot(  # noqa: PLR0913 - selectors and limits, each named at its calls
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = 500,
        keep: Callable[[Json], Object] = lambda obj: obj,
    ) -> Snapshot:
        """Return all objects of a kind at one moment; a listing that expires half-way is restarted.

        Args:
            keep: returns what is kept of an object; of the rest there is never more than one page.
        """
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        for attempt in range(1, MAX_RELISTS + 1):
            items: list[Object] = []
            version = ""
            try:
                for page in self._pages(kind, namespace, selectors, limit):
                    items += map(keep, _items(kind, page))
                    version = version or page["metadata"]["resourceVersion"]
            except Expired:
                if attempt == MAX_RELISTS:
                    raise
            else:
                return Snapshot(items, version)
        raise AssertionError("the last attempt returns or raises")

    def newest_version(self, kind: Kind, namespace: str | None = None) -> int:
        """Return the current resource version of a list of a kind."""
        return int(next(self._pages(kind, namespace, {}, 1))["metadata"]["resourceVersion"])

    def patch(
        self, kind: Kind, namespace: str, name: str, body: Mapping[str, Any], *, subresource: str | None = None
    ) -> Json:
        """Apply a merge patch and return the updated object; a resourceVersion in it makes it conditional.

        Raises:
            Conflict: the object changed since that resourceVersion.
            Gone: it does not exist.
            Invalid: the API server refuses the result.
        """
        url = path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return self._write(kind, namespace, name, "patch", Request("PATCH", _query(url, _MANAGED), body, MERGE))

    def json_patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        subresource: str | None = None,
    ) -> Json:
        """Apply a JSON patch (RFC 6902) and return the updated object; see ``patches.py``.

        Raises:
            Conflict: the patch does not apply to the current object: read it again.
            Gone: it does not exist.
            Invalid: the API server refuses the result.
        """
        url = path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        request = Request("PATCH", _query(url, _MANAGED), [*operations], JSON_PATCH)
        try:
            return self._write(kind, namespace, name, "patch", request)
        except Invalid as error:
            if error.is_rejected_patch:
                raise Conflict(str(error), status=error.status, reason=error.reason) from error
            raise

    def create(self, kind: Kind, obj: Mapping[str, Any]) -> Json:
        """Create an object.

        Raises:
            Conflict: an object of that name exists.
        """
        namespace, name = _ident(obj)
        request = Request("POST", _query(path(kind, namespace), _MANAGED), obj)
        return self._write(kind, namespace, name, "create", request)

    def replace(self, kind: Kind, obj: Mapping[str, Any]) -> Json:
        """Replace the object whose resourceVersion the new one carries.

        Raises:
            Conflict: that object changed since then.
        """
        namespace, name = _ident(obj)
        request = Request("PUT", _query(path(kind, namespace, name), _MANAGED), obj)
        return self._write(kind, namespace, name, "update", request)

    def apply(self, kind: Kind, obj: Mapping[str, Any]) -> Json:
        """Create or update an object by server-side apply with our one field manager, taking over fields of others."""
        namespace, name = _ident(obj)
        url = _query(path(kind, namespace, name), {**_MANAGED, "force": "true"})
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return self._write(kind, namespace, name, "apply", Request("PATCH", url, whole, APPLY))

    def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, propagation: str | None = None
    ) -> Json | None:
        """Request the deletion of an object; succeed if it does not exist.

        Returns:
            The object if finalizers keep it; None if it is deleted.

        Args:
            uid: delete only this incarnation.
            propagation: ``Foreground``, ``Background`` or ``Orphan``; None leaves it to the API server.

        Raises:
            Conflict: the existing object has another uid.
        """
        options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        try:
            request = Request("DELETE", path(kind, namespace, name), options)
            answer = self._write(kind, namespace, name, "delete", request)
        except Gone:
            return None
        is_kept = answer.get("kind") == kind.kind and bool(answer["metadata"].get("finalizers"))
        return answer if is_kept else None

    def review(self, kind: Kind, spec: Mapping[str, Any]) -> Json:
        """Send a review (TokenReview, SubjectAccessReview); return its status.

        It stores nothing, so a replica that does not lead may send one, too.
        """
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        return dict(self._call(Request("POST", path(kind, ""), body)).get("status") or {})

    def _pages(
        self, kind: Kind, namespace: str | None, selectors: Mapping[str, str | None], limit: int
    ) -> Iterator[Json]:
        query = {"limit": str(limit)} | {name: value for name, value in selectors.items() if value}
        while True:
            page = self._call(Request("GET", _query(path(kind, namespace or ""), query)))
            yield page
            token = page["metadata"].get("continue")
            if not token:
                return
            query = {**query, "continue": token}

    def _write(self, kind: Kind, namespace: str, name: str, verb: str, request: Request) -> Json:
        try:
            answer = self._call(request, self.fence)
        except KubeError as error:
            if _may_have_taken_effect(error):
                self.on_write(kind, namespace, name, None)
            raise
        WRITES.labels(kind.kind, verb).inc()
        self.on_write(kind, namespace, name or answer["metadata"]["name"], answer)
        return answer

    def _call(self, request: Request, permit: Callable[[], None] | None = None) -> Json:
        """Send a request, and once more with a renewed credential after a 401; fetching one may outlast the lease."""
        credentials = self.connection.credentials
        credential = credentials.current()
        answer = self._transport.send(request, credential, permit)
        if answer.status == 401 and credentials.renew(credential):
            answer = self._transport.send(request, credentials.current(), permit)
        if answer.status not in range(200, 300):
            raise _error(request, answer)
        try:
            return cast(Json, json.loads(answer.data))
        except ValueError as error:
            raise KubeError(f"{request}: the answer is not JSON", status=answer.status) from error


def path(kind: Kind, namespace: str, name: str | None = None) -> str:
    """Return the path of an object, or of a kind's collection if no name is given."""
    parts = ["", "apis", kind.group, kind.version] if kind.group else ["", "api", kind.version]
    if kind.is_namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts += [kind.plural] + ([quote(name, safe="")] if name else [])
    return "/".join(parts)


def _ident(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Return namespace and name; the name is empty if the API server is to generate it."""
    return obj["metadata"].get("namespace") or "", obj["metadata"].get("name") or ""


def _may_have_taken_effect(error: KubeError) -> bool:
    """Return whether a write that failed may have been carried out: its answer was lost, or is of a gateway."""
    if isinstance(error, NotLeading):
        return False  # it was not sent
    return error.status is None or not 300 <= error.status < 500


def _items(kind: Kind, page: Json) -> Iterator[Json]:
    for item in page.get("items") or ():
        # Lists of built-in kinds omit these.
        item.setdefault("apiVersion", kind.api_version)
        item.setdefault("kind", kind.kind)
        yield item


def _error(request: Request, answer: Answer) -> KubeError:
    try:
        status = json.loads(answer.data)
    except ValueError:
        status = None
    status = status if isinstance(status, dict) else {"message": answer.data[:200].decode(errors="replace")}
    message = str(status.get("message") or "")
    error = class_of(answer.status)(
        f"{request}: {answer.status} {message}", status=answer.status, reason=status.get("reason") or ""
    )
    if isinstance(error, Invalid):
        # A patch that does not apply has empty details (apimachinery, NewGenericServerResponse). A refusal by schema or
        # rule names the object in them, and a webhook's has them only if the webhook sends them.
        error.is_rejected_patch = status.get("details") == {}
    return error


def _query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}?{urlencode(query)}" if query else url
