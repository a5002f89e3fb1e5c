"""A kube-apiserver as one manager sees it: failed writes, watches that lag, repeat themselves or end early.

It is between a manager and the real API server, serves plain HTTP on loopback and passes credentials on. Writes are
those of objects; Events and Leases are passed on and not counted.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import signal
import ssl
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import aiohttp
import yaml
from aiohttp import web

How = Literal["conflict", "error", "answer_lost", "kill_before", "kill_after_effect", "kill_after_answer"]
T = TypeVar("T")

NOT_PASSED_ON: Final = {"host", "content-length", "transfer-encoding", "connection", "accept-encoding"}
UNCOUNTED: Final = ("/events", "/leases", "/tokenreviews", "/subjectaccessreviews")
ANSWER_READ_S: Final = 0.05
CLOSING_S: Final = 0.5
KEPT: Final = 5
"""Number of earlier states of an object that are kept for repetition."""


@dataclass
class Strike:
    """The failure of one write.

    Args:
        nth: number of the write, from 1, counted since the order.
        process_id: process to kill.
        struck: 1 once it happened, else 0.
    """

    nth: int
    how: How
    process_id: int = 0
    struck: int = 0


class Gateway:
    """The thread and loop of all proxies; a context manager.

    Args:
        url: of the real API server.
        ca: file with the authority of its certificate.
    """

    def __init__(self, url: str, ca: Path) -> None:
        self.url = url
        self.tls = ssl.create_default_context(cafile=str(ca))
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="kube-proxies", daemon=True)
        self.session: aiohttp.ClientSession

    def __enter__(self) -> Self:
        self._thread.start()
        self.session = self.call(self._session())
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    async def _end(self) -> None:
        """Close all connections; TLS connections need a moment."""
        await self.session.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(CLOSING_S)

    async def _session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self.tls), timeout=timeout, auto_decompress=False
        )


class KubeProxy:
    """One proxy on a port of its own; a context manager.

    Attributes:
        writes: number of writes since :meth:`count_anew`.
        written: method and path of every write.
        last_write_s: time of the last one, on the monotonic clock.
        hold_s: delay of every watch event.
        has_echoes: follow every watch event with all earlier states of the object.
        is_blind: drop watch events.
        is_down: close every connection without an answer.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.writes = 0
        self.written: list[str] = []
        self.last_write_s = 0.0
        self.hold_s = 0.0
        self.has_echoes = False
        self.is_blind = False
        self.is_down = False
        self._order: Strike | None = None
        self._ordered_at = 0
        self._seen: dict[str, collections.deque[bytes]] = collections.defaultdict(_few)
        self._watches: set[asyncio.Event] = set()

    def __enter__(self) -> Self:
        self._gateway.call(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._end_watches()
        self._gateway.call(self._runner.cleanup())

    def kubeconfig(self, original: Path, target: Path) -> Path:
        """Write a copy of a kubeconfig with this proxy as server; return its path."""
        config = yaml.safe_load(original.read_text(encoding="utf-8"))
        for entry in config["clusters"]:
            entry["cluster"] = {"server": self.url}
        target.write_text(yaml.safe_dump(config), encoding="utf-8")
        return target

    def count_anew(self) -> None:
        """Reset the count of writes."""
        self.writes = 0

    def strike(self, order: Strike) -> Strike:
        """Order the failure of a coming write."""
        self._order, self._ordered_at = order, self.writes
        return order

    def expire_watches(self) -> None:
        """End every watch with 410: its resource version is expired."""
        self._end_watches()

    def _end_watches(self) -> None:
        def end() -> None:
            for ended in list(self._watches):
                ended.set()

        self._gateway.loop.call_soon_threadsafe(end)

    async def _open(self) -> None:
        application = web.Application(client_max_size=16 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self.is_down:
            return _cut(request)
        if request.query.get("watch") in ("true", "1"):
            return await self._watch(request)
        order = self._due(request)
        return await (self._struck(request, order) if order else self._passed(request))

    def _due(self, request: web.Request) -> Strike | None:
        if request.method == "GET" or any(part in request.path for part in UNCOUNTED):
            return None
        self.writes += 1
        self.written.append(f"{request.method} {request.path}")
        self.last_write_s = time.monotonic()
        order = self._order
        if order is None or self.writes - self._ordered_at != order.nth:
            return None
        order.struck += 1
        return order

    async def _struck(self, request: web.Request, order: Strike) -> web.StreamResponse:
        match order.how:
            case "conflict":
                return _status(409, "Conflict", "the object has been modified; please apply your changes again")
            case "error":
                return _status(500, "InternalError", "etcdserver: request timed out")
            case "kill_before":
                _kill(order.process_id)
                return _cut(request)
        answer = await self._passed(request)
        if order.how == "kill_after_answer":
            await answer.prepare(request)
            await answer.write_eof()
            await asyncio.sleep(ANSWER_READ_S)
            _kill(order.process_id)
            return answer
        if order.how == "kill_after_effect":
            _kill(order.process_id)
        return _cut(request)

    async def _passed(self, request: web.Request) -> web.Response:
        try:
            async with self._asked(request) as answer:
                body = await answer.read()
        except aiohttp.ClientError as error:
            return _status(503, "ServiceUnavailable", str(error))
        headers = {
            name: answer.headers[name] for name in ("Content-Type", "Content-Encoding") if name in answer.headers
        }
        return web.Response(status=answer.status, body=body, headers=headers)

    @contextlib.asynccontextmanager
    async def _asked(self, request: web.Request) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in NOT_PASSED_ON}
        async with self._gateway.session.request(
            request.method, self._gateway.url + request.raw_path, headers=headers, data=await request.read() or None
        ) as answer:
            yield answer

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        ended = asyncio.Event()
        self._watches.add(ended)
        try:
            async with self._asked(request) as answer:
                response.set_status(answer.status)
                await response.prepare(request)
                await self._relay(answer, response, ended)
        except (aiohttp.ClientError, ConnectionError):
            return _cut(request)
        finally:
            self._watches.discard(ended)
        return response

    async def _relay(self, answer: aiohttp.ClientResponse, response: web.StreamResponse, ended: asyncio.Event) -> None:
        """Pass events on until the watch ends; a watch that is ended here gets an expiry event."""
        lines: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        tasks = [
            asyncio.create_task(self._read(answer, lines)),
            asyncio.create_task(self._write(lines, response)),
            asyncio.create_task(ended.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if ended.is_set():
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
                event = {"type": "ERROR", "object": {**status, "message": "too old resource version", "metadata": {}}}
                await response.write(json.dumps(event).encode() + b"\n")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    async def _read(answer: aiohttp.ClientResponse, lines: asyncio.Queue[tuple[float, bytes]]) -> None:
        rest = b""
        async for chunk in answer.content.iter_any():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                lines.put_nowait((time.monotonic(), line))

    async def _write(self, lines: asyncio.Queue[tuple[float, bytes]], response: web.StreamResponse) -> None:
        while True:
            came_s, line = await lines.get()
            await asyncio.sleep(max(0.0, came_s + self.hold_s - time.monotonic()))
            if self.is_blind:
                continue
            for each in [line, *self._echoes(line)]:
                await response.write(each + b"\n")

    def _echoes(self, line: bytes) -> list[bytes]:
        """Return the earlier states of an event's object, the latest first."""
        if not self.has_echoes:
            return []
        event = json.loads(line)
        known = self._seen[event["object"]["metadata"].get("uid", "")]
        earlier = list(reversed(known)) if event["type"] in ("ADDED", "MODIFIED", "DELETED") else []
        known.append(line if event["type"] != "DELETED" else known[-1] if known else line)
        return earlier


def _few() -> collections.deque[bytes]:
    return collections.deque(maxlen=KEPT)


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return web.json_response({**body, "metadata": {}, "code": code}, status=code)


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _kill(process_id: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process_id, signal.SIGKILL)


KUBERNETES_WAYS: Final[tuple[How, ...]] = (
    "conflict",
    "error",
    "answer_lost",
    "kill_before",
    "kill_after_effect",
    "kill_after_answer",
)
