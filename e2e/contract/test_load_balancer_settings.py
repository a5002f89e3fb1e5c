"""Settings of the children of a load balancer that others may change: what Octavia shows and takes back."""

from __future__ import annotations

from capo.openstack import load_balancer
from capo.openstack.load_balancer import WEIGHT, Pool, WantedMember
from e2e.contract.environment import ContractEnvironment
from e2e.contract.test_load_balancers import show, whole

TIMEOUTS = {
    "timeout_client_data": 1000,
    "timeout_member_connect": 2000,
    "timeout_member_data": 3000,
    "timeout_tcp_inspect": 10,
    "connection_limit": 100,
}


def test_timeouts_of_a_listener_change_and_are_set_again(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    listener_id = balancer["listeners"][0]["id"]
    before = {name: show(world, "listener", listener_id)[name] for name in TIMEOUTS}

    load_balancer.update_listener(world.cloud, listener_id, TIMEOUTS)
    world.settled(balancer["id"])
    changed = {name: show(world, "listener", listener_id)[name] for name in TIMEOUTS}
    load_balancer.update_listener(world.cloud, listener_id, before)
    world.settled(balancer["id"])

    assert before == {
        "timeout_client_data": 50000,
        "timeout_member_connect": 5000,
        "timeout_member_data": 50000,
        "timeout_tcp_inspect": 0,
        "connection_limit": -1,
    }
    assert changed == TIMEOUTS
    assert {name: show(world, "listener", listener_id)[name] for name in TIMEOUTS} == before


def test_algorithm_of_a_pool_changes_and_is_set_again(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    pool_id = balancer["pools"][0]["id"]

    changed = load_balancer.update_pool(world.cloud, pool_id, {"lb_algorithm": "LEAST_CONNECTIONS"})
    world.settled(balancer["id"])
    between = show(world, "pool", pool_id)["lb_algorithm"]
    load_balancer.update_pool(world.cloud, pool_id, {"lb_algorithm": "ROUND_ROBIN"})
    world.settled(balancer["id"])

    assert (changed["id"], between) == (pool_id, "LEAST_CONNECTIONS")
    assert show(world, "pool", pool_id)["lb_algorithm"] == "ROUND_ROBIN"


def test_weight_of_a_member_changes_and_the_pool_shows_when(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    pool_id = balancer["pools"][0]["id"]
    wanted = WantedMember(name="one", address="10.6.8.21", port=6443, subnet_id=world.subnet_id)
    made = load_balancer.create_member(world.cloud, pool_id, wanted)
    world.settled(balancer["id"])
    (listed,) = load_balancer.members(world.cloud, pool_id)
    before = Pool(show(world, "pool", pool_id)).updated_at

    def changed(weight: int) -> str | None:
        """Set the weight; return when the pool was changed last."""
        load_balancer.update_member(world.cloud, pool_id, made["id"], {"weight": weight})
        world.settled(balancer["id"])
        assert [each["weight"] for each in load_balancer.members(world.cloud, pool_id)] == [weight]
        return Pool(show(world, "pool", pool_id)).updated_at

    assert listed["weight"] == WEIGHT
    assert before is not None
    changed(0)
    world.wait_until(lambda: changed(WEIGHT), lambda at: at != before)  # Octavia's times have whole seconds
