"""A small Kubernetes API server in memory, with fault injection: for tests of feed, lease and writes.

Supports discovery, list with pages, watch with bookmarks, create, replace, merge patch, server-side apply (as a merge),
delete with finalizers and the status subresource; resource versions are real, schemas are not.
"""

from __future__ import annotations

import asyncio
import copy
import json
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
from aiohttp import web

from capo.json_types import Json
from capo.kube.connection import Connection
from capo.kube.kinds import (
    CLUSTER,
    LEASE,
    MACHINE,
    NAMESPACE,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_SERVER,
    SECRET,
    Kind,
)

KINDS = (CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET, LEASE)
EVENT = Kind("events.k8s.io", "v1", "events", "Event")
CORE_EVENT = Kind("", "v1", "events", "Event")
"""The same objects as of the other group; a test finds them there, with the fields as they were sent."""
CRD = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False)
BUILT_IN = (EVENT, CRD, NAMESPACE)
"""kopf waits for the last two to be served, although it reads neither."""


@dataclass
class _Watcher:
    kind: Kind
    since: int
    queue: asyncio.Queue[Json | None] = field(default_factory=asyncio.Queue)


class FakeApiServer:
    """Runs in a thread of its own; state may be changed from any thread.

    Args:
        tls: certificate to serve HTTPS with; None serves HTTP.

    ``forbids`` returns for a method and path the reason of a 403, or the empty string to allow the request.
    """

    def __init__(self, kinds: tuple[Kind, ...] = (*KINDS, *BUILT_IN), *, tls: ssl.SSLContext | None = None) -> None:
        self.kinds, self._tls = list(kinds), tls
        self.requests: list[tuple[str, str]] = []
        self.fail_next: list[tuple[Callable[[str, str], bool], int]] = []
        self.lose_next: list[Callable[[str, str], bool]] = []
        """Requests that are carried out and whose answers are lost."""
        self.hang: Callable[[str, str], bool] = lambda _method, _path: False
        self.forbids: Callable[[str, str], str] = lambda _method, _path: ""
        self.token: str | None = None
        self.reviews: dict[str, Json] = {}
        self._lock = threading.RLock()
        self._objects: dict[tuple[Kind, str, str], Json] = {}
        self._history: list[tuple[int, Kind, Json]] = []
        self._expired_before = 0
        self._version = 100
        self._watchers: list[_Watcher] = []
        self._loop = asyncio.new_event_loop()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.port = 0

    @contextmanager
    def running(self) -> Iterator[FakeApiServer]:
        self._thread.start()
        assert self._is_ready.wait(60)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(60)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def connection(self) -> Connection:
        return Connection(self.url, namespace="default")

    def put(self, kind: Kind, obj: Json) -> Json:
        """Create or replace an object, as another client."""
        with self._lock:
            metadata = obj["metadata"]
            ident = (kind, metadata.get("namespace", ""), metadata["name"])
            return self._store(ident, copy.deepcopy(obj), old=self._objects.get(ident))

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        with self._lock:
            self._drop((kind, namespace, name))

    def read(self, kind: Kind, namespace: str, name: str) -> Json | None:
        with self._lock:
            return copy.deepcopy(self._objects.get((kind, namespace, name)))

    def all(self, kind: Kind) -> list[Json]:
        with self._lock:
            return [copy.deepcopy(o) for (k, _, _), o in self._objects.items() if k == kind]

    def writes(self) -> list[tuple[str, str]]:
        return [request for request in self.requests if request[0] != "GET"]

    def watches(self) -> int:
        return len(self._watchers)

    def lose_history(self) -> None:
        """Forget the history: watches that resume get 410."""
        with self._lock:
            self._history.clear()
            self._expired_before = self._version

    def backup(self) -> tuple[int, dict[tuple[Kind, str, str], Json]]:
        """Return the state of etcd."""
        with self._lock:
            return self._version, copy.deepcopy(self._objects)

    def restore(self, backup: tuple[int, dict[tuple[Kind, str, str], Json]]) -> None:
        """Restore a backup and restart: watches end; one from a later version gets no events until then."""
        with self._lock:
            self._version, objects = backup
            self._objects = copy.deepcopy(objects)
            self._history.clear()
            self._expired_before = self._version
        self.drop_watches()

    def send_error(self, code: int) -> None:
        """Send an ERROR into every watch."""
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "told to"}
        self._tell(lambda _watcher: {"type": "ERROR", "object": status})

    def drop_watches(self) -> None:
        """Cut every watch."""
        self._tell(lambda _watcher: None)

    def _tell(self, message: Callable[[_Watcher], Json | None]) -> None:
        with self._lock:
            for watcher in list(self._watchers):
                self._loop.call_soon_threadsafe(watcher.queue.put_nowait, message(watcher))

    def _store(self, ident: tuple[Kind, str, str], obj: Json, *, old: Json | None) -> Json:
        self._version += 1
        metadata = obj["metadata"]
        metadata["uid"] = old["metadata"]["uid"] if old else metadata.get("uid") or str(uuid.uuid4())
        metadata["generation"] = old["metadata"]["generation"] + (old.get("spec") != obj.get("spec")) if old else 1
        metadata["resourceVersion"] = str(self._version)
        obj.update(apiVersion=ident[0].api_version, kind=ident[0].kind)
        self._objects[ident] = obj
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self._drop(ident)
        else:
            self._record("MODIFIED" if old else "ADDED", ident[0], obj)
        return copy.deepcopy(obj)

    def _drop(self, ident: tuple[Kind, str, str]) -> None:
        obj = self._objects.pop(ident)
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self._record("DELETED", ident[0], obj)

    def _record(self, type_: str, kind: Kind, obj: Json) -> None:
        event = {"type": type_, "object": copy.deepcopy(obj)}
        self._history.append((self._version, kind, event))
        for watcher in list(self._watchers):  # a watcher that ends concurrently must not hide the next
            if watcher.kind == kind and self._version > watcher.since:
                self._loop.call_soon_threadsafe(watcher.queue.put_nowait, event)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._is_ready.set()
        self._loop.run_forever()
        self._tell(lambda _watcher: None)
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method, path = request.method, request.path
        self.requests.append((method, path))
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return _status(401)
        while self.hang(method, path):  # noqa: ASYNC110 - tests change it from other threads
            await asyncio.sleep(0.02)
        if why := self.forbids(method, path):
            return _status(403, why)
        for switch in list(self.fail_next):
            if switch[0](method, path):
                self.fail_next.remove(switch)
                return _status(switch[1])
        answer = await self._answer(request, [part for part in path.split("/") if part])
        for lost in list(self.lose_next):
            if lost(method, path):
                self.lose_next.remove(lost)
                assert request.transport
                request.transport.close()
        return answer

    async def _answer(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        if parts[0] == "version":
            return web.json_response({"major": "1", "minor": "36"})
        group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else None, parts[2:])
        if len(rest) < 2:
            return self._discover(group, rest)
        return await self._resource(request, group or "", rest)

    def _discover(self, group: str | None, rest: list[str]) -> web.StreamResponse:
        if group is None:
            versions = {(k.group, k.version) for k in self.kinds if k.group}
            groups: dict[str, list[Json]] = {}
            for name, version in sorted(versions):
                groups.setdefault(name, []).append({"groupVersion": f"{name}/{version}", "version": version})
            return web.json_response(
                {"groups": [{"name": n, "versions": v, "preferredVersion": v[0]} for n, v in groups.items()]}
            )
        if not rest and not group:
            return web.json_response({"versions": ["v1"]})
        if not rest:
            served = [{"version": v} for v in sorted({k.version for k in self.kinds if k.group == group})]
            return web.json_response({"versions": served}) if served else _status(404)
        found = [k for k in self.kinds if (k.group, k.version) == (group, rest[0])]
        verbs = ["get", "list", "watch", "patch", "create", "update", "delete"]
        listed = [
            {"name": k.plural, "singularName": "", "kind": k.kind, "namespaced": k.is_namespaced, "verbs": verbs}
            for k in found
        ]
        return web.json_response({"resources": listed}) if found else _status(404)

    async def _resource(self, request: web.Request, group: str, rest: list[str]) -> web.StreamResponse:
        version, rest = rest[0], rest[1:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        if rest[0] in self.reviews:
            return web.json_response({"status": self.reviews[rest[0]]}, status=201)
        if (group, version, rest[0]) == (CORE_EVENT.group, CORE_EVENT.version, CORE_EVENT.plural):
            group = EVENT.group
        kind = next((k for k in self.kinds if (k.group, k.version, k.plural) == (group, version, rest[0])), None)
        if kind is None:
            return _status(404)
        if len(rest) > 1:
            return await self._single(request, (kind, namespace, rest[1]), rest[2] if len(rest) > 2 else None)
        if request.method == "POST":
            return self._create(kind, namespace, await request.json())
        if request.query.get("watch"):
            return await self._watch(request, kind)
        return self._list(kind, namespace, request.query)

    def _list(self, kind: Kind, namespace: str, query: Any) -> web.StreamResponse:
        with self._lock:
            items = sorted(
                (o for (k, ns, _), o in self._objects.items() if k == kind and (not namespace or ns == namespace)),
                key=lambda o: o["metadata"]["name"],
            )
            start, limit = int(query.get("continue") or 0), int(query.get("limit") or 0)
            page = items[start : start + limit] if limit else items
            metadata = {"resourceVersion": str(self._version)}
            if limit and start + limit < len(items):
                metadata["continue"] = str(start + limit)
            return web.json_response({"metadata": metadata, "items": page}, dumps=json.dumps)

    async def _watch(self, request: web.Request, kind: Kind) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        since = int(request.query.get("resourceVersion") or 0)
        watcher = _Watcher(kind, since)
        with self._lock:
            if since < self._expired_before:
                gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
                watcher.queue.put_nowait(gone)
                watcher.queue.put_nowait(None)
            for version, of, event in self._history:
                if of == kind and version > since:
                    watcher.queue.put_nowait(event)
            self._watchers.append(watcher)
        try:
            while (message := await watcher.queue.get()) is not None:
                await response.write(json.dumps(message).encode() + b"\n")
        finally:
            self._watchers.remove(watcher)
        return response

    def _create(self, kind: Kind, namespace: str, obj: Json) -> web.StreamResponse:
        with self._lock:
            ident = (kind, namespace, obj["metadata"]["name"])
            if ident in self._objects:
                return _status(409)
            return web.json_response(self._store(ident, obj, old=None), status=201)

    async def _single(
        self, request: web.Request, ident: tuple[Kind, str, str], subresource: str | None
    ) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        with self._lock:
            old = self._objects.get(ident)
            is_apply = "apply-patch" in request.headers.get("Content-Type", "")
            if old is None:
                return web.json_response(self._store(ident, body, old=None), status=201) if is_apply else _missing()
            is_conditional = request.method != "DELETE" and isinstance(body, dict)
            expected = (body.get("metadata") or {}).get("resourceVersion") if is_conditional else None
            if expected and expected != old["metadata"]["resourceVersion"]:
                return _status(409)
            match request.method:
                case "GET":
                    return web.json_response(old)
                case "DELETE":
                    return self._delete(ident, old, body)
                case "PUT":
                    return web.json_response(self._store(ident, body, old=old))
            return self._patch(ident, old, body, subresource)

    def _patch(
        self, ident: tuple[Kind, str, str], old: Json, body: Json | list[Json], subresource: str | None
    ) -> web.StreamResponse:
        if isinstance(body, list):
            return self._json_patch(ident, old, body)
        allowed = {"status", "metadata"} if subresource == "status" else set(body) - {"status"}
        new = _merged(old, {name: value for name, value in body.items() if name in allowed})
        return web.json_response(old if new == old else self._store(ident, new, old=old))

    def _json_patch(self, ident: tuple[Kind, str, str], old: Json, operations: list[Json]) -> web.StreamResponse:
        try:
            return web.json_response(self._store(ident, jsonpatch.apply_patch(old, operations), old=old))
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
            return _status(422, "the server rejected our request due to an error in our request", details={})

    def _delete(self, ident: tuple[Kind, str, str], old: Json, options: Json) -> web.StreamResponse:
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted and wanted != old["metadata"]["uid"]:
            return _status(409)
        if old["metadata"].get("finalizers"):
            new = copy.deepcopy(old)
            new["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
            return web.json_response(self._store(ident, new, old=old))
        self._drop(ident)
        return web.json_response({"kind": "Status", "status": "Success", "details": {"uid": old["metadata"]["uid"]}})


def _merged(old: Json, patch: Json) -> Json:
    new = dict(old)
    for name, value in patch.items():
        if value is None:
            new.pop(name, None)
        elif isinstance(value, dict):
            new[name] = _merged(old.get(name) if isinstance(old.get(name), dict) else {}, value)  # type: ignore[arg-type]
        else:
            new[name] = value
    return copy.deepcopy(new)


def _missing() -> web.Response:
    return _status(404, reason="NotFound")


def _status(code: int, message: str = "", **fields: Any) -> web.Response:
    message = message or f"told to say {code}"
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    return web.json_response({**body, **fields}, status=code)
