"""A flood of connections from one address does not displace those of others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from capo import listening
from capo.engine.tests.builders import FakeClock
from capo.listening import LimitedServer, Limits

GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


@dataclass
class ListeningServer:
    server: LimitedServer
    clock: FakeClock
    released: asyncio.Event
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, address: str = "127.0.0.1", data: bytes = b"") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, local_addr=(address, 0))
        self.writers.append(writer)
        writer.write(data)
        return reader

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not reached():  # noqa: ASYNC110 - what is waited for sets no event
                await asyncio.sleep(0.01)

    def count(self) -> int:
        return len([known for known in self.server._connections if known.is_connected])


def played(scenario: Callable[[ListeningServer], Awaitable[None]], limits: Limits) -> None:
    async def body() -> None:
        released = asyncio.Event()

        async def answer(request: web.Request) -> web.Response:
            with contextlib.suppress(ConnectionResetError):
                await request.read()
            if request.path == "/slow":
                await released.wait()
            return web.Response(text="fine")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        clock = FakeClock()
        site = ListeningServer(LimitedServer(app, limits, clock=clock), clock, released)
        await site.server.start(listening.listener("127.0.0.1", 0))
        try:
            await scenario(site)
        finally:
            released.set()
            for writer in site.writers:
                writer.close()
            await site.server.cleanup()

    asyncio.run(body())


async def answered(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(30):
        return b"200 OK" in await reader.read(200)


async def ended(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(30):
        try:
            return await reader.read(200) == b""
        except ConnectionResetError:
            return True


def test_one_client_with_many_connections_loses_its_oldest_one_to_another_client() -> None:
    async def scenario(site: ListeningServer) -> None:
        flood = []
        for number in range(4):
            flood.append(await site.connect("127.0.0.2"))
            await site.until(lambda number=number: site.count() == number + 1)  # type: ignore[misc]
            site.clock.advance(1)

        assert await answered(await site.connect("127.0.0.1", GET))
        assert await ended(flood[0])

    played(scenario, Limits(connections=4))


def test_a_body_that_never_ends_keeps_no_place_either() -> None:
    async def scenario(site: ListeningServer) -> None:
        endless = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\nx"
        flood = [await site.connect("127.0.0.2", endless) for _ in range(4)]
        await site.until(lambda: sum(known.request is not None for known in site.server._connections) == 4)

        assert await answered(await site.connect("127.0.0.1", GET))
        assert sum(reader.at_eof() or reader.exception() is not None for reader in flood) <= 1

    played(scenario, Limits(connections=4))


def test_what_is_being_answered_is_not_cut_off_for_another_client() -> None:
    async def scenario(site: ListeningServer) -> None:
        slow = GET.replace(b"/ ", b"/slow ", 1)
        working = [await site.connect("127.0.0.1", slow) for _ in range(3)]
        await site.until(lambda: sum(known.request is not None for known in site.server._connections) == 3)

        assert await ended(await site.connect("127.0.0.2"))
        site.released.set()
        assert all([await answered(reader) for reader in working])

    played(scenario, Limits(connections=3))


def test_a_client_that_sends_nothing_or_half_a_header_is_cut_off_in_time() -> None:
    async def scenario(site: ListeningServer) -> None:
        silent, half = await site.connect(), await site.connect(data=b"GET / HT")
        await site.until(lambda: site.count() == 2)
        site.clock.advance(11)
        site.server.sweep()

        assert await ended(silent)
        assert await ended(half)

    played(scenario, Limits(idle_s=10))


def test_a_request_that_takes_too_long_is_cut_off() -> None:
    async def scenario(site: ListeningServer) -> None:
        slow = await site.connect(data=GET.replace(b"/ ", b"/slow ", 1))
        await site.until(lambda: any(known.request for known in site.server._connections))
        site.clock.advance(31)
        site.server.sweep()

        assert await ended(slow)

    played(scenario, Limits(request_s=30))


def test_headers_beyond_measure_are_refused() -> None:
    async def scenario(site: ListeningServer) -> None:
        reader = await site.connect(data=b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n")

        async with asyncio.timeout(30):
            assert b" 400 " in (await reader.read(100))

    played(scenario, Limits())


def test_connections_that_ended_leave_their_places() -> None:
    async def scenario(site: ListeningServer) -> None:
        for _ in range(10):
            assert await answered(await site.connect(data=GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")))
        await site.until(lambda: all(known.is_over for known in site.server._connections))
        site.server.sweep()

        assert not site.server._connections

    played(scenario, Limits(connections=2))


def test_the_client_with_the_most_connections_makes_room() -> None:
    known = [listening._Connection(peer, since_s, lambda: None) for peer, since_s in [("a", 1), ("a", 2), ("b", 0)]]

    assert listening.least_deserving(set(known), "a") is known[0]
    assert listening.least_deserving(set(known), "b") is known[2]
    assert listening.least_deserving({known[0], known[2]}, "c") is known[2]
    assert listening.least_deserving({known[2]}, "b") is known[2]


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
def test_all_addresses_are_listened_on_unless_one_is_named(host: str) -> None:
    with listening.listener(host, 0) as found:
        assert found.getsockname()[0] in ((host,) if host else ("::", "0.0.0.0"))
