"""A simulator in the process and one that serves by a socket, asked the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from capo.simulator.in_process import InProcessSimulator
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client

NETWORKS = "/network/v2.0/networks"
VOLATILE = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}": "ID",
    r"127\.0\.0\.1:\d+": "HOST",
    r"\d{4}-\d\d-\d\dT[0-9:.]+Z?": "TIME",
    r"\w{3}, \d\d \w{3} \d{4} [0-9:]{8} GMT": "DATE",
    r"HTTPConnectionPool\(host='[^']+', port=\d+\)|<\S+_Pool object at 0x[0-9a-f]+>": "POOL",
}


def constant(text: str) -> str:
    """Return a text without what differs between two clouds."""
    for pattern, name in VOLATILE.items():
        text = re.sub(pattern, name, text)
    return text


@pytest.fixture
def both() -> Iterator[list[Client]]:
    with Simulator.start() as by_socket, InProcessSimulator.start() as in_process:
        clients = [Client(by_socket), Client(in_process)]
        yield clients
        for client in clients:
            client.session.close()


def outcome(client: Client, method: str, path: str, **more: Any) -> list[str]:
    """Return all of an answer, or of the exception instead of one."""
    try:
        answer = client.session.request(method, client.url + path, **{"timeout": 60, **more})
    except requests.RequestException as error:
        causes = [error, *error.args, *(each for inner in error.args for each in getattr(inner, "args", ()))]
        return [constant(f"{type(each).__name__} {each}") for each in causes]
    headers = sorted(f"{name}: {value}" for name, value in answer.headers.items())
    return [str(answer.status_code), str(answer.reason), *map(constant, headers), constant(answer.text)]


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        pytest.param("GET", NETWORKS, {}, id="list"),
        pytest.param("GET", NETWORKS, {"params": {"name": "a b%&ä+c"}}, id="query to escape"),
        pytest.param("GET", f"{NETWORKS}/a%20b", {}, id="escaped path"),
        pytest.param("POST", NETWORKS, {"json": {"network": {"name": "n"}}}, id="create"),
        pytest.param("POST", NETWORKS, {"data": '{"network": {"name": "ü"}}'}, id="text as body"),
        pytest.param("POST", NETWORKS, {"data": b"{"}, id="no JSON"),
        pytest.param("DELETE", f"{NETWORKS}/nope", {}, id="not found"),
        pytest.param("PUT", "/network/v2.0/nonsense", {}, id="unknown route"),
        pytest.param("GET", "/dns/v2", {}, id="unknown service"),
        pytest.param("GET", NETWORKS, {"headers": {"X-Auth-Token": "x"}}, id="no valid token"),
        pytest.param("HEAD", "/image/v2/images", {}, id="no body"),
        pytest.param("GET", "/compute/v2.1", {"headers": {"OpenStack-API-Version": "compute 9.9"}}, id="microversion"),
        pytest.param("GET", "/_simulator/faults", {}, id="own API"),
        pytest.param("POST", "/_simulator/tokens/expire", {}, id="no content"),
        pytest.param("POST", "/_simulator/faults", {"json": []}, id="refused by its own API"),
    ],
)
def test_it_answers_the_same(both: list[Client], method: str, path: str, more: dict[str, Any]) -> None:
    expected, found = (outcome(client, method, path, **more) for client in both)

    assert found == expected


@pytest.mark.parametrize(
    ("effect", "count"),
    [
        pytest.param({"cut": "before"}, 0, id="cut before"),
        pytest.param({"cut": "after"}, 1, id="answer lost"),
        pytest.param({"late": 60}, 0, id="late"),
        pytest.param({"hang": 60}, 0, id="no answer in time"),
        pytest.param({"delay_s": 60}, 0, id="slow"),
        pytest.param({"delay_s": 0.01}, 1, id="a little slow"),
        pytest.param({"status": 503, "body": "<h1>gone</h1>"}, 0, id="a page"),
        pytest.param({"status": 429, "headers": {"Retry-After": "5"}}, 0, id="refused"),
    ],
)
def test_a_fault_raises_the_same_and_has_the_same_effect(
    both: list[Client], effect: dict[str, Any], count: int
) -> None:
    found = []
    for client in both:
        client.order(match={"service": "network", "method": "POST"}, effect=effect)
        came = outcome(client, "POST", NETWORKS, json={"network": {"name": "n"}}, timeout=1.0)
        found.append((came, len(client.ask("GET", NETWORKS, params={"name": "n"})["networks"])))

    assert found[0] == found[1]
    assert found[1][1] == count


def test_requests_of_several_threads_run_one_after_the_other() -> None:
    with InProcessSimulator.start() as simulator, Client(simulator).session as session:
        url = simulator.url + NETWORKS

        def create(number: int) -> int:
            return session.post(url, json={"network": {"name": f"n-{number}"}}, timeout=60).status_code

        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(create, range(40))) == {201}
        assert len(session.get(url, timeout=60).json()["networks"]) == 41  # one is there from the start


def test_what_mounts_no_adapter_is_refused_and_so_is_all_after_its_end() -> None:
    with InProcessSimulator.start() as simulator, Client(simulator).session as session:
        with pytest.raises(requests.ConnectionError, match="refused"):
            requests.get(simulator.url, timeout=60)
        simulator.stop()
        with pytest.raises(requests.ConnectionError, match="refused"):
            session.get(simulator.url, timeout=60)
