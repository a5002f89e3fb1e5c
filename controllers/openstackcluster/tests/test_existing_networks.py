"""Networks, subnets and routers of the user: changes are noticed with the next resync."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.test_regressions import place

SERVER: dict[str, Any] = {"enableFloatingIP": False, "fixedIP": "10.9.0.9"}
BALANCED: dict[str, Any] = {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}


def subnet(world: ClusterEnvironment, network_id: str, cidr: str) -> dict[str, Any]:
    values = {"network_id": network_id, "cidr": cidr, "ip_version": 4}
    return dict(world.member.make(f"{given.NETWORK_PATH}/subnets", "subnet", **values))


def cidrs(world: ClusterEnvironment) -> list[str]:
    return [each["cidr"] for each in world.status()["network"]["subnets"]]


def give_away(world: ClusterEnvironment, network: dict[str, Any]) -> None:
    """Transfer a network to another project, which shares it."""

    def change() -> None:
        world.cloud.table("network", "networks")[network["id"]].update(project_id="others", shared=True)
        for body in world.cloud.table("network", "subnets").values():
            if body["network_id"] == network["id"]:
                body.update(project_id="others")

    world.simulator.call(change)


@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "another project's"])
def test_a_new_subnet_of_an_existing_network_is_seen_and_comes_last(world: ClusterEnvironment, is_shared: bool) -> None:
    network = world.network()
    world.up(network={"id": network["id"]}, apiServer=SERVER, **GROUPS)
    for number in range(3):
        subnet(world, network["id"], f"10.1{number}.0.0/24")
    if is_shared:
        give_away(world, network)

    given.after_resyncs(world)

    assert world.is_ready(), world.message("Ready")
    assert cidrs(world)[0] == "10.9.0.0/24"
    assert set(cidrs(world)) == {"10.9.0.0/24", "10.10.0.0/24", "10.11.0.0/24", "10.12.0.0/24"}
    assert "10.10.0.0/24" in {prefix for *_, prefix in world.rules("worker")}


def test_a_new_subnet_is_not_used_where_the_spec_names_the_subnets(world: ClusterEnvironment) -> None:
    network = world.network()
    (mine,) = (s for s in world.inventory()["subnets"].values() if s["network_id"] == network["id"])
    world.up(network={"id": network["id"]}, subnets=[{"id": mine["id"]}], apiServer=SERVER)
    subnet(world, network["id"], "10.10.0.0/24")

    given.after_resyncs(world)

    assert world.is_ready()
    assert cidrs(world) == ["10.9.0.0/24"]


@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "another project's"])
def test_an_existing_network_that_was_deleted_is_reported(world: ClusterEnvironment, is_shared: bool) -> None:
    network = world.network()
    world.up(network={"id": network["id"]}, apiServer=SERVER)
    shown = world.status()["network"]
    if is_shared:
        give_away(world, network)
        given.after_resyncs(world)
    world.admin().ask("DELETE", f"{given.NETWORK_PATH}/networks/{network['id']}")

    given.after_resyncs(world)

    assert not world.is_ready()
    assert world.shown("NetworkReady") == ("False", "OpenStackError")
    assert network["id"] in world.message("NetworkReady")
    assert world.status()["network"] == shown
    assert world.is_provisioned()


def test_a_named_subnet_that_was_deleted_is_reported(world: ClusterEnvironment) -> None:
    network = world.network()
    more = subnet(world, network["id"], "10.10.0.0/24")
    (first, second) = sorted(
        (s for s in world.inventory()["subnets"].values() if s["network_id"] == network["id"]), key=lambda s: s["cidr"]
    )
    world.up(network={"id": network["id"]}, subnets=[{"id": second["id"]}, {"id": first["id"]}], apiServer=SERVER)
    world.member.ask("DELETE", f"{given.NETWORK_PATH}/subnets/{more['id']}")

    given.after_resyncs(world)

    assert world.shown("NetworkReady")[0] == "False"


def routed(world: ClusterEnvironment, **wish: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Create a cluster in a network of the user behind a router of the user."""
    network, mine = world.network(), given.router(world)
    (subnet_id,) = (i for i, s in world.inventory()["subnets"].items() if s["network_id"] == network["id"])
    given.connect(world, mine["id"], subnet_id)
    named = {"filter": {"name": "mine"}} if wish.pop("by_filter", False) else {"id": mine["id"]}
    world.up(network={"id": network["id"]}, router=named, apiServer=BALANCED)
    return network, mine


def test_a_new_address_of_the_gateway_is_allowed_to_connect(world: ClusterEnvironment) -> None:
    _, mine = routed(world)
    assert world.is_ready(), world.message("Ready")

    def change() -> None:
        body = world.cloud.table("network", "routers")[mine["id"]]
        (address,) = body["external_gateway_info"]["external_fixed_ips"]
        new = [{**address, "ip_address": "127.64.9.99"}]
        body["external_gateway_info"] = {**body["external_gateway_info"], "external_fixed_ips": new}

    world.simulator.call(change)
    given.after_resyncs(world)

    assert world.is_ready()
    assert world.status()["router"]["ips"] == ["127.64.9.99"]
    assert "127.64.9.99/32" in world.one("listeners")["allowed_cidrs"]


def test_a_router_that_a_filter_found_is_known_by_its_id(world: ClusterEnvironment) -> None:
    _, mine = routed(world, by_filter=True)
    given.rename(world, "router", mine["id"], "renamed")

    given.after_resyncs(world, 2)
    world.change(controlPlaneAvailabilityZones=["az1"])
    world.settle(for_s=60)

    assert world.is_ready(), world.message("Ready")
    assert (world.status()["router"]["id"], world.status()["router"]["name"]) == (mine["id"], "renamed")


def test_what_exists_is_looked_at_once_per_resync_and_costs_a_list_of_each_kind(world: ClusterEnvironment) -> None:
    routed(world)
    given.after_resyncs(world, 2)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    for _ in range(5):
        world.resync()
        world.settle(for_s=30)
    given.after_resyncs(world, 6)

    asked = world.requests()
    assert world.kube.writes == []
    for kind, most in (("networks", 7), ("subnets", 0), ("routers", 7)):
        assert asked.count(f"GET /v2.0/{kind}") <= most, asked


def test_two_clusters_share_the_lists(world: ClusterEnvironment) -> None:
    networks = [world.network("10.9.0.0/24"), world.network("10.19.0.0/24")]
    for name, network in zip(("one", "two"), networks, strict=True):
        place(world, namespace=name, name=name, cluster_name=name, network={"id": network["id"]}, apiServer=SERVER)
    world.settle(for_s=60)
    given.after_resyncs(world, 2)
    world.cloud.counter.reset()

    given.after_resyncs(world)

    assert world.requests() == ["GET /v2.0/networks"]


def test_an_outage_of_neutron_is_over_when_it_is_over(world: ClusterEnvironment) -> None:
    network = world.network()
    world.up(network={"id": network["id"]}, apiServer=SERVER)
    world.add_fault(match={"service": "network"}, effect={"status": 503})

    given.after_resyncs(world)
    shown = world.status()["network"]
    world.clear_faults()
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    assert world.status()["network"] == shown


def test_a_managed_network_costs_nothing_more(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer=SERVER)
    given.after_resyncs(world, 2)
    world.cloud.counter.reset()

    given.after_resyncs(world, 6)

    assert len(world.requests()) <= 6 * 4, world.requests()
