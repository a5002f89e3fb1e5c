"""Load balancers against the simulator: created whole, changed child by child, deleted with all children."""

from __future__ import annotations

import pytest

from capo.errors import (
    ConflictError,
)
from capo.json_types import Body
from capo.openstack import (
    load_balancer,
)
from capo.openstack.tests.environment import CloudEnvironment, roles, running, stamp, world

__all__ = ["running", "world"]


def balancer(world: CloudEnvironment) -> Body:
    net, sub = world.network()
    wanted = [
        load_balancer.WantedListener(
            stamp(f"listener-{number}"),
            f"l{number}",
            number,
            load_balancer.WantedPool(
                stamp(f"pool-{number}"),
                f"p{number}",
                monitor=load_balancer.WantedHealthMonitor(stamp(f"monitor-{number}"), "m"),
            ),
        )
        for number in (6443, 9345)
    ]
    return load_balancer.create(
        world.cloud,
        load_balancer.WantedLoadBalancer(stamp("lb"), "lb", "d", net["id"], sub["id"], wanted),
    )


def test_a_load_balancer_comes_and_goes_whole(world: CloudEnvironment) -> None:
    before = world.requests()
    body = balancer(world)

    assert world.requests() - before == 3  # network, subnet, load balancer with all children
    children = list(load_balancer.children(body))
    assert roles(world.found("listener"), "listener") == ["listener-6443", "listener-9345"]
    assert roles(world.found("pool"), "pool") == ["pool-6443", "pool-9345"]
    assert sorted(kind for kind, _ in children) == sorted(["listener", "pool", "health_monitor"] * 2)
    assert roles(world.found("health_monitor"), "health_monitor") == ["monitor-6443", "monitor-9345"]
    load_balancer.delete(world.cloud, body["id"])
    world.let_pass()
    load_balancer.delete(world.cloud, body["id"])
    assert world.found("load_balancer") == []
    assert world.found("pool") == []


def test_a_busy_load_balancer_is_a_conflict(world: CloudEnvironment) -> None:
    body = balancer(world)
    pool_id = next(child["id"] for kind, child in load_balancer.children(body) if kind == "pool")

    with pytest.raises(ConflictError, match="immutable"):
        load_balancer.create_member(world.cloud, pool_id, load_balancer.WantedMember("m", "10.6.0.9", 6443))


def test_children_are_changed_one_after_the_other(world: CloudEnvironment) -> None:
    children = dict(load_balancer.children(balancer(world)))
    pool_id, listener_id = children["pool"]["id"], children["listener"]["id"]
    cloud, member = world.cloud, load_balancer.WantedMember("m", "10.6.0.9", 6443, stamp=stamp("member-6443"))
    world.let_pass()

    made = load_balancer.create_member(cloud, pool_id, member)
    world.let_pass()
    with pytest.raises(ConflictError, match="already using ip"):
        load_balancer.create_member(cloud, pool_id, member)
    assert [each["address"] for each in load_balancer.members(cloud, pool_id)] == ["10.6.0.9"]
    for _ in range(2):
        load_balancer.delete_member(cloud, pool_id, made["id"])
        world.let_pass()
    changed = load_balancer.update_listener(cloud, listener_id, {"allowed_cidrs": ["10.0.0.0/8"]})
    assert changed["allowed_cidrs"] == ["10.0.0.0/8"]
    world.let_pass()
    monitor_id = children["health_monitor"]["id"]
    assert load_balancer.update_health_monitor(cloud, monitor_id, {"delay": 11})["delay"] == 11


def test_a_port_is_added_to_a_load_balancer_step_by_step(world: CloudEnvironment) -> None:
    body = balancer(world)
    world.let_pass()
    monitor = load_balancer.WantedHealthMonitor(stamp("monitor-1"), "m")
    wanted = load_balancer.WantedListener(
        stamp("listener-1"), "l", 1, load_balancer.WantedPool(stamp("pool-1"), "p", monitor=monitor)
    )

    listener = load_balancer.create_listener(world.cloud, body["id"], wanted)
    world.let_pass()
    pool = load_balancer.create_pool(world.cloud, listener["id"], wanted.pool)
    world.let_pass()
    load_balancer.create_health_monitor(world.cloud, pool["id"], monitor)

    assert "listener-1" in roles(world.found("listener"), "listener")
    assert "pool-1" in roles(world.found("pool"), "pool")
    assert "monitor-1" in roles(world.found("health_monitor"), "health_monitor")


def test_what_a_load_balancer_is_made_with_is_looked_up(world: CloudEnvironment) -> None:
    assert "amphora" in load_balancer.providers(world.cloud)
    assert load_balancer.flavor_id(world.cloud, "single")
    assert load_balancer.flavor_id(world.cloud, "none of that name") is None


def test_a_part_without_an_id_is_found_by_nothing() -> None:
    assert load_balancer.parent_ids({"loadbalancers": [{}, {"id": "b1"}]}) == {"b1"}
    assert load_balancer.BY_MEMBER.values({"members": [{}, {"id": "m1"}]}) == ["m1"]
