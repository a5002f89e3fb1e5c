"""Requests beyond a limit are refused with a Status that the API server passes on; clients take turns."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from capo.json_types import Json
from capo.webhooks import admission, application, bodies
from capo.webhooks.application import CONVERT, admission_path
from capo.webhooks.bodies import Held, RefusedError, Turns
from capo.webhooks.tests.test_application import GROUP, admission_review, conversion_review, machine

ADMISSION = admission_path("OpenStackCluster")
Client = TestClient[Any, Any]


def asked(scenario: Callable[[Client], Awaitable[tuple[int, Json]]], held: Held | None = None) -> tuple[int, Json]:
    async def ask() -> tuple[int, Json]:
        async with TestClient(TestServer(application.application(held))) as client:
            return await scenario(client)

    return asyncio.run(ask())


def posted(path: str, body: bytes, **headers: str) -> tuple[int, Json]:
    async def post(client: Client) -> tuple[int, Json]:
        answer = await client.post(path, data=io.BytesIO(body), headers=headers)
        return answer.status, await answer.json()

    return asked(post)


def cluster(count: int, text: str) -> Json:
    rules = [{"name": f"{text}{i}", "direction": "ingress", "protocol": "tcp"} for i in range(count)]
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "OpenStackCluster",
        "metadata": {"name": "x", "namespace": "d"},
        "spec": {
            "identityRef": {"name": "a", "cloudName": "b"},
            "tags": [f"{text}{i}" for i in range(count)],
            "managedSecurityGroups": {"allNodesSecurityGroupRules": rules},
            "managedSubnets": [{"cidr": f"{text}{i}"} for i in range(count)],
        },
    }


def test_an_admission_is_refused_that_is_larger_than_two_objects_can_be() -> None:
    status, answer = posted(ADMISSION, b" " * (bodies.ADMISSION + 1))

    assert status == 413
    assert answer["kind"] == "Status"
    assert answer["code"] == 413
    assert "more than 8 MiB" in answer["message"]


def test_a_conversion_may_be_as_large_as_a_page_of_a_list_and_no_larger() -> None:
    page = [machine(metadata={"name": f"m{i}", "annotations": {"a": "x" * 30_000}}) for i in range(500)]

    assert posted(CONVERT, json.dumps(conversion_review(page)).encode())[0] == 200
    assert posted(CONVERT, b" " * (bodies.CONVERSION + 1))[0] == 413


def test_a_small_body_that_would_be_large_in_memory_is_refused() -> None:
    status, answer = posted(ADMISSION, b"[" + b"[]," * bodies.MOST_VALUES + b"[]]")

    assert status == 413
    assert "values" in answer["message"]


def test_a_compressed_body_is_not_unpacked() -> None:
    assert posted(ADMISSION, b"\x1f\x8b", **{"Content-Encoding": "gzip"})[0] in (400, 415)


def test_a_body_that_comes_too_slowly_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_S", 0.05)

    async def post(client: Client) -> tuple[int, Json]:
        async def body() -> Any:
            yield b"{"
            await asyncio.sleep(0.5)
            yield b"}"

        answer = await client.post(ADMISSION, data=body())
        return answer.status, await answer.json()

    status, answer = asked(post)

    assert status == 408
    assert answer["reason"] == "Timeout"


def test_too_many_bytes_at_once_are_refused_for_a_moment() -> None:
    async def post(client: Client) -> tuple[int, Json]:
        answer = await client.post(ADMISSION, data=b"x" * 600)
        assert answer.headers["Retry-After"] == "1"
        return answer.status, await answer.json()

    status, answer = asked(post, Held(1000))

    assert status == 429
    assert "retry in a second" in answer["message"]


def test_one_client_may_hold_half_of_the_memory_and_gives_it_back() -> None:
    held = Held(100)
    with held.by("a") as first:
        first.take(50)
        with held.by("a") as second, pytest.raises(RefusedError):
            second.take(1)
        with held.by("b") as other:
            other.take(50)
        with held.by("b") as other:
            other.take(40)
            with held.by("c") as third, pytest.raises(RefusedError):
                third.take(11)
    with held.by("a") as again:
        again.take(50)
    assert not held.by_peer


def test_clients_take_turns_however_many_requests_each_sends() -> None:
    async def body() -> list[str]:
        turns, done = Turns(), list[str]()

        async def work(peer: str) -> None:
            async with turns.of(peer):
                done.append(peer)

        await asyncio.gather(*(work("flood") for _ in range(50)), work("api-server"))
        assert not turns._locks
        assert not turns._waiting
        return done

    assert asyncio.run(body()).index("api-server") <= 3


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_of_ten_thousand_faults_the_first_ones_are_told(operation: str) -> None:
    old, new = cluster(10_000, "a"), cluster(10_000, "b")
    body = json.dumps(admission_review(operation=operation, object=new, oldObject=old)).encode()

    answer = admission.answer(body, "OpenStackCluster")

    assert len(json.dumps(answer)) < 50_000
    response = answer["response"]
    if operation == "UPDATE":
        causes = response["status"]["details"]["causes"]
        assert len(causes) == 51
        assert causes[-1]["message"].endswith("more fields cannot change; the first 50 are listed")
    else:
        assert len(response["warnings"]) == 51


def test_a_name_of_a_megabyte_is_not_told_once_for_each_field_below_it() -> None:
    objects = []
    for text in ("a", "b"):
        obj = cluster(1, text)
        obj["spec"]["x" * 2**20] = {str(i): f"{text}{i}" for i in range(10_000)}
        objects.append(obj)
    body = json.dumps(admission_review(operation="UPDATE", object=objects[0], oldObject=objects[1])).encode()

    assert len(json.dumps(admission.answer(body, "OpenStackCluster"))) < 100_000


def test_an_object_that_is_nested_too_deeply_is_a_bad_request() -> None:
    nested = '{"a":' * 900 + "1" + "}" * 900
    texts = [json.dumps(cluster(1, text)).replace('"cloudName": "b"', f'"c": {nested}') for text in ("a", "b")]
    review = json.dumps(admission_review(operation="UPDATE", object="NEW", oldObject="OLD"))
    body = review.replace('"NEW"', texts[0]).replace('"OLD"', texts[1]).encode()

    assert posted(ADMISSION, body)[0] in (200, 400)


def test_the_process_may_not_have_more_memory_than_its_share_of_the_container() -> None:
    program = (
        "from capo.webhooks import server\n"
        "server.limit_memory(2**28)\n"
        "try:\n    bytearray(2**29)\n"
        "except MemoryError:\n    print('limited')\n"
    )

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)

    assert found.stdout == "limited\n"
