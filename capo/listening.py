"""An HTTP server that limits the number of connections and the time of each, against floods.

Nothing authenticates the API server to a webhook, nor kubelet to a probe: any client that reaches the port may connect.
So clients are distinguished by their address alone. When all places are taken, the address with the most connections
loses one that waits for its client: for a handshake, a request, or the rest of a body. A request that is being answered
is never cut off for another client. Used for webhooks, probes and diagnostics.
"""

from __future__ import annotations

import asyncio
import collections
import logging
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

log = logging.getLogger(__name__)

SWEEP_S: Final = 1.0
LINGER_S: Final = 2.0
"""How long the rest of a refused body is read and dropped: a client that still sends would not read the answer."""
PAUSE_S: Final = 0.1
"""Pause after a failed accept, such as when file descriptors run out."""


@dataclass(frozen=True)
class Limits:
    """Limits of one server.

    Args:
        connections: at once, over all clients.
        handshake_s: for the TLS handshake.
        idle_s: without a request, or while a request's headers or an answer are in transit.
        request_s: from a request's headers to the end of its handler.
    """

    connections: int = 256
    handshake_s: float = 5.0
    idle_s: float = 60.0
    request_s: float = 60.0


@dataclass(eq=False)
class _Connection:
    """One client's connection; it is not connected until the TLS handshake is complete."""

    peer: str
    since_s: float
    abort: Callable[[], object]
    handler: Any = None
    is_connected: bool = False
    request: web.BaseRequest | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its client."""
        return self.request is None or not self.request.content.is_eof()

    @property
    def is_over(self) -> bool:
        return self.is_connected and self.handler.transport is None


@dataclass
class LimitedServer:
    """Serves an application on a socket; :meth:`start` it, and :meth:`cleanup` at the end.

    Args:
        grace_s: how long running requests may take at the end.
        clock: monotonic seconds.
    """

    app: web.Application
    limits: Limits = field(default_factory=Limits)
    grace_s: float = 1.0
    clock: Callable[[], float] = time.monotonic
    port: int = 0
    _connections: set[_Connection] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _turned_away: int = 0

    async def start(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Serve on a listening socket, which the server owns from now on."""

        @web.middleware
        async def noted(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._noted(request, handler)

        self.app.middlewares.insert(0, noted)
        self._runner = web.AppRunner(
            self.app,
            access_log=None,
            shutdown_timeout=self.grace_s,
            lingering_time=LINGER_S,
            auto_decompress=False,  # a small body must not become a large one
        )
        await self._runner.setup()
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self._listener, self._tls = listener, tls
        self._begin(self._accept())
        self._begin(self._sweep())

    async def cleanup(self) -> None:
        """Stop accepting, wait up to the grace period for running requests, close everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._listener.close()
        await self._runner.cleanup()

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(self._listener)
            except OSError as error:
                log.warning("A connection could not be accepted", extra={"err": str(error)})
                await asyncio.sleep(PAUSE_S)
                continue
            self._admit(client, str(address[0]))

    def _admit(self, client: socket.socket, peer: str) -> None:
        """Serve a client's connection; close it if there is no place and no other client has more connections."""
        self._connections = {known for known in self._connections if not known.is_over}
        if len(self._connections) >= self.limits.connections:
            self._turned_away += 1
            victim = least_deserving(self._connections, peer)
            if victim is None:
                client.close()
                return
            self._end(victim)
        connection = _Connection(peer, self.clock(), client.close)
        self._connections.add(connection)
        connection.abort = self._begin(self._connect(client, connection)).cancel

    async def _connect(self, client: socket.socket, connection: _Connection) -> None:
        """Do the handshake and leave the rest to the HTTP protocol."""

        def protocol() -> Any:
            assert self._runner.server is not None  # noqa: S101 - it was set up
            connection.handler = self._runner.server()
            return connection.handler

        loop, limit_s = asyncio.get_running_loop(), self.limits.handshake_s if self._tls else None
        try:
            transport, _ = await loop.connect_accepted_socket(
                protocol, client, ssl=self._tls, ssl_handshake_timeout=limit_s
            )
        except asyncio.CancelledError:
            self._connections.discard(connection)
            raise
        except OSError:
            self._connections.discard(connection)
            return
        connection.is_connected, connection.abort = True, transport.abort

    def _end(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        connection.abort()

    async def _noted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Record which connections have a running request."""
        connection = next((known for known in self._connections if known.handler is request.protocol), None)
        if connection is None:
            return await handler(request)
        connection.request, connection.since_s = request, self.clock()
        try:
            return await handler(request)
        finally:
            connection.request, connection.since_s = None, self.clock()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep()

    def sweep(self) -> None:
        """Close the connections that take too long."""
        now_s, limits = self.clock(), self.limits
        for connection in list(self._connections):
            longest_s = limits.request_s if connection.request else limits.idle_s
            if connection.is_over or now_s - connection.since_s > longest_s:
                self._end(connection)
        if self._turned_away:
            log.warning("Too many connections", extra={"ended": self._turned_away, "most": limits.connections})
            self._turned_away = 0


def least_deserving(connections: set[_Connection], newcomer: str) -> _Connection | None:
    """Return the connection to close for a client's new one; None: no client with at least as many has one waiting.

    Pure.

    Of the client with the most connections it is the one that waits for the longest time.
    """
    counts = collections.Counter(connection.peer for connection in connections)
    counts[newcomer] += 1
    waiting = (known for known in connections if known.is_waiting and counts[known.peer] >= counts[newcomer])
    return min(waiting, key=lambda known: (-counts[known.peer], known.since_s), default=None)


def listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address; an empty one means all, of both IP versions.

    Raises:
        OSError: the address is in use or not one of this host.
    """
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))
