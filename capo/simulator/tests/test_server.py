from __future__ import annotations

import math
import re
import subprocess
import sys

import pytest
import requests

from capo.simulator.cloud import Cloud, Timings
from capo.simulator.routing import Request, Response, Route, Service
from capo.simulator.server import run
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client, Clock, admin, member, simulator

__all__ = ["admin", "member", "simulator"]
NETWORKS = "/network/v2.0/networks"


def names(client: Client) -> set[str]:
    return {network["name"] for network in client.ask("GET", NETWORKS)["networks"]}


def test_a_request_without_a_token_is_refused_as_keystonemiddleware_does(simulator: Simulator) -> None:
    answer = requests.get(simulator.url + NETWORKS, timeout=60)

    assert answer.status_code == 401
    assert answer.json()["error"]["message"] == "The request you have made requires authentication."
    assert answer.headers["WWW-Authenticate"] == f'Keystone uri="{simulator.url}/identity/v3"'


def test_a_token_expires(simulator: Simulator, member: Client) -> None:
    simulator.cloud.timings.token_lifetime_s = 0
    late = Client(simulator)

    with late.session:
        assert late.request("GET", NETWORKS).status_code == 401
    assert member.request("GET", NETWORKS).status_code == 200


def test_all_tokens_can_be_expired_at_once(member: Client) -> None:
    member.request("POST", "/_simulator/tokens/expire")

    assert member.request("GET", NETWORKS).status_code == 401


def test_every_answer_names_its_request(member: Client) -> None:
    answer = member.request("GET", NETWORKS)

    assert re.fullmatch(r"req-[0-9a-f-]{36}", answer.headers["x-openstack-request-id"])


def test_an_unknown_route_is_not_found_and_is_counted(simulator: Simulator, member: Client) -> None:
    assert member.request("GET", "/network/v2.0/nonsense").status_code == 404
    assert simulator.cloud.counter.count("network", "GET", "(unknown)") == 1


def test_an_unknown_service_is_not_found(member: Client) -> None:
    assert member.request("GET", "/dns/v2").status_code == 404


def test_requests_are_counted_by_service_verb_route_and_status_tokens_included(member: Client) -> None:
    network = member.make(NETWORKS, "network", name="n")
    member.request("GET", f"{NETWORKS}/{network['id']}")
    member.request("GET", f"{NETWORKS}/nope")

    counts = member.ask("GET", "/_simulator/counts")

    rows = {(row["service"], row["method"], row["route"], row["status"]): row["count"] for row in counts["counts"]}
    assert rows == {
        ("identity", "POST", "/v3/auth/tokens", 201): 1,
        ("network", "POST", "/v2.0/networks", 201): 1,
        ("network", "GET", "/v2.0/networks/{id}", 200): 1,
        ("network", "GET", "/v2.0/networks/{id}", 404): 1,
    }
    assert (counts["total"], counts["writes"]) == (4, 1)


def test_the_log_says_what_a_request_made_and_deleted(member: Client) -> None:
    network = member.make(NETWORKS, "network", name="n")
    member.request("DELETE", f"{NETWORKS}/{network['id']}")

    calls = member.ask("GET", "/_simulator/log")["calls"]

    assert network["id"] in calls[1]["created"]
    assert (calls[2]["created"], calls[2]["deleted"]) == ([], [network["id"]])
    assert [call["write_number"] for call in calls] == [0, 1, 2]


def test_counts_start_anew_after_a_reset(member: Client) -> None:
    member.request("POST", "/_simulator/reset")

    assert member.ask("GET", "/_simulator/counts") == {"total": 0, "writes": 0, "counts": []}


def test_the_inventory_shows_everything_but_secrets(member: Client) -> None:
    inventory = member.ask("GET", "/_simulator/inventory")

    assert [network["name"] for network in inventory["network"]["networks"]] == ["public"]
    assert all(not key.startswith("_") for user in inventory["identity"]["users"] for key in user)


def test_a_resource_can_be_changed_from_outside(member: Client) -> None:
    port = member.make("/network/v2.0/ports", "port", network_id=member.make(NETWORKS, "network")["id"])

    member.ask("PATCH", f"/_simulator/inventory/network/ports/{port['id']}", {"status": "ERROR"})

    assert member.ask("GET", f"/network/v2.0/ports/{port['id']}")["port"]["status"] == "ERROR"


def test_a_refusal_to_order_is_in_the_words_of_the_service(member: Client) -> None:
    effect = {"status": 409, "kind": "OverQuota", "message": "Quota exceeded for resources: ['network']."}
    member.order(match={"service": "network", "method": "POST", "nth": 1}, effect=effect)

    refused = member.request("POST", NETWORKS, {"network": {"name": "a"}})
    made = member.request("POST", NETWORKS, {"network": {"name": "b"}})

    assert refused.status_code == 409
    assert refused.json()["NeutronError"]["type"] == "OverQuota"
    assert made.status_code == 201
    assert names(member) == {"public", "b"}


def test_a_refusal_to_order_may_have_any_body_and_headers(member: Client) -> None:
    member.order(effect={"status": 429, "body": {"slow": "down"}, "headers": {"Retry-After": "7"}})

    answer = member.request("GET", NETWORKS)

    assert (answer.status_code, answer.json(), answer.headers["Retry-After"]) == (429, {"slow": "down"}, "7")


@pytest.mark.parametrize(
    ("cut", "expected"),
    [pytest.param("before", {"public"}, id="before"), pytest.param("after", {"public", "n"}, id="after")],
)
def test_a_connection_is_cut(member: Client, cut: str, expected: set[str]) -> None:
    member.order(match={"method": "POST"}, effect={"cut": cut})

    with pytest.raises(requests.ConnectionError):
        member.request("POST", NETWORKS, {"network": {"name": "n"}})

    assert names(member) == expected


def test_a_hanging_request_has_no_effect_and_no_answer(member: Client) -> None:
    member.order(match={"method": "POST"}, effect={"hang": 0.05})

    with pytest.raises(requests.ConnectionError):
        member.request("POST", NETWORKS, {"network": {"name": "n"}})

    assert names(member) == {"public"}


def test_a_late_request_takes_effect_after_the_client_lost_it() -> None:
    clock = Clock()
    with Simulator.start(Cloud(clock=clock)) as running:
        client = Client(running)
        client.order(match={"method": "POST"}, effect={"late": 20})
        with pytest.raises(requests.ConnectionError):
            client.request("POST", NETWORKS, {"network": {"name": "n"}})

        before = names(client)
        clock.move(20)
        after = names(client)

        client.session.close()
    assert (before, after) == ({"public"}, {"public", "n"})


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        pytest.param("before", {"public"}, id="before the effect"),
        pytest.param("after_effect", {"public", "n"}, id="after the effect"),
        pytest.param("after_answer", {"public", "n"}, id="after the answer"),
    ],
)
def test_a_process_is_killed_at_the_write_ordered(member: Client, when: str, expected: set[str]) -> None:
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    member.order(match={"write": 1}, effect={"kill": victim.pid, "when": when})

    if when == "after_answer":
        assert member.request("POST", NETWORKS, {"network": {"name": "n"}}).status_code == 201
    else:
        with pytest.raises(requests.ConnectionError):
            member.request("POST", NETWORKS, {"network": {"name": "n"}})

    assert victim.wait(timeout=60) == -9
    assert names(member) == expected


def test_a_process_is_killed_before_its_request_takes_effect_late() -> None:
    clock = Clock()
    with Simulator.start(Cloud(clock=clock)) as running:
        client = Client(running)
        victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        client.order(match={"write": 1}, effect={"kill": victim.pid, "late": 5})
        with pytest.raises(requests.ConnectionError):
            client.request("POST", NETWORKS, {"network": {"name": "n"}})

        status, before = victim.wait(timeout=60), names(client)
        clock.move(5)
        after = names(client)

        client.session.close()
    assert (status, before, after) == (-9, {"public"}, {"public", "n"})


def test_a_request_that_is_repeated_takes_effect_twice() -> None:
    clock = Clock()
    with Simulator.start(Cloud(clock=clock)) as running:
        client = Client(running)
        client.order(match={"write": 1}, effect={"again": 5})
        client.make(NETWORKS, "network", name="n")

        before = len(client.ask("GET", NETWORKS + "?name=n")["networks"])
        clock.move(5)
        after = len(client.ask("GET", NETWORKS + "?name=n")["networks"])

        client.session.close()
    assert (before, after) == (1, 2)


def test_a_fault_can_be_listed_and_removed(member: Client) -> None:
    kept = member.order(match={"service": "compute"}, effect={"status": 500})
    gone = member.order(match={"service": "network"}, effect={"status": 500})
    member.request("GET", NETWORKS)

    member.request("DELETE", f"/_simulator/faults/{gone['id']}")
    left = member.ask("GET", "/_simulator/faults")["faults"]
    member.request("DELETE", "/_simulator/faults")

    assert [(fault["id"], fault["seen"]) for fault in left] == [(kept["id"], 0)]
    assert member.ask("GET", "/_simulator/faults") == {"faults": []}


def test_a_document_that_is_no_fault_is_refused(member: Client) -> None:
    answer = member.request("POST", "/_simulator/faults", {"effect": {"explode": 1}})

    assert (answer.status_code, answer.json()) == (400, {"error": "unknown keys in effect: explode"})


def test_latency_delays_one_route(simulator: Simulator, member: Client) -> None:
    simulator.cloud.timings.latency["network GET /v2.0/networks"] = 0.2

    slow = member.request("GET", NETWORKS).elapsed.total_seconds()
    quick = member.request("GET", "/network/v2.0/ports").elapsed.total_seconds()

    assert slow >= 0.2 > quick


def test_timings_can_be_changed_while_serving(simulator: Simulator, member: Client) -> None:
    member.ask("PATCH", "/_simulator/timings", {"server_build_s": 7})

    assert simulator.cloud.timings.server_build_s == 7
    assert member.request("PATCH", "/_simulator/timings", {"build": 7}).status_code == 400


def test_transitions_follow_the_cloud_s_clock() -> None:
    clock = Clock()
    cloud = Cloud(clock=clock)
    done: list[str] = []
    cloud.after(2, lambda: done.append("second"))
    cloud.after(1, lambda: done.append("first"))
    cloud.after(math.inf, lambda: done.append("never"))

    cloud.run_due()
    before = list(done)
    clock.move(5)
    cloud.run_due()

    assert (before, done) == ([], ["first", "second"])


def test_what_takes_for_ever_is_released_from_outside(simulator: Simulator, admin: Client) -> None:
    simulator.cloud.timings.port_active_s = math.inf
    network_id = admin.make(NETWORKS, "network")["id"]
    port = admin.make("/network/v2.0/ports", "port", network_id=network_id, **{"binding:host_id": "compute-az1"})

    released = admin.ask("POST", "/_simulator/release")

    found = admin.ask("GET", f"/network/v2.0/ports/{port['id']}")["port"]
    assert (released, port["status"], found["status"]) == ({"released": 1}, "DOWN", "ACTIVE")


def test_a_port_becomes_active_when_its_time_has_come() -> None:
    clock = Clock()
    with Simulator.start(Cloud(clock=clock, timings=Timings(port_active_s=60))) as running:
        client = Client(running, "sim-admin")
        network_id = client.make(NETWORKS, "network")["id"]
        port = client.make("/network/v2.0/ports", "port", network_id=network_id, **{"binding:host_id": "compute-az1"})

        clock.move(60)

        found = client.ask("GET", f"/network/v2.0/ports/{port['id']}")["port"]
        client.session.close()
    assert (port["status"], found["status"]) == ("DOWN", "ACTIVE")


def test_two_simulators_run_side_by_side(simulator: Simulator, member: Client) -> None:
    member.make(NETWORKS, "network", name="n")

    with Simulator.start() as other:
        client = Client(other)
        with client.session:
            assert names(client) == {"public"}
        assert other.url != simulator.url


def test_a_simulator_ends_that_is_stopped_as_soon_as_it_is_ready() -> None:
    class Stopped(Simulator):
        def __init__(self, cloud: Cloud, *, port: int) -> None:
            super().__init__(cloud, port=port)
            self._ready.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._loop.stop))

    stopped = Stopped.start()

    stopped._thread.join(60)
    assert not stopped._thread.is_alive()
    stopped._folder.cleanup()


def test_a_port_in_use_is_reported(simulator: Simulator) -> None:
    with pytest.raises(OSError, match="in use"):
        Simulator.start(port=int(simulator.url.rpartition(":")[2]))


def test_a_handler_that_waits_is_a_bug() -> None:
    service = Service(name="x", prefix="/x")

    class Pause:
        def __await__(self):  # type: ignore[no-untyped-def]
            yield

    async def handler(_: Request) -> Response:
        await Pause()
        return Response(200)

    with pytest.raises(RuntimeError, match="awaits"):
        run(Route("GET", "/", handler), Request(Cloud(), service, "GET", "/", ""))
