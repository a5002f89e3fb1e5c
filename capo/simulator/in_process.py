"""A simulator in the process of its clients: requests reach its handlers without sockets and threads.

Everything but the connection is real. A request becomes the bytes that aiohttp parses; aiohttp writes the answer, from
which urllib3 and requests build theirs. Only sessions that mount :class:`Adapter` reach such a simulator.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

import requests
import requests.adapters
import urllib3
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser
from multidict import CIMultiDict
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from capo.simulator import services
from capo.simulator.cloud import Cloud
from capo.simulator.server import Server
from capo.simulator.simulator import HOST, Simulator

T = TypeVar("T")
HOSTS: Final = frozenset({HOST, "localhost"})
LARGEST_BYTES: Final = 2**30
"""A request is parsed at once, whatever its size."""


class InProcessSimulator(Simulator):
    """A simulator that handles a request in the thread that sends it, one at a time."""

    running: ClassVar[dict[int, InProcessSimulator]] = {}
    """All of this process, by port."""

    def __init__(self, cloud: Cloud, *, port: int = 0) -> None:
        super().__init__(cloud, port=port)
        self._lock = threading.RLock()
        # Bound, but without a listener: a client that mounts no adapter is refused, and no other process gets the port.
        self._reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._runner = web.AppRunner(Server(cloud, services.SERVICES).application(), access_log=None)

    def _begin(self) -> str:
        self._reserved.bind((HOST, self._port))
        self._port = self._reserved.getsockname()[1]
        self._loop.run_until_complete(self._runner.setup())
        self.cloud.attach(self._loop)
        self.cloud.base_url = f"http://{HOST}:{self._port}"
        self.running[self._port] = self
        return self.cloud.base_url

    def call(self, function: Callable[[], T]) -> T:
        """Run a function between two requests and return its result."""
        with self._lock:
            return function()

    def stop(self) -> None:
        """Refuse further requests, and drop those whose clients gave up."""
        if self.running.pop(self._port, None) is None:
            return
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._runner.cleanup())
        self._loop.close()
        self._reserved.close()
        self._folder.cleanup()

    def answer(self, request: bytes, limit_s: float | None) -> Answer:
        """Handle the bytes of a request.

        Raises:
            http.client.RemoteDisconnected: the simulator closed the connection instead.
            TimeoutError: there is no answer within the limit; the request may take effect later.
        """
        with self._lock:
            over: asyncio.Future[None] = self._loop.create_future()
            task = self._loop.create_task(self._handle(request))
            task.add_done_callback(lambda _: None if over.done() else over.set_result(None))
            timer = None if limit_s is None else self._loop.call_later(limit_s, over.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(over)
            if timer is not None:
                timer.cancel()
            if not task.done():
                raise TimeoutError
            return task.result()

    async def _handle(self, sent: bytes) -> Answer:
        connection, answer, server = _Connection(self._loop), Answer(), self._runner.server
        assert server is not None  # noqa: S101 - since the runner was set up
        parser = HttpRequestParser(connection, self._loop, LARGEST_BYTES)
        ((message, payload), *_), *_ = parser.feed_data(sent)
        task: Any = asyncio.current_task()
        request: Any = server.request_factory(message, payload, connection, answer, task)  # type: ignore[arg-type]
        try:
            response = await server.request_handler(request)
        except web.HTTPException as refusal:
            response = refusal
        if connection.transport.is_closed:
            raise http.client.RemoteDisconnected("Remote end closed connection without response")
        await response.prepare(request)
        await response.write_eof()
        answer.status, answer.reason = response.status, response.reason
        return answer


class _Transport(asyncio.Transport):
    """The transport of a connection, which the simulator can close."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


class _Connection(BaseProtocol):
    """The server's side of a connection."""

    ssl_context = peername = sockname = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.transport: _Transport = _Transport()


@dataclass
class Answer(AbstractStreamWriter):
    """An answer, as aiohttp writes it."""

    status: int = 0
    reason: str | None = None
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    body: bytes = b""

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        """Keep the headers."""
        self.headers = headers

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Add to the body."""
        self.body += chunk

    async def write_eof(self, chunk: bytes = b"") -> None:
        """End the body."""
        self.body += chunk

    async def drain(self) -> None:
        """Do nothing: there is no slow reader."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        """Refuse: the simulator compresses nothing."""
        raise NotImplementedError

    def enable_chunking(self) -> None:
        """Do nothing: the body is kept as a whole."""


class Adapter(requests.adapters.HTTPAdapter):
    """Reaches the simulators of this process without a connection, and everything else as usual."""

    def get_connection_with_tls_context(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Return what sends a request."""
        parts = urlsplit(str(request.url))
        simulator = InProcessSimulator.running.get(parts.port or 0) if parts.hostname in HOSTS else None
        return (
            _Pool(simulator, parts.netloc)
            if simulator
            else super().get_connection_with_tls_context(request, *args, **kwargs)
        )


class _Pool:
    """Stands for urllib3's pool of connections to one simulator, with its exceptions."""

    def __init__(self, simulator: InProcessSimulator, netloc: str) -> None:
        self._simulator, self._netloc = simulator, netloc

    def urlopen(
        self,
        *,
        method: str,
        url: str,
        body: bytes | str | None,
        headers: Mapping[str, str | bytes],
        timeout: urllib3.Timeout,
        **_: Any,
    ) -> urllib3.HTTPResponse:
        """Send a request and return its answer.

        Raises:
            ReadTimeoutError: there is no answer in time.
            ProtocolError: the connection was closed.
        """
        lines = {"Host": self._netloc, "Accept-Encoding": "identity"} | dict(headers)
        texts = (f"{name}: {_text(value)}\r\n" for name, value in lines.items())
        head = f"{method} {url} HTTP/1.1\r\n{''.join(texts)}\r\n".encode("latin-1")
        sent = head + (body.encode() if isinstance(body, str) else body or b"")
        limit_s: Any = timeout.read_timeout
        try:
            answer = self._simulator.answer(sent, limit_s)
        except TimeoutError as error:
            raise ReadTimeoutError(self, url, f"Read timed out. (read timeout={limit_s})") from error  # type: ignore[arg-type]
        except http.client.RemoteDisconnected as error:
            raise ProtocolError("Connection aborted.", error) from error
        return urllib3.HTTPResponse(
            io.BytesIO(answer.body),
            urllib3.HTTPHeaderDict(answer.headers.items()),
            answer.status,
            version=11,
            version_string="HTTP/1.1",
            reason=answer.reason,
            preload_content=False,
            decode_content=False,
            request_method=method,
        )


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
