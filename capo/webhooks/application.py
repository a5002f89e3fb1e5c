"""The paths of the webhook server, which are the Go provider's; everything else is not found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from capo.webhooks import admission, conversion, review
from capo.webhooks.review import Json, MalformedReviewError

CONVERT: Final = "/convert"
MAX_BODY: Final = 256 * 2**20
"""Bytes of a request; the API server sends a whole page of a list at once."""
SLOW_BODY: Final = 2**18
"""Bytes from which on a request is answered in a thread, so that short ones need not wait for it."""


def admission_path(kind: str) -> str:
    """Return the path at which a kind is validated."""
    return f"/validate-infrastructure-cluster-x-k8s-io-{admission.VERSION_OF[kind]}-{kind.lower()}"


def application() -> web.Application:
    """Return the server's routes."""
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_post(CONVERT, _handler(conversion.answer))
    for kind in admission.VERSION_OF:
        app.router.add_post(admission_path(kind), _handler(_admission(kind)))
    return app


def _admission(kind: str) -> Callable[[bytes], Json]:
    return lambda body: admission.answer(body, kind)


def _handler(answer: Callable[[bytes], Json]) -> Callable[[web.Request], Awaitable[web.Response]]:
    def respond(body: bytes) -> web.Response:
        try:
            return _json(answer(body))
        except MalformedReviewError as error:
            return _json(review.bad_request(str(error)), status=400)

    async def handle(request: web.Request) -> web.Response:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            limit = f"the request has more than {MAX_BODY >> 20} MiB: list in smaller pages"
            return _json(review.bad_request(limit), status=413)
        return respond(body) if len(body) < SLOW_BODY else await asyncio.to_thread(respond, body)

    return handle


def _json(value: Json, *, status: int = 200) -> web.Response:
    return web.Response(
        body=json.dumps(value, separators=(",", ":")).encode(), status=status, content_type="application/json"
    )
