"""What is created in place of a network, a subnet or a router that was deleted externally is connected again."""

from __future__ import annotations

import pytest

from capo.json_types import Json
from controllers.openstackcluster.tests.environment import MANAGED, ClusterEnvironment

NETWORK = "/network/v2.0"
INTERFACE = "network:router_interface"


def interfaces(world: ClusterEnvironment) -> list[Json]:
    return [port for port in world.inventory()["ports"].values() if port["device_owner"] == INTERFACE]


@pytest.mark.parametrize("kind", ["networks", "subnets", "routers"])
def test_what_replaces_a_deleted_part_of_the_network_is_connected(world: ClusterEnvironment, kind: str) -> None:
    world.up(**MANAGED)
    router, lost = world.one("routers"), world.one(kind)
    subnet = {"subnet_id": world.one("subnets")["id"]}
    world.member.ask("PUT", f"{NETWORK}/routers/{router['id']}/remove_router_interface", subnet)
    world.member.ask("DELETE", f"{NETWORK}/{kind}/{lost['id']}")

    def is_over() -> bool:
        is_new = world.created().get(kind, {}).keys() - {lost["id"]}
        assert not (is_new and world.is_ready() and not interfaces(world))
        return bool(is_new) and world.is_ready()

    (poller,) = world.clouds.pollers
    poller.look_later(kind.removesuffix("s"), world.clock.now())
    world.settle(for_s=1)
    world.resync()
    world.settle(for_s=120, until=is_over)

    assert is_over(), world.message("Ready")
    (port,) = interfaces(world)
    assert port["device_id"] == world.one("routers")["id"]
    assert port["fixed_ips"][0]["subnet_id"] == world.one("subnets")["id"]
