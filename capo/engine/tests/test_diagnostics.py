"""Metrics for every client on plain HTTP, or for those that the API server authorizes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from capo.engine import diagnostics, threads
from capo.engine.access import IN_ALL, MOST, Access, Bucket, _Answer
from capo.engine.tests.builders import FakeClock
from capo.kube.client import Kube
from capo.kube.tests.fake_apiserver import FakeApiServer

READER = {"authenticated": True, "user": {"username": "prometheus", "groups": ["g"]}}


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        running.reviews = {"tokenreviews": READER, "subjectaccessreviews": {"allowed": True}}
        yield running


Asker = Callable[..., Awaitable[int]]


def asked(api: FakeApiServer, scenario: Callable[[Asker], Awaitable[None]], clock: FakeClock | None = None) -> None:
    """Serve with access checks while the scenario runs."""

    async def body() -> None:
        access = Access(Kube(api.connection()), threads.run, clock or FakeClock())
        runner = await diagnostics.serve(
            diagnostics.application(access), "127.0.0.1:0", tls=diagnostics.self_signed("VersionTLS12")
        )
        port = runner.port

        async def ask(path: str = "/metrics", *, token: str | None = "t", method: str = "GET", data: str = "") -> int:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            async with (
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session,
                session.request(method, f"https://127.0.0.1:{port}{path}", headers=headers, data=data) as answer,
            ):
                await answer.read()
                return answer.status

        try:
            await scenario(ask)
        finally:
            await runner.cleanup()

    asyncio.run(body())


def test_a_reader_whom_the_api_server_knows_and_allows_may_read(api: FakeApiServer) -> None:
    async def scenario(ask: Asker) -> None:
        assert await ask() == 200

    asked(api, scenario)

    assert [path.rsplit("/", 1)[1] for _, path in api.requests] == ["tokenreviews", "subjectaccessreviews"]


def test_answers_are_remembered_for_a_minute(api: FakeApiServer) -> None:
    clock = FakeClock()

    async def scenario(ask: Asker) -> None:
        for _ in range(3):
            assert await ask() == 200
        assert len(api.requests) == 2
        clock.advance(61)
        assert await ask() == 200
        assert len(api.requests) == 4

    asked(api, scenario, clock)


def test_one_without_a_token_is_not_asked_about(api: FakeApiServer) -> None:
    async def scenario(ask: Asker) -> None:
        assert await ask(token=None) == 401

    asked(api, scenario)

    assert api.requests == []


def test_an_unknown_token_and_a_known_one_without_the_right_are_refused(api: FakeApiServer) -> None:
    async def scenario(ask: Asker) -> None:
        api.reviews["subjectaccessreviews"] = {"allowed": False}
        assert await ask() == 403
        api.reviews["tokenreviews"] = {"authenticated": False}
        assert await ask(token="other") == 401

    asked(api, scenario)


def test_a_check_that_fails_refuses_and_is_not_remembered(api: FakeApiServer) -> None:
    async def scenario(ask: Asker) -> None:
        api.fail_next.append((lambda _method, _path: True, 503))
        assert await ask() == 500
        assert await ask() == 200

    asked(api, scenario)


def test_verbosity_is_changed_by_a_request(api: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[int] = []
    monkeypatch.setattr("capo.logs.set_verbosity", levels.append)

    async def scenario(ask: Asker) -> None:
        assert await ask("/debug/flags/v", method="PUT", data="4") == 200
        assert await ask("/debug/flags/v", method="PUT", data="loud") == 400
        assert await ask("/debug/pprof/goroutine") == 200

    asked(api, scenario)

    assert levels == [4]


def test_plain_diagnostics_have_metrics_alone() -> None:
    async def body() -> list[int]:
        runner = await diagnostics.serve(diagnostics.application(), "127.0.0.1:0")
        port = runner.port
        async with aiohttp.ClientSession() as session:
            statuses = []
            for path in ("/metrics", "/debug/flags/v", "/debug/pprof/goroutine"):
                async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                    statuses.append(answer.status)
        await runner.cleanup()
        return statuses

    assert asyncio.run(body()) == [200, 404, 404]


def test_a_flood_of_invented_tokens_is_not_handed_on_to_the_api_server(api: FakeApiServer) -> None:
    clock = FakeClock()

    async def scenario(ask: Asker) -> None:
        assert await ask(token="good") == 200
        api.reviews["tokenreviews"] = {"authenticated": False}
        statuses = [await ask(token=f"invented-{number}") for number in range(40)]
        assert set(statuses) == {401, 429}
        assert len(api.requests) <= 2 + 10
        api.reviews["tokenreviews"] = READER
        clock.advance(61)  # the valid one has to be reviewed again
        for number in range(40):
            await ask(token=f"another-{number}")
        assert await ask(token="good") == 200

    asked(api, scenario, clock)


def test_a_refusal_is_remembered_for_a_shorter_time(api: FakeApiServer) -> None:
    clock = FakeClock()

    async def scenario(ask: Asker) -> None:
        api.reviews["subjectaccessreviews"] = {"allowed": False}
        assert [await ask(), await ask()] == [403, 403]
        assert len(api.requests) == 2
        api.reviews["subjectaccessreviews"] = {"allowed": True}
        clock.advance(11)
        assert await ask() == 200

    asked(api, scenario, clock)


def test_the_same_token_at_the_same_moment_is_reviewed_once(api: FakeApiServer) -> None:
    async def scenario(ask: Asker) -> None:
        assert await asyncio.gather(*(ask() for _ in range(5))) == [200] * 5

    asked(api, scenario)

    assert len(api.requests) == 2


def test_no_token_stays_in_memory(api: FakeApiServer) -> None:
    token = "secret-" + "x" * 30
    access = Access(Kube(api.connection()), threads.run)

    async def body() -> None:
        async with TestClient(TestServer(diagnostics.application(access))) as client:
            assert (await client.get("/metrics", headers={"Authorization": f"Bearer {token}"})).status == 200

    asyncio.run(body())

    assert len(access.accepted) == 1
    assert token not in repr(vars(access))


def test_caches_of_answers_are_bounded(api: FakeApiServer) -> None:
    access = Access(Kube(api.connection()), threads.run)
    for number in range(MOST + 10):
        access.accepted.put((number.to_bytes(2), "get", "/metrics"), _Answer(200, 0, 0))

    assert len(access.accepted) == 256


def test_a_budget_fills_up_again_as_time_goes_by() -> None:
    bucket = Bucket(IN_ALL)

    assert [bucket.take(0) for _ in range(11)] == [True] * 10 + [False]
    assert bucket.take(0.1)
    assert not bucket.take(0.1)


def test_a_body_beyond_measure_is_refused(api: FakeApiServer) -> None:
    async def scenario(ask: Asker) -> None:
        assert await ask("/debug/flags/v", method="PUT", data="1" * 2000) == 413

    asked(api, scenario)
