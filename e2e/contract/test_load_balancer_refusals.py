"""Load balancers: the requests that Octavia refuses, and its answers."""

from __future__ import annotations

import pytest

from capo.errors import (
    CapoError,
    ForbiddenError,
    InvalidSpecError,
    NetworkNotFoundError,
    NotFoundError,
    SubnetNotFoundError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.openstack import load_balancer, port
from e2e.contract.environment import UNKNOWN, ContractEnvironment
from e2e.contract.test_load_balancers import LB, member, raw, shared, show


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        pytest.param({"vip_network_id": UNKNOWN, "vip_subnet_id": None}, NetworkNotFoundError, id="network"),
        pytest.param({"vip_subnet_id": UNKNOWN}, SubnetNotFoundError, id="subnet"),
        pytest.param({"vip_address": "10.99.0.1"}, CapoError, id="address of no subnet"),
        pytest.param({"flavor_id": UNKNOWN}, CapoError, id="flavor"),
        pytest.param({"availability_zone": "no-such-zone"}, CapoError, id="zone"),
        pytest.param({"provider": "no-such-provider"}, UnsupportedByCloudError, id="provider"),
        pytest.param({"name": "x" * 256}, InvalidSpecError, id="long name"),
        pytest.param({"tags": ["x" * 256]}, InvalidSpecError, id="long tag"),
    ],
)
def test_load_balancer_that_refers_to_what_is_not_there_is_refused(
    world: ContractEnvironment, wish: Body, error: type[CapoError]
) -> None:
    refusal = world.refused(lambda: world.load_balancer(**wish))

    assert isinstance(refusal.error, error)


def test_vip_address_that_is_taken_is_refused(world: ContractEnvironment) -> None:
    taken = world.port()

    refusal = world.refused(lambda: world.load_balancer(vip_address=taken["fixed_ips"][0]["ip_address"]))

    assert refusal.status >= 400
    port.delete(world.cloud, taken["id"])


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"vip_subnet_id": "x"}, id="subnet"),
        pytest.param({"name": "x"}, id="no VIP"),
        pytest.param({"vip_subnet_id": UNKNOWN, "colour": "red"}, id="unknown field"),
        pytest.param({"vip_subnet_id": UNKNOWN, "admin_state_up": "perhaps"}, id="no boolean"),
        pytest.param({"vip_subnet_id": UNKNOWN, "tags": "a"}, id="tags"),
    ],
)
def test_malformed_load_balancer_is_refused(world: ContractEnvironment, fields: Body) -> None:
    refusal = world.refused(lambda: raw(world, "loadbalancers", "loadbalancer", **fields))

    assert refusal.status == 400


@pytest.mark.parametrize("data", [pytest.param("{load", id="no JSON"), pytest.param("{}", id="object")])
def test_body_that_is_no_load_balancer_is_refused(world: ContractEnvironment, data: str) -> None:
    refusal = world.refused(lambda: world.raw("POST", LB, "/lbaas/loadbalancers", data=data))

    assert refusal.status in (400, 500)


def test_vip_on_a_subnet_of_another_network_or_a_port_in_use_is_refused(world: ContractEnvironment) -> None:
    other, taken = world.network()["id"], world.port(value_specs=[("device_id", "somebody")])["id"]

    refusals = [
        world.refused(lambda: world.load_balancer(vip_network_id=other)),
        world.refused(lambda: raw(world, "loadbalancers", "loadbalancer", vip_port_id=taken)),
    ]

    assert [each.status for each in refusals] == [400, 400]


def test_wrong_listeners_are_refused(world: ContractEnvironment) -> None:
    balancer = shared(world)
    good: Body = {"loadbalancer_id": balancer["id"], "protocol": "TCP", "protocol_port": 443}
    wrong: list[Body] = [
        {**good, "protocol_port": 6443},
        {**good, "protocol_port": 70000},
        {**good, "protocol": "PIGEON"},
        {**good, "allowed_cidrs": ["everywhere"]},
        {**good, "allowed_cidrs": ["fd00::/8"]},
        {**good, "colour": "red"},
        {**good, "loadbalancer_id": UNKNOWN},
    ]

    for fields in wrong:
        refusal = world.refused(lambda fields=fields: raw(world, "listeners", "listener", **fields))  # type: ignore[misc]
        assert refusal.status in (400, 404, 409)


def test_wrong_pools_and_monitors_are_refused(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id, listener_id = balancer["pools"][0]["id"], balancer["listeners"][0]["id"]
    pool: Body = {"loadbalancer_id": balancer["id"], "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    monitor: Body = {"pool_id": pool_id, "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}
    second_default = {"listener_id": listener_id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    wrong: list[tuple[str, Body]] = [
        ("pool", {**pool, "lb_algorithm": "DICE"}),
        ("pool", {**pool, "protocol": "PIGEON"}),
        ("pool", second_default),
        ("pool", {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}),
        ("healthmonitor", monitor),
        ("healthmonitor", {**monitor, "type": "LOOK"}),
    ]

    for kind, fields in wrong:
        refusal = world.refused(lambda kind=kind, fields=fields: raw(world, f"{kind}s", kind, **fields))  # type: ignore[misc]
        assert refusal.status in (400, 404, 409)


def test_wrong_changes_of_children_are_refused(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id, listener_id = balancer["pools"][0]["id"], balancer["listeners"][0]["id"]
    monitor_id = show(world, "pool", pool_id)["healthmonitor_id"]
    new: Body = {"address": "10.6.0.12", "protocol_port": 6443}
    wrong: list[tuple[str, Body]] = [
        (f"listeners/{listener_id}", {"listener": {"default_pool_id": UNKNOWN}}),
        (f"healthmonitors/{monitor_id}", {"healthmonitor": {"url_path": "/"}}),
        (f"healthmonitors/{monitor_id}", {"healthmonitor": {"max_retries": None}}),
        (f"pools/{pool_id}/members", {"members": [new, new]}),
        (f"pools/{pool_id}/members?colour=red", {"members": [new]}),
    ]

    for path, body in wrong:
        refusal = world.refused(lambda path=path, body=body: world.cloud.put(LB, f"/lbaas/{path}", json=body))  # type: ignore[misc]
        assert refusal.status in (400, 404, 409)


def test_metadata_service_is_no_member(world: ContractEnvironment) -> None:
    pool_id = shared(world)["pools"][0]["id"]

    refusal = world.refused(lambda: load_balancer.create_member(world.cloud, pool_id, member("169.254.169.254")))

    assert refusal.status == 400


@pytest.mark.parametrize("kind", ["loadbalancer", "listener", "pool", "healthmonitor"])
def test_what_is_not_there_is_not_found(world: ContractEnvironment, kind: str) -> None:
    shown = world.refused(lambda: show(world, kind, UNKNOWN))
    deleted = world.refused(lambda: world.cloud.delete(LB, f"/lbaas/{kind}s/{UNKNOWN}"))
    changed = world.refused(lambda: world.cloud.put(LB, f"/lbaas/{kind}s/{UNKNOWN}", json={kind: {"name": "x"}}))

    assert all(isinstance(each.error, NotFoundError) for each in (shown, deleted, changed))


def test_members_of_an_unknown_pool_are_not_found(world: ContractEnvironment) -> None:
    listed = world.refused(lambda: load_balancer.members(world.cloud, UNKNOWN))
    added = world.refused(lambda: load_balancer.create_member(world.cloud, UNKNOWN, member("10.6.0.10")))

    assert isinstance(listed.error, NotFoundError)
    assert isinstance(added.error, NotFoundError)


def test_load_balancer_of_another_project_is_forbidden(world: ContractEnvironment) -> None:
    made = shared(world)

    shown = world.refused(lambda: world.stranger.get(LB, f"/lbaas/loadbalancers/{made['id']}"))
    deleted = world.refused(lambda: world.stranger.delete(LB, f"/lbaas/loadbalancers/{made['id']}"))

    assert isinstance(shown.error, ForbiddenError)
    assert isinstance(deleted.error, ForbiddenError)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"colour": "red"}, id="unknown"),
        pytest.param({"limit": "many"}, id="limit"),
        pytest.param({"marker": UNKNOWN}, id="marker"),
        pytest.param({"sort": "colour"}, id="sort key"),
    ],
)
def test_odd_parameter_of_a_list_is_answered_alike(world: ContractEnvironment, params: Body) -> None:
    query = {"name": "no-such-load-balancer", **params}

    world.refused_or_empty(lambda: world.cloud.list_all(LB, "/lbaas/loadbalancers", "loadbalancers", params=query))
