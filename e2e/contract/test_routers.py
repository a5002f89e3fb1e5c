"""Routers: gateways, interfaces, and deletions that these block."""

from __future__ import annotations

import pytest

from api.v1beta2.network import RouterFilter, RouterParam
from capo.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    NetworkNotFoundError,
    NotFoundError,
    RouterNotFoundError,
)
from capo.json_types import Body
from capo.openstack import network, port, router, subnet
from capo.openstack.router import WantedRouter
from e2e.contract.environment import UNKNOWN, ContractEnvironment


def interfaces(world: ContractEnvironment, router_id: str) -> list[Body]:
    return world.cloud.list_all("network", "/ports", "ports", params={"device_id": router_id})


def external_subnet(world: ContractEnvironment) -> str:
    return str(world.ground.external["subnets"][0])


def new_router(world: ContractEnvironment, **wishes: object) -> Body:
    values = {"stamp": world.stamp(), "name": world.name(), "description": "a router", **wishes}
    return router.create(world.cloud, WantedRouter(**values))  # type: ignore[arg-type]


def test_new_router_has_a_gateway_with_an_address(world: ContractEnvironment) -> None:
    stamp = world.stamp("router")

    made = new_router(world, stamp=stamp, external_network_id=world.external_id)

    gateway = made["external_gateway_info"]
    assert gateway["network_id"] == world.external_id
    assert gateway["enable_snat"] is True
    assert [each["subnet_id"] for each in gateway["external_fixed_ips"]] == [external_subnet(world)]
    assert made["status"] == "ACTIVE"
    assert made["description"] == f"a router [{stamp}]"
    assert router.addresses(made)[0].startswith("127.64.")


def test_router_without_a_gateway_gets_one_by_an_update(world: ContractEnvironment) -> None:
    made = new_router(world)
    assert made["external_gateway_info"] is None

    wanted = WantedRouter(world.stamp(), made["name"], external_network_id=world.external_id)
    changed = router.update(world.cloud, made["id"], router.difference(wanted, made))

    assert changed["external_gateway_info"]["network_id"] == world.external_id
    assert router.difference(wanted, changed) == {}


def test_gateway_address_of_a_router_may_not_be_chosen_by_a_member(world: ContractEnvironment) -> None:
    made = new_router(world)
    wanted = WantedRouter(
        world.stamp(),
        made["name"],
        external_network_id=world.external_id,
        external_fixed_ips=[(external_subnet(world), "127.64.200.200")],
    )

    refusal = world.refused(lambda: router.update(world.cloud, made["id"], router.difference(wanted, made)))

    assert isinstance(refusal.error, ForbiddenError)


def test_interface_is_a_port_with_the_gateways_address(world: ContractEnvironment) -> None:
    parent = world.network()
    inside = world.subnet(parent["id"])
    made = new_router(world, external_network_id=world.external_id)

    added = router.add_interface(world.cloud, made["id"], inside["id"])

    assert (added["id"], added["subnet_id"], added["subnet_ids"]) == (made["id"], inside["id"], [inside["id"]])
    found = interfaces(world, made["id"])
    assert [each["id"] for each in found] == [added["port_id"]]
    assert found[0]["device_owner"] == "network:router_interface"
    assert found[0]["fixed_ips"] == [{"subnet_id": inside["id"], "ip_address": "10.6.0.1"}]


def test_second_interface_on_a_subnet_is_refused_and_means_that_it_is_there(world: ContractEnvironment) -> None:
    inside = world.subnet(world.network()["id"])
    made = new_router(world)
    router.add_interface(world.cloud, made["id"], inside["id"])
    path = f"/routers/{made['id']}/add_router_interface"

    refusal = world.refused(lambda: world.cloud.put("network", path, json={"subnet_id": inside["id"]}))

    assert isinstance(refusal.error, InvalidSpecError)
    assert router.add_interface(world.cloud, made["id"], inside["id"]) == {}


def test_interfaces_with_the_same_addresses_are_refused(world: ContractEnvironment) -> None:
    first, second = (world.subnet(world.network()["id"]) for _ in range(2))
    made = new_router(world)
    router.add_interface(world.cloud, made["id"], first["id"])

    refusal = world.refused(lambda: router.add_interface(world.cloud, made["id"], second["id"]))

    assert isinstance(refusal.error, InvalidSpecError)


def test_router_and_subnet_with_an_interface_refuse_to_go_until_it_is_removed(world: ContractEnvironment) -> None:
    parent = world.network()
    inside = world.subnet(parent["id"])
    made = new_router(world)
    added = router.add_interface(world.cloud, made["id"], inside["id"])

    refusals = [
        world.refused(lambda: router.delete(world.cloud, made["id"])),
        world.refused(lambda: subnet.delete(world.cloud, inside["id"])),
        world.refused(lambda: network.delete(world.cloud, parent["id"])),
        world.refused(lambda: port.delete(world.cloud, added["port_id"])),
    ]

    assert all(isinstance(each.error, ConflictError) for each in refusals)
    router.remove_interface(world.cloud, made["id"], inside["id"])
    assert interfaces(world, made["id"]) == []
    router.delete(world.cloud, made["id"])
    subnet.delete(world.cloud, inside["id"])
    network.delete(world.cloud, parent["id"])


def test_interface_that_is_not_there_is_not_found(world: ContractEnvironment) -> None:
    inside = world.subnet(world.network()["id"])
    made = new_router(world)
    path = f"/routers/{made['id']}/remove_router_interface"

    refusal = world.refused(lambda: world.cloud.put("network", path, json={"subnet_id": inside["id"]}))

    assert isinstance(refusal.error, NotFoundError)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"subnet_id": UNKNOWN}, id="unknown subnet"),
        pytest.param({"port_id": UNKNOWN}, id="unknown port"),
        pytest.param({"subnet_id": "x"}, id="no id"),
        pytest.param({"subnet_id": UNKNOWN, "port_id": UNKNOWN}, id="both"),
    ],
)
def test_wrong_interface_is_refused(world: ContractEnvironment, body: Body) -> None:
    made = new_router(world)
    path = f"/routers/{made['id']}/add_router_interface"

    refusal = world.refused(lambda: world.cloud.put("network", path, json=body))

    assert refusal.status in (400, 404)


def test_interface_of_an_unknown_router_is_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: router.add_interface(world.cloud, UNKNOWN, world.subnet_id))

    assert isinstance(refusal.error, RouterNotFoundError)


def test_router_on_an_unknown_or_internal_network_is_refused(world: ContractEnvironment) -> None:
    unknown = world.refused(lambda: new_router(world, external_network_id=UNKNOWN))
    internal = world.refused(lambda: new_router(world, external_network_id=world.network_id))

    assert isinstance(unknown.error, NetworkNotFoundError)
    assert isinstance(internal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "gateway",
    [
        pytest.param({"enable_snat": True}, id="no network"),
        pytest.param({"network_id": UNKNOWN, "colour": "red"}, id="unknown field"),
    ],
)
def test_malformed_gateway_is_refused(world: ContractEnvironment, gateway: Body) -> None:
    made = new_router(world)

    refusal = world.refused(lambda: router.update(world.cloud, made["id"], {"external_gateway_info": gateway}))

    assert refusal.status == 400


def test_gateway_of_a_router_can_be_taken_away(world: ContractEnvironment) -> None:
    made = new_router(world, external_network_id=world.external_id)

    changed = router.update(world.cloud, made["id"], {"external_gateway_info": {}})

    assert changed["external_gateway_info"] is None


def test_router_is_found_by_name_and_unknown_ones_are_not(world: ContractEnvironment) -> None:
    made = new_router(world)

    assert router.resolve(world.cloud, RouterParam(filter=RouterFilter(name=made["name"])))["id"] == made["id"]
    refusal = world.refused(lambda: router.resolve(world.cloud, RouterParam(id=UNKNOWN)))
    assert isinstance(refusal.error, RouterNotFoundError)
