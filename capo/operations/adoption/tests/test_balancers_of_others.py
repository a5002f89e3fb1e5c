"""What a load balancer that was created by hand has and a cluster's would not have is refused or named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.json_types import Json
from capo.operations.adoption.tests.environment import LBAAS, AdoptionEnvironment, NetworkEnvironment
from capo.operations.errors import OperatorError

MONITOR: Json = {"type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}
POOL: Json = {"name": "api", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "healthmonitor": MONITOR}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[NetworkEnvironment]:
    with NetworkEnvironment(tmp_path) as environment:
        environment.make_network()
        yield environment


def listener(port: int, pool: Json | None = None, **more: Any) -> Json:
    named = {**POOL, "name": f"p{port}", **(pool or {})}
    return {"protocol": "TCP", "protocol_port": port, "name": f"l{port}", "default_pool": named, **more}


def make(world: NetworkEnvironment, *listeners: Json) -> Json:
    values = {"name": "api", "vip_subnet_id": world.subnet["id"], "listeners": list(listeners)}
    made: Json = world.member.make(f"{LBAAS}/loadbalancers", "loadbalancer", **values)
    world.clock.advance(60)
    return made


def findings(world: NetworkEnvironment, *more: str) -> list[str]:
    status, plan = world.write_network("lan", "--load-balancer", "api", *more)
    assert status == (3 if plan.findings else 0)
    return list(plan.findings)


def only(world: NetworkEnvironment, kind: str) -> str:
    (found,) = world.inventory()[kind]
    return found


def test_members_of_others_are_named(world: NetworkEnvironment) -> None:
    make(world, listener(6443))
    pool = only(world, "pools")
    made = world.member.make(f"{LBAAS}/pools/{pool}/members", "member", address="10.6.0.9", protocol_port=6443)
    world.clock.advance(60)
    (found,) = findings(world)
    assert found == f"pool {pool} has 1 members of others, such as {made['id']}: requests to the API reach them, too"


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        ({"lb_algorithm": "LEAST_CONNECTIONS"}, "has the algorithm LEAST_CONNECTIONS, not ROUND_ROBIN: it stays"),
        ({"session_persistence": {"type": "SOURCE_IP"}}, "keeps sessions at one member (SOURCE_IP): it stays"),
        ({"admin_state_up": False}, "is disabled: it stays"),
        ({"healthmonitor": {**MONITOR, "type": "HTTPS", "url_path": "/readyz"}}, "is of type HTTPS, not TCP: it stays"),
    ],
    ids=["algorithm", "sessions", "disabled", "monitor"],
)
def test_a_setting_that_the_provider_keeps_is_named(world: NetworkEnvironment, pool: Json, words: str) -> None:
    make(world, listener(6443, pool))
    (found,) = findings(world)
    assert found.endswith(words)


def test_a_listener_that_is_disabled_or_has_a_limit_is_named(world: NetworkEnvironment) -> None:
    make(world, listener(6443, admin_state_up=False, connection_limit=10))
    id_ = only(world, "listeners")
    assert findings(world) == [
        f"listener {id_} is disabled: it stays",
        f"listener {id_} accepts 10 connections at once: it stays",
    ]


def test_a_pool_with_a_protocol_that_no_api_server_speaks_is_refused(world: NetworkEnvironment) -> None:
    make(world, listener(6443, {"protocol": "PROXY"}))
    with pytest.raises(OperatorError, match=f"pool {only(world, 'pools')} has the protocol PROXY, not TCP"):
        world.write_network("lan", "--load-balancer", "api")


def test_listeners_of_one_pool_are_refused(world: NetworkEnvironment) -> None:
    balancer = make(world, listener(6443))
    values = {"loadbalancer_id": balancer["id"], "protocol": "TCP", "protocol_port": 9443}
    world.member.make(f"{LBAAS}/listeners", "listener", **values, default_pool_id=only(world, "pools"))
    world.clock.advance(60)
    with pytest.raises(OperatorError, match=f"several listeners have the pool {only(world, 'pools')}"):
        world.write_network("lan", "--load-balancer", "api")


def test_what_the_provider_would_make_alike_at_all_ports_is_named(world: NetworkEnvironment) -> None:
    slow = {"healthmonitor": {**MONITOR, "delay": 30}}
    make(world, listener(6443), listener(9345, slow, allowed_cidrs=["192.0.2.0/24"]))
    ids = {each["protocol_port"]: each["id"] for each in world.inventory()["listeners"].values()}
    (monitor,) = [id_ for id_, each in world.inventory()["healthmonitors"].items() if each["delay"] == 30]
    assert findings(world) == [
        f"listener {ids[6443]} of port 6443 admits everyone: the provider admits 192.0.2.0/24 at every port",
        f"health monitor {monitor} of port 9345 has delay 30: the provider gives it 10, as that of port 6443 has",
        "allowed CIDRs: the provider adds the addresses of the cluster's subnets, router and bastion",
    ]


def test_the_same_is_named_of_a_lost_cluster(tmp_path: Path) -> None:
    with AdoptionEnvironment(tmp_path) as world:
        balancer = {"enabled": True, "additionalPorts": [9345], "allowedCIDRs": ["192.0.2.0/24"]}
        world.build(apiServer={"managedLoadBalancer": balancer}, bastion=None)
        (opened,) = [id_ for id_, each in world.inventory()["listeners"].items() if each["protocol_port"] == 9345]
        world.lose_management_cluster()
        world.member.ask("PUT", f"{LBAAS}/listeners/{opened}", {"listener": {"allowed_cidrs": ["0.0.0.0/0"]}})
        world.clock.advance(60)
        found = [each for each in world.write()[1].findings if opened in each]
    assert "of port 9345 admits 0.0.0.0/0: the provider admits " in found[0]


def test_the_port_of_the_api_may_be_named(world: NetworkEnvironment) -> None:
    balancer = make(world, listener(8443), listener(9443))
    with pytest.raises(OperatorError, match="name that of the API with --endpoint HOST:PORT"):
        world.write_network("lan", "--load-balancer", "api")

    status, plan = world.write_network("lan", "--load-balancer", "api", "--endpoint", "api.example.org:9443")
    assert (status, plan.findings) == (0, [])
    world.adopt(plan)
    world.cloud.counter.reset()
    world.converge()
    spec = world.spec()
    assert spec["controlPlaneEndpoint"] == {"host": "api.example.org", "port": 9443}
    assert spec["apiServer"]["managedLoadBalancer"]["additionalPorts"] == [8443]
    assert (world.writes(), world.unready()) == ([], [])
    assert balancer["id"] in world.inventory()["loadbalancers"]


def test_a_port_without_a_listener_is_named(world: NetworkEnvironment) -> None:
    make(world, listener(6443))
    address = f"{world.inventory()['loadbalancers'][only(world, 'loadbalancers')]['vip_address']}:443"
    (found,) = findings(world, "--endpoint", address)
    assert found == "the load balancer has no listener on port 443 of the endpoint: the provider creates one"


def test_an_endpoint_without_a_load_balancer_is_refused(world: NetworkEnvironment) -> None:
    with pytest.raises(OperatorError, match="--endpoint is that of a load balancer: name it with --load-balancer"):
        world.write_network("lan", "--endpoint", "api.example.org")


def test_a_member_that_is_added_after_the_review_is_a_change(world: NetworkEnvironment) -> None:
    make(world, listener(6443))
    plan = world.write_network("lan", "--load-balancer", "api")[1]
    path = f"{LBAAS}/pools/{only(world, 'pools')}/members"
    world.member.make(path, "member", address="10.6.0.9", protocol_port=6443)
    world.clock.advance(60)
    with pytest.raises(OperatorError, match="members was"):
        world.adopt(plan)
