"""The paths of the webhook server, which are the Go provider's; all others return 404."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from capo.json_types import Json
from capo.webhooks import admission, bodies, conversion, review
from capo.webhooks.bodies import RefusedError
from capo.webhooks.review import MalformedReviewError

log = logging.getLogger(__name__)

CONVERT: Final = "/convert"
SLOW_BODY: Final = 2**18
"""Minimum bytes of a request that is answered in a thread, so that short ones need not wait for it."""
THREADS: Final = 2
"""They compute in turn; more of them would only need more memory."""
WRITE_S: Final = 15.0
"""Timeout for sending a long answer, which is held in memory until the client has received it."""


def admission_path(kind: str) -> str:
    """Return the path at which a kind is validated."""
    return f"/validate-infrastructure-cluster-x-k8s-io-{admission.VERSION_OF[kind]}-{kind.lower()}"


def application(held: bodies.Held | None = None) -> web.Application:
    """Return the server's routes.

    Args:
        held: the memory for bodies; None: the process's default.
    """
    desk = _Desk(held or bodies.Held())
    app = web.Application(client_max_size=bodies.CONVERSION)
    app.router.add_post(CONVERT, desk.handler(conversion.answer, bodies.CONVERSION))
    for kind in admission.VERSION_OF:
        app.router.add_post(admission_path(kind), desk.handler(_admission(kind), bodies.ADMISSION))
    app.on_cleanup.append(desk.close)
    return app


def _admission(kind: str) -> Callable[[bytes], Json]:
    return lambda body: admission.answer(body, kind)


@dataclass
class _Desk:
    """State shared by all requests: memory for bodies, threads, and the clients' turns."""

    held: bodies.Held
    quiet_until_s: float = 0.0
    short: bodies.Turns = field(default_factory=bodies.Turns)
    long: bodies.Turns = field(default_factory=bodies.Turns)

    def __post_init__(self) -> None:
        self._threads = concurrent.futures.ThreadPoolExecutor(THREADS, thread_name_prefix="review")

    def handler(self, answer: Callable[[bytes], Json], most: int) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return the handler of one path.

        Args:
            most: maximum bytes of a body.
        """

        async def handle(request: web.Request) -> web.Response:
            response = await handled(request)
            self._log(request, response)
            return response

        async def handled(request: web.Request) -> web.Response:
            peer = request.remote or ""
            with self.held.by(peer) as share:
                try:
                    body = await bodies.read(request, most, share)
                except RefusedError as refusal:
                    return _refused(refusal)
                if len(body) < SLOW_BODY:
                    async with self.short.of(peer):
                        return _answered(answer, body)
                async with self.long.of(peer):
                    loop = asyncio.get_running_loop()
                    response = await loop.run_in_executor(self._threads, _answered, answer, body)
                return await _sent(request, response)

        return handle

    def _log(self, request: web.Request, response: web.Response) -> None:
        """Log a refusal, at most one per second: clients must not be able to flood the log."""
        now_s = asyncio.get_running_loop().time()
        if response.status >= 400 and now_s >= self.quiet_until_s:
            self.quiet_until_s = now_s + 1
            log.warning("Refused a request", extra={"path": request.path, "status": response.status})

    async def close(self, _app: web.Application) -> None:
        """Start no more requests."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _answered(answer: Callable[[bytes], Json], body: bytes) -> web.Response:
    try:
        bodies.check(body)
        return _json(answer(body))
    except MalformedReviewError as error:
        return _json(review.bad_request(str(error)), status=400)
    except RecursionError:
        return _json(review.bad_request("the object is nested too deeply"), status=400)
    except MemoryError:
        return _refused(RefusedError(503, "ServiceUnavailable", "no memory for this request: retry later"))
    except RefusedError as refusal:
        return _refused(refusal)


async def _sent(request: web.Request, response: web.Response) -> web.Response:
    """Send an answer while its request is still accounted for."""
    try:
        async with asyncio.timeout(WRITE_S):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        if request.transport:
            request.transport.abort()
    return response


def _refused(refusal: RefusedError) -> web.Response:
    response = _json(review.status(refusal.status, refusal.reason, str(refusal)), status=refusal.status)
    if refusal.status in (429, 503):
        response.headers["Retry-After"] = "1"  # the API server's client retries by itself
    return response


def _json(value: Json, *, status: int = 200) -> web.Response:
    return web.Response(
        body=json.dumps(value, separators=(",", ":")).encode(), status=status, content_type="application/json"
    )
