"""Resources of the user: floating IPs, routers, networks."""

from __future__ import annotations

from typing import Any

from controllers.openstackcluster.tests.environment import ClusterEnvironment

NETWORK_PATH = "/network/v2.0"


def floating_ip(world: ClusterEnvironment, **values: Any) -> dict[str, Any]:
    values["floating_network_id"] = world.external()["id"]
    return dict(world.member.make(f"{NETWORK_PATH}/floatingips", "floatingip", **values))


def router(world: ClusterEnvironment, name: str = "mine") -> dict[str, Any]:
    """Create a router with a gateway."""
    gateway = {"network_id": world.external()["id"]}
    return dict(world.member.make(f"{NETWORK_PATH}/routers", "router", name=name, external_gateway_info=gateway))


def rename(world: ClusterEnvironment, kind: str, id_: str, name: str) -> None:
    world.member.ask("PUT", f"{NETWORK_PATH}/{kind}s/{id_}", {kind: {"name": name}})


def connect(world: ClusterEnvironment, router_id: str, subnet_id: str) -> None:
    world.member.ask("PUT", f"{NETWORK_PATH}/routers/{router_id}/add_router_interface", {"subnet_id": subnet_id})


def disconnect(world: ClusterEnvironment, router_id: str, subnet_id: str) -> None:
    world.member.ask("PUT", f"{NETWORK_PATH}/routers/{router_id}/remove_router_interface", {"subnet_id": subnet_id})


def after_resyncs(world: ClusterEnvironment, count: int = 1) -> None:
    """Advance the clock by whole resync periods, with a resync in each."""
    for _ in range(count):
        world.settle(for_s=world.settings.sync_period_s)
        world.resync()
        world.settle(for_s=30)
