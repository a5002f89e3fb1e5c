"""The connection to an API server, and its watches: latency, outages, lost answers, late events.

Replaces the connection pool of the Kubernetes client and the feed that kopf drives.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import urllib3

from capo.kube.connection import Connection
from capo.kube.errors import Expired
from capo.kube.kinds import Kind
from e2e.simulation import primitives
from e2e.simulation.apiserver import ApiServer
from e2e.simulation.kubernetes import Response
from e2e.simulation.own_writes import OwnWrites
from e2e.simulation.scheduler import Process, Scheduler, Task

RECONNECT_S: Final = 1.0
OUTAGE_STATUS: Final = 503
DENIED_STATUS: Final = 403


@dataclass(eq=False)
class Line:
    """The present state of the connection to an API server.

    Args:
        latency_s: mean one-way latency.
        watch_s: mean delay of watch events.
        is_down: no request is answered.
        lost: probability that an answer is lost after its request took effect.
        refused: probability that a request is answered by 503 without effect.
        dropped: probability that a watch ends after an event.
        denied: writes to paths with this text are answered by 403, as if the role did not allow them; empty for none.
    """

    latency_s: float = 0.004
    watch_s: float = 0.05
    is_down: bool = False
    lost: float = 0.0
    refused: float = 0.0
    dropped: float = 0.0
    denied: str = ""


@dataclass(eq=False)
class Endpoint:
    """An API server with the connection to it."""

    name: str
    server: ApiServer
    line: Line = field(default_factory=Line)


@dataclass(frozen=True)
class Written:
    """A write of a simulated process to an API server."""

    endpoint: Endpoint
    process: Process | None
    actor: Any
    method: str
    path: str
    status: int


class KubeNetwork:
    """All API servers by host."""

    def __init__(self, scheduler: Scheduler, seed: str) -> None:
        self.scheduler = scheduler
        self.random = random.Random(f"kubernetes {seed}")
        self.endpoints: dict[str, Endpoint] = {}
        self.watch: Callable[[Written], None] = lambda _written: None
        self.own_writes = OwnWrites()
        self.requests = 0

    def add(self, name: str, server: ApiServer) -> Endpoint:
        """Add an API server under a host name."""
        self.endpoints[name] = Endpoint(name, server)
        return self.endpoints[name]

    def send(self, method: str, url: str, body: bytes | None, content_type: str) -> _Reply:
        """Send a request and wait for its answer.

        Raises:
            urllib3.exceptions.HTTPError: there is no answer.
        """
        scheduler = self.scheduler
        task = scheduler.current
        assert task is not None, "only a task sends requests"
        parts = urlsplit(url)
        endpoint = self.endpoints[parts.netloc]
        line = endpoint.line
        scheduler.note(f"{method} {url}")
        if line.is_down:
            scheduler.sleep(self._pause_s(line))
            raise urllib3.exceptions.NewConnectionError(None, "connection refused")  # type: ignore[arg-type]
        if self.random.random() < line.refused:
            scheduler.sleep(self._pause_s(line))
            return _Reply(OUTAGE_STATUS, b'{"kind":"Status","message":"the server is overloaded","code":503}')
        if line.denied and method != "GET" and line.denied in parts.path:
            scheduler.sleep(self._pause_s(line))
            return _Reply(DENIED_STATUS, b'{"kind":"Status","message":"the role does not allow it","code":403}')
        exchange = _Exchange(self, endpoint, task)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        exchange.begin(method, unquote(parts.path), query, content_type, body or b"")
        reply = exchange.wait()
        if method != "GET" and reply.status in range(200, 300):
            self.own_writes.note(task.process, task.actor, reply.data)
        if method != "GET" and self.random.random() < line.lost:
            raise urllib3.exceptions.ReadTimeoutError(None, url, "read timed out")  # type: ignore[arg-type]
        scheduler.pause()
        return reply

    def _pause_s(self, line: Line) -> float:
        return self.random.expovariate(1 / line.latency_s)


class _Reply(Response):
    """An answer as a simulated process reads it."""


class _Exchange:
    def __init__(self, network: KubeNetwork, endpoint: Endpoint, task: Task) -> None:
        self._network, self._endpoint, self._task = network, endpoint, task
        self._reply: _Reply | None = None

    def begin(self, method: str, path: str, query: Mapping[str, str], content_type: str, body: bytes) -> None:
        """Send the request: it takes effect even if its sender dies."""
        pause_s = self._network._pause_s(self._endpoint.line)
        actor = self._task.actor

        def arrive() -> None:
            answer = self._endpoint.server.handle(method, path, query, content_type, body)
            self._network.requests += 1
            self._network.scheduler.note(f"{answer.status} {method} {path}")
            if method != "GET":
                self._network.watch(Written(self._endpoint, self._task.process, actor, method, path, answer.status))
            self._network.scheduler.after(
                self._network._pause_s(self._endpoint.line), lambda: self._settle(_Reply(answer.status, answer.body))
            )

        self._network.scheduler.after(pause_s, arrive)

    def wait(self) -> _Reply:
        """Return the answer."""
        while self._reply is None:
            self._network.scheduler.block()
        return self._reply

    def _settle(self, reply: _Reply) -> None:
        self._reply = reply
        self._network.scheduler.wake(self._task)


class Pool:
    """Replaces ``urllib3.PoolManager`` in the official Kubernetes client."""

    def __init__(self, *_: object, **__: object) -> None:
        self._network = current()

    def request(
        self,
        method: str,
        url: str,
        *,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        **_: object,
    ) -> _Reply:
        """Send a request; see ``urllib3.PoolManager.request``."""
        return self._network.send(method, url, (body or "").encode(), (headers or {}).get("Content-Type", ""))


class Feed:
    """Replaces :class:`capo.engine.watch.Watcher`: one task per kind that lists, then follows the server's history."""

    def __init__(
        self,
        connection: Connection,
        sink: Callable[[Kind, str | None, Mapping[str, Any]], object],
        *,
        namespace: str = "",
        on_listed: Callable[[], None] = lambda: None,
        on_resumed: Callable[[], None] = lambda: None,
    ) -> None:
        self._network = current()
        self._endpoint = self._network.endpoints[urlsplit(connection.server).netloc]
        self._sink, self._namespace = sink, namespace or None
        self._on_listed, self._on_resumed = on_listed, on_resumed
        self._kinds: tuple[Kind, ...] = ()
        self._is_stopping = False
        self._generation = 0

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds that are watched."""
        return self._kinds

    def watch(self, kinds: Iterable[Kind]) -> None:
        """Watch exactly these kinds."""
        wanted = tuple(kinds)
        if [k.api_version for k in wanted] == [k.api_version for k in self._kinds] and wanted == self._kinds:
            return
        self._kinds = wanted
        self.restart()

    def restart(self) -> None:
        """Restart all watches."""
        self._generation += 1
        scheduler = self._network.scheduler
        process = scheduler.current.process if scheduler.current else None
        for kind in self._kinds:
            follow = _Follower(self, kind, self._generation).run
            scheduler.spawn(follow, name=f"watch {kind.plural}", process=process)

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the watches."""
        self._is_stopping = True

    def silent_s(self) -> float:
        """Return for how many seconds the watches have been down."""
        return 0.0


class _Follower:
    """One watch."""

    def __init__(self, feed: Feed, kind: Kind, generation: int) -> None:
        self._feed, self._kind, self._generation = feed, kind, generation
        self._network, self._endpoint = feed._network, feed._endpoint
        self._has_news = False
        self._is_cut = False
        self._task: Task | None = None

    def run(self) -> None:
        scheduler = self._network.scheduler
        self._task = scheduler.current
        self._endpoint.server.on_change.append(self._changed)
        self._endpoint.server.on_restart.append(self._cut)
        version: int | None = None
        while not self._is_over():
            if self._endpoint.line.is_down:
                scheduler.sleep(RECONNECT_S)
                continue
            try:
                version = self._list() if version is None else self._follow(version)
            except Expired:
                version = None
        self._endpoint.server.on_change.remove(self._changed)
        self._endpoint.server.on_restart.remove(self._cut)

    def _is_over(self) -> bool:
        return self._feed._is_stopping or self._generation != self._feed._generation

    def _list(self) -> int:
        self._network.scheduler.sleep(self._network._pause_s(self._endpoint.line))
        server = self._endpoint.server
        version = server.version
        items = server.list(self._kind, self._feed._namespace) if server.serves(self._kind) else []
        self._network.scheduler.note(f"watch lists {self._kind.plural}")
        self._feed._on_listed()
        for item in items:
            self._deliver(None, item)
        return version

    def _follow(self, version: int) -> int:
        """Wait for events and deliver them; return the version up to which all are delivered."""
        scheduler, line = self._network.scheduler, self._endpoint.line
        while not self._has_news:
            scheduler.block()
        self._has_news = False
        if self._is_cut:
            return self._resume(version)
        scheduler.sleep(self._network.random.expovariate(1 / line.watch_s))
        for event in self._endpoint.server.events_since(self._kind, version, self._feed._namespace):
            if self._is_over() or line.is_down:
                self._has_news = True
                return version
            self._deliver(event.type, event.obj)
            version = event.version
            if self._network.random.random() < line.dropped:
                scheduler.note(f"watch of {self._kind.plural} is cut")
                scheduler.sleep(RECONNECT_S)
                raise Expired("the watch is cut")
        return version

    def _resume(self, version: int) -> int:
        """Resume after the connection ended, from that version."""
        self._is_cut = False
        self._network.scheduler.sleep(RECONNECT_S)
        self._feed._on_resumed()
        self._has_news = True
        return version

    def _deliver(self, event_type: str | None, obj: Mapping[str, Any]) -> None:
        self._network.scheduler.pause()
        self._network.scheduler.note(f"event {event_type} {self._kind.plural} {obj['metadata']['name']}")
        try:
            self._feed._sink(self._kind, event_type, json.loads(json.dumps(obj)))
        except Exception as error:  # noqa: BLE001 - the real feed logs it and goes on
            self._network.scheduler.faults.append(f"an event could not be taken: {error!r}")

    def _cut(self) -> None:
        self._is_cut = self._has_news = True
        if self._task:
            self._network.scheduler.wake(self._task)

    def _changed(self, event: Any) -> None:
        if event.kind == self._kind:
            self._has_news = True
            if self._task:
                self._network.scheduler.wake(self._task)


_CURRENT: list[KubeNetwork] = []


def current() -> KubeNetwork:
    """Return the Kubernetes network of the running simulation."""
    return _CURRENT[-1]


def begin(network: KubeNetwork) -> None:
    """Use this network for all Kubernetes clients and feeds from now on."""
    from capo.engine import manager

    assert primitives.scheduler() is network.scheduler
    _CURRENT.append(network)
    urllib3.PoolManager = Pool  # type: ignore[misc,assignment]
    manager.Watcher = Feed  # type: ignore[attr-defined,assignment]
