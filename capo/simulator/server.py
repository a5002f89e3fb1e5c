"""The HTTP server: passes a request through routing, token, faults, latency, handler and counters, in this order."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import CIMultiDict, MultiDict

from capo.simulator import admin
from capo.simulator.cloud import Cloud
from capo.simulator.counters import Call
from capo.simulator.faults import Effect, Order
from capo.simulator.routing import INTERNAL, Fault, Request, Response, Route, Service
from capo.simulator.validation import is_uuid

LOG: Final = logging.getLogger(__name__)
UNKNOWN_ROUTE: Final = "(unknown)"
# Enough time to read an answer on loopback, before the process that sent the request is killed.
ANSWER_READ_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Incoming:
    """A received request, by any transport.

    Args:
        url: Scheme, host and port that the client used, without a path.
    """

    method: str
    url: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to be sent, with the notes about its request."""

    status: int
    headers: CIMultiDict[str]
    body: bytes
    call: Call


@dataclass(slots=True)
class Exchange:
    """A request in processing: its route and the notes about it.

    Args:
        transport: The connection of the request; None without one.
    """

    transport: asyncio.BaseTransport | None
    request: Request
    call: Call
    route: Route | None = None
    refusal: Fault | None = None
    is_authenticated: bool = False


class Server:
    """Serves one cloud on one port."""

    def __init__(self, cloud: Cloud, services: tuple[Service, ...]) -> None:
        self.cloud = cloud
        self.services = services

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        application = web.Application(client_max_size=64 * 1024 * 1024)
        admin.register(application, self.cloud, self.services)
        application.router.add_route("*", "/{path:.*}", self.handle)
        return application

    async def handle(self, raw: web.Request) -> web.StreamResponse:
        """Answer one request to a service."""
        self.cloud.run_due()
        service = self._service_of(raw.path)
        if service is None:
            LOG.warning("no such service path=%s", raw.path)
            return web.Response(status=404, text="no such service\n")
        incoming = Incoming(
            raw.method, f"{raw.scheme}://{raw.host}", raw.path, raw.query_string, raw.headers, await raw.read()
        )
        exchange = self._open(incoming, service, raw.transport)
        started = time.perf_counter()
        self.cloud.counter.arrive(exchange.call)
        try:
            return await self._play(exchange, raw)
        finally:
            exchange.call.duration_ms = round((time.perf_counter() - started) * 1000, 3)
            self.cloud.counter.finish(exchange.call)

    def answer(self, incoming: Incoming) -> Reply:
        """Execute a request at once, without a connection; latency and injected faults do not apply.

        Raises:
            LookupError: No service has this path.
        """
        self.cloud.run_due()
        service = self._service_of(incoming.path)
        if service is None:
            raise LookupError(f"no such service: {incoming.path}")
        exchange = self._open(incoming, service, None)
        self.cloud.counter.arrive(exchange.call)
        response = self._effect(exchange)
        exchange.call.status = response.status
        self.cloud.counter.finish(exchange.call)
        return Reply(response.status, self._headers(exchange, response), response.payload(), exchange.call)

    def _service_of(self, path: str) -> Service | None:
        for service in self.services:
            if path == service.prefix or path.startswith(service.prefix + "/"):
                return service
        return None

    def _open(self, raw: Incoming, service: Service, transport: asyncio.BaseTransport | None) -> Exchange:
        cloud = self.cloud
        request = Request(
            cloud=cloud,
            service=service,
            method=raw.method,
            path=raw.path.removeprefix(service.prefix) or "/",
            base_url=raw.url,
            query=MultiDict(parse_qsl(raw.query_string, keep_blank_values=True)),
            headers=raw.headers,
            raw=raw.body,
        )
        call = Call(
            number=0,
            at=cloud.now().isoformat(timespec="milliseconds"),
            service=service.name,
            method=raw.method,
            route=UNKNOWN_ROUTE,
            path=request.path,
            query=raw.query_string,
            project_id="",
            request_id=request.request_id,
            user_agent=raw.headers.get("User-Agent", ""),
        )
        exchange = Exchange(transport, request, call)
        self._authenticate(exchange)
        self._route(exchange)
        return exchange

    def _authenticate(self, exchange: Exchange) -> None:
        request = exchange.request
        token = self.cloud.valid_token(request.headers.get("X-Auth-Token", ""))
        if token is None:
            return
        exchange.is_authenticated = True
        request.token_id, request.user_id = token.id, token.user_id
        request.project_id, request.roles = token.project_id, token.roles
        exchange.call.project_id = token.project_id

    @staticmethod
    def _route(exchange: Exchange) -> None:
        request = exchange.request
        try:
            exchange.route, found = request.service.find(request.method, request.path)
            # Every database finds an id in upper case, too.
            request.match = {name: value.lower() if is_uuid(value) else value for name, value in found.items()}
            exchange.call.route = exchange.route.template
        except Fault as fault:
            LOG.warning(
                "no such route service=%s method=%s path=%s", request.service.name, request.method, request.path
            )
            exchange.refusal = fault

    async def _play(self, exchange: Exchange, raw: web.Request) -> web.StreamResponse:
        call = exchange.call
        latency = self.cloud.timings.latency_of(call.service, call.method, call.route)
        if latency:
            await asyncio.sleep(latency)
        order = self.cloud.faults.choose(call, exchange.request.raw)
        if order is None:
            return self._answer(exchange, self._effect(exchange))
        call.fault = order.id
        return await self._strike(exchange, order, raw)

    async def _strike(self, exchange: Exchange, order: Order, raw: web.Request) -> web.StreamResponse:
        effect = order.effect
        await self.cloud.pause(effect.delay_s)
        if effect.hang is not None:
            await self.cloud.pause(effect.hang)
            return self._cut(exchange)
        if effect.late is not None:
            self.cloud.after(effect.late, lambda: self._take_effect(exchange))
            if effect.kill is not None:
                kill(effect.kill)
            return self._cut(exchange)
        if effect.kill is not None:
            return await self._kill(exchange, effect, raw)
        if effect.cut == "before":
            return self._cut(exchange)
        if effect.status is not None:
            return self._answer(exchange, self._ordered_refusal(exchange, effect))
        response = self._effect(exchange)
        if effect.again is not None:
            self.cloud.after(effect.again, lambda: self._take_effect(exchange))
        return self._cut(exchange) if effect.cut == "after" else self._answer(exchange, response)

    async def _kill(self, exchange: Exchange, effect: Effect, raw: web.Request) -> web.StreamResponse:
        assert effect.kill is not None  # noqa: S101 - the caller looked
        if effect.when == "before":
            kill(effect.kill)
            return self._cut(exchange)
        response = self._effect(exchange)
        if effect.when == "after_effect":
            kill(effect.kill)
            return self._cut(exchange)
        answer = self._answer(exchange, response)
        await answer.prepare(raw)
        await answer.write_eof()
        await asyncio.sleep(ANSWER_READ_S)
        kill(effect.kill)
        return answer

    def _ordered_refusal(self, exchange: Exchange, effect: Effect) -> Response:
        status = effect.status or 500
        if isinstance(effect.body, str):
            return Response(status, text=effect.body, headers=CIMultiDict(effect.headers))
        if effect.body is not None:
            return Response(status, effect.body, CIMultiDict(effect.headers))
        fault = Fault(status, effect.message, effect.kind, headers=effect.headers)
        return exchange.request.service.render_fault(fault, exchange.request)

    def _take_effect(self, exchange: Exchange) -> None:
        self._effect(exchange)

    def _effect(self, exchange: Exchange) -> Response:
        """Execute the request atomically and return the answer."""
        self.cloud.run_due()
        self.cloud.journal.take()
        response = self._respond(exchange)
        exchange.call.created, exchange.call.deleted = self.cloud.journal.take()
        return response

    def _respond(self, exchange: Exchange) -> Response:
        request, service, route = exchange.request, exchange.request.service, exchange.route
        if not exchange.is_authenticated and not (route and route.is_public):
            return service.unauthorized(request)
        try:
            if service.microversions is not None:
                request.microversion = service.microversions.negotiate(request.headers)
            if exchange.refusal is not None:
                raise exchange.refusal
            assert route is not None  # noqa: S101 - either a route or a refusal
            return run(route, request)
        except Fault as fault:
            return service.render_fault(fault, request)
        except Exception:  # a bug of the simulator must look like one of the service, not end it
            LOG.exception("handler failed service=%s method=%s path=%s", service.name, request.method, request.path)
            return service.render_fault(Fault(500, "Unexpected API Error.", INTERNAL), request)

    @classmethod
    def _answer(cls, exchange: Exchange, response: Response) -> web.Response:
        exchange.call.status = response.status
        headers = cls._headers(exchange, response)
        return web.Response(status=response.status, body=response.payload() or None, headers=headers)

    @staticmethod
    def _headers(exchange: Exchange, response: Response) -> CIMultiDict[str]:
        headers = CIMultiDict(response.headers)
        # The cloud's own time, as in its resources' time stamps.
        headers.setdefault("Date", email.utils.format_datetime(exchange.request.cloud.now(), usegmt=True))
        exchange.request.service.decorate(exchange.request, headers)
        if response.body is not None or response.text is not None:
            headers.setdefault("Content-Type", response.content_type)
        return headers

    @staticmethod
    def _cut(exchange: Exchange) -> web.Response:
        if exchange.transport is not None:
            exchange.transport.close()
        return web.Response(status=500)


def run(route: Route, request: Request) -> Response:
    """Run a handler to its end without interruption.

    Raises:
        RuntimeError: The handler awaited something, so it would not have been atomic.
    """
    step = route.handler(request).__await__()
    try:
        next(step)
    except StopIteration as end:
        response: Response = end.value
        return response
    raise RuntimeError(f"the handler of {route.method} {route.template} awaits")


def kill(process_id: int) -> None:
    """Send SIGKILL; a process that has ended is fine."""
    try:
        os.kill(process_id, signal.SIGKILL)
    except ProcessLookupError:
        LOG.info("process to kill is gone process_id=%d", process_id)
