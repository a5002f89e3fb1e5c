"""Every example of ``docs/reference/simulator.md`` is sent verbatim and has the described effect."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import requests

from capo.simulator.testing import Client
from capo.simulator.tests.environment import CINDER, LATEST, NEUTRON, NOVA, OCTAVIA, SimulatorEnvironment, stage
from capo.simulator.tests.examples import order

__all__ = ["stage"]
CREATE = {"volume": {"size": 1, "name": "v"}}


def status_of(stage: SimulatorEnvironment, balancer_id: str) -> str:
    found = stage.member.ask("GET", f"{OCTAVIA}/loadbalancers/{balancer_id}")["loadbalancer"]
    return str(found["provisioning_status"])


def volumes(client: Client) -> list[str]:
    return [volume["name"] for volume in client.ask("GET", f"{CINDER}/volumes")["volumes"]]


def server_names(stage: SimulatorEnvironment) -> list[str]:
    return [server["name"] for server in stage.nova("GET", "/servers")["servers"]]


def meanwhile(stage: SimulatorEnvironment, method: str, path: str, json: Any) -> Future[requests.Response]:
    """Send a request that a fault holds, and return when it is held."""
    pool = ThreadPoolExecutor(1)
    asked = pool.submit(stage.member.request, method, path, json)
    pool.shutdown(wait=False)
    while not stage.admin.ask("GET", "/_simulator/faults")["faults"][0]["struck"]:
        assert not asked.done(), asked.result().text
    return asked


def test_third_port_is_refused_in_neutrons_words(stage: SimulatorEnvironment) -> None:
    network, _ = stage.network()
    order(stage.member, "The n-th call fails")

    answers = [stage.member.request("POST", f"{NEUTRON}/ports", {"port": {"network_id": network}}) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [201, 201, 409, 201]
    fault = answers[2].json()["NeutronError"]
    assert (fault["type"], fault["message"]) == ("OverQuota", "Quota exceeded for resources: ['port'].")


def test_one_port_refuses_to_go_three_times(stage: SimulatorEnvironment) -> None:
    network, _ = stage.network()
    stubborn, other = stage.port(network), stage.port(network)
    order(stage.member, "The n-th call fails", 2, PORT_ID=stubborn)

    answers = [stage.member.request("DELETE", f"{NEUTRON}/ports/{each}") for each in (other, *[stubborn] * 4)]

    assert [answer.status_code for answer in answers] == [204, 500, 500, 500, 204]


def test_too_many_requests_have_a_body_and_a_time_to_wait(stage: SimulatorEnvironment) -> None:
    order(stage.member, "The n-th call fails", 3)

    answer = stage.member.request("GET", f"{NEUTRON}/ports")

    assert (answer.status_code, answer.json(), answer.headers["Retry-After"]) == (429, {"message": "slow down"}, "5")


def test_hanging_call_has_no_answer_and_no_effect(stage: SimulatorEnvironment) -> None:
    order(stage.member, "A call hangs")
    asked = meanwhile(stage, "POST", f"{CINDER}/{stage.member.project_id}/volumes", CREATE)

    stage.clock.move(599)
    before = volumes(stage.admin)
    was_held = not asked.done()
    stage.clock.move(1)
    after = volumes(stage.admin)

    with pytest.raises(requests.ConnectionError):
        asked.result(timeout=60)
    assert (before, was_held, after) == ([], True, [])


@pytest.mark.parametrize(
    ("number", "made"), [pytest.param(1, [], id="before the effect"), pytest.param(2, ["s"], id="after the effect")]
)
def test_connection_is_cut(stage: SimulatorEnvironment, number: int, made: list[str]) -> None:
    body = stage.body()
    order(stage.member, "The connection is cut", number)

    with pytest.raises(requests.ConnectionError):
        stage.member.request("POST", f"{NOVA}/servers", body, headers=LATEST)

    assert server_names(stage) == made


def test_late_call_takes_effect_when_its_client_is_gone(stage: SimulatorEnvironment) -> None:
    _, subnet = stage.network()
    order(stage.member, "A call lands late")
    with pytest.raises(requests.ConnectionError):
        stage.member.make(f"{OCTAVIA}/loadbalancers", "loadbalancer", name="lb", vip_subnet_id=subnet)
    stage.member.session.close()

    stage.clock.move(19)
    before = stage.admin.ask("GET", f"{OCTAVIA}/loadbalancers")["loadbalancers"]
    stage.clock.move(1)
    after = stage.admin.ask("GET", f"{OCTAVIA}/loadbalancers")["loadbalancers"]

    assert (before, [balancer["name"] for balancer in after]) == ([], ["lb"])


def test_client_dies_at_the_seventh_write(stage: SimulatorEnvironment) -> None:
    stage.member.request("POST", "/_simulator/reset")
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    order(stage.member, "The client dies", **{"4711": victim.pid})
    for number in range(6):
        stage.member.make(f"{NEUTRON}/networks", "network", name=f"n{number}")
    lived = victim.poll()

    with pytest.raises(requests.ConnectionError):
        stage.member.make(f"{NEUTRON}/networks", "network", name="n6")

    names = {network["name"] for network in stage.member.ask("GET", f"{NEUTRON}/networks")["networks"]}
    assert (lived, victim.wait(timeout=60)) == (None, -9)
    assert "n6" in names


def test_slow_answers_come_when_their_time_is_over(stage: SimulatorEnvironment) -> None:
    order(stage.member, "Answers come slowly")
    asked = meanwhile(stage, "POST", f"{CINDER}/{stage.member.project_id}/volumes", CREATE)

    stage.clock.move(2)
    stage.admin.ask("GET", f"{NEUTRON}/networks")

    assert asked.result(timeout=60).status_code == 202


def test_service_is_down_for_half_a_minute(stage: SimulatorEnvironment) -> None:
    order(stage.member, "A service is down for a while")

    down = stage.member.request("GET", f"{NOVA}/servers")
    other = stage.member.request("GET", f"{NEUTRON}/networks")
    stage.clock.move(30)
    up = stage.member.request("GET", f"{NOVA}/servers")

    assert [answer.status_code for answer in (down, other, up)] == [503, 200, 200]


def test_next_two_servers_that_fit_end_in_error(stage: SimulatorEnvironment) -> None:
    order(stage.member, "A server ends in ERROR")

    made = [stage.built(name=name) for name in ("worker-1", "bastion", "worker-2", "worker-3")]

    shown = [stage.server_of(each) for each in made]
    assert [each["status"] for each in shown] == ["ERROR", "ACTIVE", "ERROR", "ACTIVE"]
    assert (shown[0]["fault"]["code"], shown[0]["fault"]["message"]) == (500, "No valid host was found. ")


def test_server_that_is_there_goes_into_error(stage: SimulatorEnvironment) -> None:
    made = stage.built()

    order(stage.member, "A server ends in ERROR", 2, SERVER_ID=made)

    shown = stage.server_of(made)
    assert (shown["status"], shown["fault"]["message"], shown["fault"]["code"]) == ("ERROR", "Host is gone", 500)


def test_servers_of_a_cell_that_is_down_are_left_out_or_unknown(stage: SimulatorEnvironment) -> None:
    made = stage.built()
    old = {"OpenStack-API-Version": "compute 2.68"}

    order(stage.member, "A Nova cell is down")

    listed = stage.nova("GET", "/servers/detail")["servers"]
    assert [(server["id"], server["status"]) for server in listed] == [(made, "UNKNOWN")]
    assert stage.nova("GET", "/servers/detail", headers=old)["servers"] == []
    stage.tweak("compute/cell", down=False)
    assert stage.server_of(made)["status"] == "ACTIVE"


def test_port_of_a_server_stays_down(stage: SimulatorEnvironment) -> None:
    port = stage.port(stage.network()[0])
    order(stage.member, "A port never becomes ACTIVE")

    stage.built(networks=[{"port": port}])
    stage.clock.move(10**4)

    assert stage.port_of(port)["status"] == "DOWN"
    stage.member.request("POST", "/_simulator/release")
    assert stage.port_of(port)["status"] == "ACTIVE"


def test_load_balancer_stays_pending_until_it_is_released(stage: SimulatorEnvironment) -> None:
    _, subnet = stage.network()
    order(stage.member, "Octavia stays PENDING")
    made = stage.member.make(f"{OCTAVIA}/loadbalancers", "loadbalancer", name="lb", vip_subnet_id=subnet)["id"]
    seen = []

    def look() -> None:
        stage.clock.move(3000)
        seen.append(status_of(stage, made))

    look()
    stage.member.request("POST", "/_simulator/release")
    look()
    stage.member.ask("PUT", f"{OCTAVIA}/loadbalancers/{made}", {"loadbalancer": {"name": "other"}})
    look()
    refused = stage.member.request("DELETE", f"{OCTAVIA}/loadbalancers/{made}")
    stage.member.request("POST", "/_simulator/release")
    stage.member.request("DELETE", f"{OCTAVIA}/loadbalancers/{made}")
    look()

    assert seen == ["PENDING_CREATE", "ACTIVE", "PENDING_UPDATE", "PENDING_DELETE"]
    assert refused.status_code == 409


def test_next_change_of_a_load_balancer_ends_in_error(stage: SimulatorEnvironment) -> None:
    _, subnet = stage.network()
    order(stage.member, "A change of a load balancer fails")

    made = [
        stage.member.make(f"{OCTAVIA}/loadbalancers", "loadbalancer", name=name, vip_subnet_id=subnet)["id"]
        for name in ("other", "kubeapi-1", "kubeapi-2")
    ]
    stage.clock.move(5)

    assert [status_of(stage, each) for each in made] == ["ACTIVE", "ERROR", "ACTIVE"]


def test_next_member_ends_in_error_beside_an_active_load_balancer(stage: SimulatorEnvironment) -> None:
    _, subnet = stage.network()
    pool = {"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    listener = {"protocol": "TCP", "protocol_port": 6443, "default_pool": pool}
    make = stage.member.make
    made = make(f"{OCTAVIA}/loadbalancers", "loadbalancer", name="lb", vip_subnet_id=subnet, listeners=[listener])
    stage.clock.move(5)
    members = f"{OCTAVIA}/pools/{made['pools'][0]['id']}/members"
    order(stage.member, "A member fails while its load balancer is ACTIVE")

    for number in (5, 6):
        make(members, "member", address=f"10.6.0.{number}", protocol_port=6443)
        stage.clock.move(5)

    found = {each["address"]: each["provisioning_status"] for each in stage.member.ask("GET", members)["members"]}
    assert found == {"10.6.0.5": "ERROR", "10.6.0.6": "ACTIVE"}
    assert status_of(stage, made["id"]) == "ACTIVE"


def test_quota_is_met(stage: SimulatorEnvironment) -> None:
    network, _ = stage.network()
    order(stage.member, "A quota is met", PROJECT_ID=stage.member.project_id)
    path, body = f"{NEUTRON}/ports", {"port": {"network_id": network}}

    answers = [stage.member.request("POST", path, body) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [201, 201, 201, 409]
    assert answers[3].json()["NeutronError"]["type"] == "OverQuota"


def test_policy_forbids(stage: SimulatorEnvironment) -> None:
    order(stage.member, "A policy forbids")

    status, body = stage.refused("POST", f"{NEUTRON}/floatingips", {"floatingip": {}})

    assert (status, body["NeutronError"]["type"]) == (403, "PolicyNotAuthorized")


@pytest.mark.parametrize("number", [pytest.param(1, id="password"), pytest.param(2, id="token")])
def test_credentials_end(stage: SimulatorEnvironment, number: int) -> None:
    order(stage.member, "Credentials end", number)

    assert stage.member.request("GET", f"{NEUTRON}/networks").status_code == 401
