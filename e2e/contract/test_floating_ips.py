"""Floating IPs: from the pool, to a port, to another, back; and refusals for a plain member."""

from __future__ import annotations

import pytest

from capo.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    NetworkNotFoundError,
    NotFoundError,
)
from capo.json_types import Body
from capo.openstack import floating_ip, port, router, tags
from capo.openstack.floating_ip import WantedFloatingIP
from capo.openstack.router import WantedRouter
from e2e.contract.environment import POOL, UNKNOWN, ContractEnvironment


def new(world: ContractEnvironment, **wishes: object) -> Body:
    values = {"stamp": world.stamp("fip"), "network_id": world.external_id, "description": "for the suite", **wishes}
    return floating_ip.create(world.cloud, WantedFloatingIP(**values))  # type: ignore[arg-type]


def show(world: ContractEnvironment, floating_ip_id: str) -> Body:
    found: Body = world.cloud.get("network", f"/floatingips/{floating_ip_id}")["floatingip"]
    return found


def routed_network(world: ContractEnvironment) -> tuple[str, Body]:
    """Return a network with a router to the external network, and the router."""
    parent = world.network()
    inside = world.subnet(parent["id"], allocation_pools=[POOL])
    made = router.create(world.cloud, WantedRouter(world.stamp(), world.name(), external_network_id=world.external_id))
    router.add_interface(world.cloud, made["id"], inside["id"])
    return parent["id"], {**made, "subnet_id": inside["id"]}


def shared_network(world: ContractEnvironment) -> tuple[str, Body]:
    """Return a network with a router to the external network, and the router; tests share both."""
    return world.shared("routed network", lambda: routed_network(world))


def test_new_floating_ip_is_down_and_has_an_address_of_the_pool(world: ContractEnvironment) -> None:
    stamp = world.stamp("fip-api")

    made = new(world, stamp=stamp)

    assert made["status"] == "DOWN"
    assert made["floating_ip_address"].startswith("127.64.")
    assert made["port_id"] is made["fixed_ip_address"] is made["router_id"] is made["port_details"] is None
    assert made["description"] == f"for the suite [{stamp}]"
    assert (made["floating_network_id"], made["tags"]) == (world.external_id, [])


def test_floating_ip_leads_to_a_port_and_moves_to_another(world: ContractEnvironment) -> None:
    network_id, outside = shared_network(world)
    first, second = (world.port(network_id=network_id) for _ in range(2))
    made = new(world)

    associated = floating_ip.associate(world.cloud, made["id"], port_id=first["id"])
    moved = floating_ip.associate(world.cloud, made["id"], port_id=second["id"])

    assert (associated["port_id"], associated["router_id"]) == (first["id"], outside["id"])
    assert associated["fixed_ip_address"] == first["fixed_ips"][0]["ip_address"]
    assert associated["port_details"]["name"] == first["name"]
    assert (moved["port_id"], moved["fixed_ip_address"]) == (second["id"], second["fixed_ips"][0]["ip_address"])
    assert (
        world.when(lambda: show(world, made["id"]), status="ACTIVE")["floating_ip_address"]
        == made["floating_ip_address"]
    )


def test_floating_ip_is_taken_from_its_port(world: ContractEnvironment) -> None:
    network_id, _ = shared_network(world)
    taken = world.port(network_id=network_id)
    made = new(world, port_id=taken["id"])
    assert made["port_id"] == taken["id"]

    freed = floating_ip.dissociate(world.cloud, made["id"])

    assert freed["port_id"] is freed["fixed_ip_address"] is freed["router_id"] is None
    assert world.when(lambda: show(world, made["id"]), status="DOWN")["port_id"] is None


def test_floating_ip_is_taken_from_its_port_by_an_update_without_fields(world: ContractEnvironment) -> None:
    network_id, _ = shared_network(world)
    made = new(world, port_id=world.port(network_id=network_id)["id"])

    world.cloud.put("network", f"/floatingips/{made['id']}", json={"floatingip": {}})

    assert world.when(lambda: show(world, made["id"]), status="DOWN")["port_id"] is None


def test_floating_ip_leads_to_the_fixed_ip_that_is_named(world: ContractEnvironment) -> None:
    network_id, outside = shared_network(world)
    fixed_ips = [(outside["subnet_id"], "10.6.8.1"), (outside["subnet_id"], "10.6.8.2")]
    taken = world.port(network_id=network_id, fixed_ips=fixed_ips)

    made = new(world, port_id=taken["id"], fixed_ip="10.6.8.2")

    assert made["fixed_ip_address"] == "10.6.8.2"


def test_port_with_several_addresses_needs_one_named(world: ContractEnvironment) -> None:
    network_id, outside = shared_network(world)
    fixed_ips = [(outside["subnet_id"], "10.6.8.3"), (outside["subnet_id"], "10.6.8.4")]
    taken = world.port(network_id=network_id, fixed_ips=fixed_ips)

    refusal = world.refused(lambda: new(world, port_id=taken["id"]))

    assert isinstance(refusal.error, InvalidSpecError)


def test_floating_ip_of_a_deleted_port_is_free_again(world: ContractEnvironment) -> None:
    network_id, _ = shared_network(world)
    taken = world.port(network_id=network_id)
    made = new(world, port_id=taken["id"])

    port.delete(world.cloud, taken["id"])

    freed = show(world, made["id"])
    assert freed["port_id"] is freed["fixed_ip_address"] is None


def test_second_floating_ip_on_an_address_is_a_conflict(world: ContractEnvironment) -> None:
    network_id, _ = shared_network(world)
    taken = world.port(network_id=network_id)
    new(world, port_id=taken["id"])

    refusal = world.refused(lambda: new(world, port_id=taken["id"]))

    assert isinstance(refusal.error, ConflictError)


def test_port_that_no_router_reaches_is_refused(world: ContractEnvironment) -> None:
    parent = world.network()
    world.subnet(parent["id"])
    lonely = world.port(network_id=parent["id"])
    made = new(world)

    refusal = world.refused(lambda: floating_ip.associate(world.cloud, made["id"], port_id=lonely["id"]))

    assert isinstance(refusal.error, ConflictError)


def test_router_and_its_interface_stay_while_a_floating_ip_needs_them(world: ContractEnvironment) -> None:
    network_id, outside = routed_network(world)
    taken = world.port(network_id=network_id)
    made = new(world, port_id=taken["id"])

    interface = world.refused(lambda: router.remove_interface(world.cloud, outside["id"], outside["subnet_id"]))
    gateway = world.refused(lambda: router.update(world.cloud, outside["id"], {"external_gateway_info": {}}))
    deleted = world.refused(lambda: router.delete(world.cloud, outside["id"]))

    assert all(isinstance(each.error, ConflictError) for each in (interface, gateway, deleted))
    floating_ip.delete(world.cloud, made["id"])
    router.remove_interface(world.cloud, outside["id"], outside["subnet_id"])


def test_floating_ip_is_found_by_address_description_and_tags(world: ContractEnvironment) -> None:
    tag = world.name()
    made = tags.replace(world.cloud, "floatingips", new(world), [tag])

    def ids(**params: str) -> list[str]:
        found = world.cloud.list_all("network", "/floatingips", "floatingips", params=params)
        return [each["id"] for each in found]

    assert ids(floating_ip_address=made["floating_ip_address"]) == [made["id"]]
    assert ids(description=made["description"]) == ids(tags=tag) == [made["id"]]
    assert ids(description="for the suite") == []
    assert ids(port_id=UNKNOWN) == []
    assert ids(tags=tag, status="ACTIVE") == []


def test_released_floating_ip_is_not_found(world: ContractEnvironment) -> None:
    made = new(world)
    floating_ip.delete(world.cloud, made["id"])

    shown = world.refused(lambda: show(world, made["id"]))
    deleted = world.refused(lambda: world.cloud.delete("network", f"/floatingips/{made['id']}"))
    changed = world.refused(lambda: floating_ip.dissociate(world.cloud, made["id"]))

    assert all(isinstance(each.error, NotFoundError) for each in (shown, deleted, changed))
    floating_ip.delete(world.cloud, made["id"])


def test_member_may_not_choose_the_address(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: new(world, address="127.64.200.77"))

    assert isinstance(refusal.error, ForbiddenError)


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        pytest.param({"network_id": UNKNOWN}, NetworkNotFoundError, id="network"),
        pytest.param({"port_id": UNKNOWN}, NotFoundError, id="port"),
    ],
)
def test_floating_ip_on_what_is_not_there_is_refused(
    world: ContractEnvironment, wish: Body, error: type[Exception]
) -> None:
    refusal = world.refused(lambda: new(world, **wish))

    assert isinstance(refusal.error, error)


def test_network_that_is_not_external_has_no_floating_ips(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: new(world, network_id=world.network_id))

    assert isinstance(refusal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"colour": "red"}, id="unknown field"),
        pytest.param({"tags": ["a"]}, id="tags"),
        pytest.param({"port_id": "x"}, id="port"),
        pytest.param({"fixed_ip_address": "10.6.0.9"}, id="fixed IP without a port"),
        pytest.param({"floating_network_id": None}, id="no network"),
    ],
)
def test_malformed_floating_ip_is_refused(world: ContractEnvironment, fields: Body) -> None:
    body = {"floatingip": {"floating_network_id": world.external_id, **fields}}

    refusal = world.refused(lambda: world.cloud.post("network", "/floatingips", json=body))

    assert isinstance(refusal.error, InvalidSpecError)


def test_fixed_ip_without_a_port_is_refused_later_as_well(world: ContractEnvironment) -> None:
    path = f"/floatingips/{new(world)['id']}"
    body = {"floatingip": {"fixed_ip_address": "10.6.0.9"}}

    refusal = world.refused(lambda: world.cloud.put("network", path, json=body))

    assert isinstance(refusal.error, InvalidSpecError)


def test_floating_ip_of_another_project_is_not_seen(world: ContractEnvironment) -> None:
    made = new(world)

    refusal = world.refused(lambda: world.stranger.get("network", f"/floatingips/{made['id']}"))

    assert isinstance(refusal.error, NotFoundError)
    params = {"floating_ip_address": made["floating_ip_address"]}
    assert world.stranger.list_all("network", "/floatingips", "floatingips", params=params) == []
