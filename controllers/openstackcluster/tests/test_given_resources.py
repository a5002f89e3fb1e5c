"""Floating IPs and routers of the user: found once they exist, recognised after changes, and kept intact."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.openstackcluster.dns import Answer
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import BALANCER, BASTION, FULL, GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.test_regressions import place

FLOATING_IPS = "GET /v2.0/floatingips"


def attached(world: ClusterEnvironment, floating_ip: dict[str, Any]) -> str | None:
    found: str | None = world.inventory()["floatingips"][floating_ip["id"]]["port_id"]
    return found


# -- floating IPs created a moment ago ---------------------------------------------------------------------------------


def test_a_bastion_gets_a_floating_ip_that_was_created_a_moment_before_it_was_named(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION, for_s=100)
    mine = given.floating_ip(world)

    world.change(bastion={"floatingIP": mine["floating_ip_address"]})
    world.settle(for_s=30)

    assert world.shown("BastionReady") == ("True", "Ready"), world.message("BastionReady")
    assert world.status()["bastion"]["floatingIP"] == mine["floating_ip_address"]


@pytest.mark.parametrize("how", ["named", "endpoint"])
def test_a_cluster_takes_a_floating_ip_that_is_newer_than_the_list_of_them(world: ClusterEnvironment, how: str) -> None:
    world.before = world.inventory()
    place(world, namespace="a", name="one", cluster_name="one", **MANAGED)
    world.settle(for_s=60)
    mine = given.floating_ip(world)["floating_ip_address"]
    world.events.seen.clear()
    spec: dict[str, Any] = {"apiServer": {"floatingIP": mine}}
    if how == "endpoint":
        spec = {**BALANCER, "controlPlaneEndpoint": {"host": mine, "port": 6443}}

    place(world, namespace="b", name="two", cluster_name="two", **MANAGED, **spec)
    world.settle(for_s=60)

    assert not [event for event in world.events.seen if event[0] == "Warning"]
    assert [body["floating_ip_address"] for body in world.created()["floatingips"].values()].count(mine) == 1


def test_a_floating_ip_that_a_dns_name_leads_to_is_taken_if_it_was_created_a_moment_ago(
    world: ClusterEnvironment,
) -> None:
    world.before = world.inventory()
    place(world, namespace="a", name="one", cluster_name="one", **MANAGED)
    world.settle(for_s=60)
    mine = given.floating_ip(world)
    address = mine["floating_ip_address"]
    world.dns = Answer((address,))

    endpoint = {"host": "api.example.org", "port": 6443}
    place(world, namespace="b", name="two", cluster_name="two", **MANAGED, **BALANCER, controlPlaneEndpoint=endpoint)
    world.settle(for_s=60)

    assert attached(world, mine)
    assert len(world.created()["floatingips"]) == 2


def test_a_floating_ip_that_is_known_is_not_looked_up_again(world: ClusterEnvironment) -> None:
    mine = given.floating_ip(world)
    world.up(**MANAGED, apiServer={"managedLoadBalancer": {}, "floatingIP": mine["floating_ip_address"]})
    world.cloud.counter.reset()

    given.after_resyncs(world, 3)

    assert world.is_ready()
    assert world.requests().count(FLOATING_IPS) <= 3


# -- floating IPs of the user are dissociated first --------------------------------------------------------------------


@pytest.mark.parametrize("is_restarted", [False, True], ids=["at once", "after a restart"])
@pytest.mark.parametrize("may_detach", [True, False], ids=["allowed", "refused"])
def test_a_floating_ip_of_the_user_is_detached_and_the_user_is_asked_for_nothing(
    world: ClusterEnvironment, may_detach: bool, is_restarted: bool
) -> None:
    world.cloud.timings.lb_delete_s = 30.0
    mine = given.floating_ip(world)
    world.up(**MANAGED, apiServer={"managedLoadBalancer": {}, "floatingIP": mine["floating_ip_address"]})
    assert attached(world, mine)
    if not may_detach:
        match = {"method": "PUT", "path": "/v2.0/floatingips/*"}
        world.add_fault(match=match, effect={"status": 403, "message": "Policy doesn't allow"})
    if is_restarted:
        world.start()
    world.events.seen.clear()

    world.remove()
    world.settle(for_s=10)
    while_it_goes = [world.message(kind) for kind in ("RouterReady", "NetworkReady", "Ready")]
    is_free = attached(world, mine) is None
    world.settle(for_s=300)

    assert is_free is may_detach
    assert not [text for text in while_it_goes if "DeletionBlocked" in text]
    assert "DeletionBlocked" not in world.events.reasons()
    assert world.is_gone()
    assert world.created() == {}
    assert mine["id"] in world.inventory()["floatingips"]
    assert attached(world, mine) is None


def test_a_floating_ip_that_somebody_put_at_the_load_balancer_is_waited_for_and_not_written(
    world: ClusterEnvironment,
) -> None:
    world.cloud.timings.lb_delete_s = 30.0
    world.up(**MANAGED, apiServer={"managedLoadBalancer": {}, "enableFloatingIP": False})
    theirs = given.floating_ip(world, port_id=world.one("loadbalancers")["vip_port_id"])
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=10)
    while_it_goes = world.message("RouterReady")
    world.settle(for_s=300)

    assert while_it_goes.startswith("waiting for load balancer ")
    assert world.is_gone()
    assert theirs["id"] in world.inventory()["floatingips"]
    assert not [request for request in world.requests() if request.startswith("PUT /v2.0/floatingips")]


def test_a_floating_ip_that_leads_nowhere_is_left_alone_when_a_load_balancer_has_no_port(
    world: ClusterEnvironment,
) -> None:
    given.floating_ip(world)
    world.up(**MANAGED, **BALANCER)
    world.set_state("loadbalancers", world.one("loadbalancers")["id"], vip_port_id=None)
    world.start()
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=60)

    assert not [request for request in world.requests() if request.startswith("PUT /v2.0/floatingips")]


def test_a_floating_ip_of_a_server_of_others_keeps_it_and_is_named(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    values = {"network_id": world.one("networks")["id"], "name": "theirs"}
    port = world.member.make(f"{given.NETWORK_PATH}/ports", "port", **values)
    theirs = given.floating_ip(world, port_id=port["id"])

    world.remove()
    world.settle(for_s=600)

    assert not world.is_gone()
    assert theirs["floating_ip_address"] in world.message("RouterReady")
    assert "or dissociate it" in world.message("RouterReady")
    assert attached(world, theirs) == port["id"]


# -- given routers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_noticed", [False, True], ids=["at once", "after a resync"])
def test_a_given_router_that_was_connected_anew_does_not_block_the_deletion(
    world: ClusterEnvironment, is_noticed: bool
) -> None:
    mine = given.router(world)
    world.up(**MANAGED, router={"id": mine["id"]})
    subnet_id = world.one("subnets")["id"]
    given.disconnect(world, mine["id"], subnet_id)
    given.connect(world, mine["id"], subnet_id)
    if is_noticed:
        given.after_resyncs(world, 3)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}
    assert mine["id"] in world.inventory()["routers"]


@pytest.mark.parametrize("is_deleted", [False, True], ids=["goes on", "deletion"])
@pytest.mark.parametrize("has_restarted", [False, True], ids=["the same process", "the next process"])
def test_a_router_that_a_filter_found_and_that_was_renamed_blocks_nothing(
    world: ClusterEnvironment, has_restarted: bool, is_deleted: bool
) -> None:
    mine = given.router(world)
    world.up(**MANAGED, router={"filter": {"name": "mine"}})
    subnet_id = world.one("subnets")["id"]
    given.rename(world, "router", mine["id"], "renamed")
    if has_restarted:
        world.start()
    if not is_deleted:
        given.after_resyncs(world, 3)
        assert world.is_ready(), world.message("Ready")
        assert world.status()["router"] == {**world.status()["router"], "id": mine["id"], "name": "renamed"}
        given.disconnect(world, mine["id"], subnet_id)
        given.connect(world, mine["id"], subnet_id)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}
    assert mine["id"] in world.inventory()["routers"]


def test_another_router_of_the_user_is_not_disconnected_and_is_named(world: ClusterEnvironment) -> None:
    mine = given.router(world)
    world.up(**MANAGED, router={"id": mine["id"]})
    other = given.router(world, "vpn")
    values = {"network_id": world.one("networks")["id"]}
    port = world.member.make(f"{given.NETWORK_PATH}/ports", "port", **values)
    path = f"{given.NETWORK_PATH}/routers/{other['id']}/add_router_interface"
    world.member.ask("PUT", path, {"port_id": port["id"]})

    world.remove()
    world.settle(for_s=600)

    assert port["id"] in world.inventory()["ports"]
    assert other["id"] in world.message("NetworkReady")


def test_a_deletion_with_a_given_router_takes_few_requests(world: ClusterEnvironment) -> None:
    mine = given.router(world)
    world.up(**FULL, router={"id": mine["id"]})
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert len(world.requests()) <= 31, world.requests()
