"""Managers that die and answers that are lost: nothing is created twice, and the deletion leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from capo.engine.conditions import timestamp
from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers.openstackcluster.tests.environment import COUNTS_OF_FULL, FULL, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from environments.in_memory import killed_at_write, killed_before_create, killed_when

pytestmark = pytest.mark.slow

KUBERNETES_WRITES = 12
CLOUD_WRITES = 15
CREATES = 9


def whole_then_gone(world: ClusterEnvironment) -> None:
    """Assert that the cluster becomes ready with each resource once, and that its deletion leaves nothing."""
    world.settle(for_s=600)
    assert world.is_ready(), world.message("Ready")
    assert world.shown("BastionReady") == ("True", "Ready"), world.message("BastionReady")
    assert world.counts() == COUNTS_OF_FULL
    gone(world)


def gone(world: ClusterEnvironment) -> None:
    world.remove()
    world.settle(for_s=600)
    assert world.is_gone(), world.message("Ready")
    assert world.created() == {}


def test_the_numbers_below_cover_every_write(world: ClusterEnvironment) -> None:
    world.up(**FULL)

    assert len(world.kube.writes) <= KUBERNETES_WRITES
    assert len([r for r in world.requests() if not r.startswith("GET")]) <= CLOUD_WRITES


@pytest.mark.parametrize("number", range(1, KUBERNETES_WRITES + 1))
def test_a_manager_that_dies_before_a_write_to_kubernetes_is_taken_over_w_51(
    world: ClusterEnvironment, number: int
) -> None:
    world.place(**FULL)
    with killed_at_write(world, number):
        world.settle(for_s=60)

    world.start()

    whole_then_gone(world)


@pytest.mark.parametrize("number", range(1, CREATES + 1))
def test_a_manager_that_dies_between_two_creates_is_taken_over(world: ClusterEnvironment, number: int) -> None:
    world.place(**FULL)
    with killed_before_create(number):
        world.settle(for_s=60)

    world.start()

    whole_then_gone(world)


@pytest.mark.parametrize("number", [2, 4, 5, 6])
def test_a_cluster_that_is_deleted_after_a_manager_died_between_two_creates_leaves_nothing(
    world: ClusterEnvironment, number: int
) -> None:
    world.place(**FULL)
    with killed_before_create(number):
        world.settle(for_s=60)

    world.start()

    gone(world)


@pytest.mark.parametrize("number", range(1, 5))
def test_a_manager_that_dies_while_it_deletes_is_taken_over(world: ClusterEnvironment, number: int) -> None:
    world.up(**FULL)
    world.remove()
    with killed_at_write(world, number):
        world.settle(for_s=60)

    world.start()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


def test_a_manager_that_dies_after_it_connected_a_given_router_disconnects_it(world: ClusterEnvironment) -> None:
    external = next(n["id"] for n in world.inventory()["networks"].values() if n["router:external"])
    router = world.member.make(
        "/network/v2.0/routers", "router", name="theirs", external_gateway_info={"network_id": external}
    )
    world.place(**MANAGED, router={"filter": {"name": "theirs"}})
    with killed_when(world, lambda: any("interface" in port["device_owner"] for port in ports(world))):
        world.settle(for_s=60)
    assert len(ports(world)) == 1

    world.start()
    gone(world)

    assert world.inventory()["routers"].keys() == {router["id"]}


def ports(world: ClusterEnvironment) -> list[dict[str, Any]]:
    return list(world.created().get("ports", {}).values())


@pytest.mark.parametrize("number", range(2, CLOUD_WRITES + 1))
@pytest.mark.parametrize(
    "effect",
    [
        pytest.param({"cut": "before"}, id="call lost"),
        pytest.param({"cut": "after"}, id="answer lost"),
        pytest.param({"status": 500}, id="error"),
        pytest.param({"status": 409, "kind": "OverQuota", "message": "Quota exceeded"}, id="refused"),
    ],
)
def test_a_write_that_goes_wrong_once_is_made_good(
    world: ClusterEnvironment, number: int, effect: dict[str, Any]
) -> None:
    world.place(**FULL)
    world.cloud.counter.reset()
    world.add_fault(match={"write": number}, effect=effect)

    whole_then_gone(world)


@pytest.mark.parametrize("number", [4, 6, 8, 12])
def test_a_manager_that_dies_after_an_answer_was_lost_makes_nothing_twice(
    world: ClusterEnvironment, number: int
) -> None:
    world.place(**FULL)
    world.cloud.counter.reset()
    world.add_fault(match={"write": number}, effect={"cut": "after"})
    with killed_at_write(world, number + 1):
        world.settle(for_s=60)

    world.start()

    whole_then_gone(world)


@pytest.mark.parametrize("number", range(1, 16))
def test_a_read_that_goes_wrong_once_holds_up_for_a_moment_only(world: ClusterEnvironment, number: int) -> None:
    world.place(**FULL)
    world.cloud.counter.reset()
    world.add_fault(match={"method": "GET", "nth": number}, effect={"status": 503})

    whole_then_gone(world)


@pytest.mark.parametrize("number", range(1, 14))
def test_a_delete_that_goes_wrong_once_is_made_good(world: ClusterEnvironment, number: int) -> None:
    world.up(**FULL)
    world.cloud.counter.reset()
    world.add_fault(match={"writes_only": True, "nth": number}, effect={"status": 500})

    gone(world)


@pytest.mark.parametrize("is_there", [True, False], ids=["created", "never created"])
def test_an_intent_of_the_endpoints_floating_ip_does_not_outlive_the_endpoint(
    world: ClusterEnvironment, is_there: bool
) -> None:
    world.up(**MANAGED)
    address_id = world.record("fip-api")
    resources = world.status()["resources"]
    kept = [record for record in resources["records"] if record["role"] != "fip-api"]
    intent = {"kind": "floating_ip", "role": "fip-api", "since": timestamp(world.clock.now())}
    status = {"resources": {"records": kept, "pending": [intent]}}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": status})  # the endpoint was written, the record was not
    if not is_there:
        world.member.ask("DELETE", f"/network/v2.0/floatingips/{address_id}")

    world.start()
    world.settle(for_s=300)

    assert world.status()["resources"]["pending"] == []
    assert world.record("fip-api") == (address_id if is_there else None)
    world.remove()
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}
