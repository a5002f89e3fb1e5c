"""Deletion of clusters while Octavia does not answer: only those that may have a load balancer wait for it."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.simulator.keystone import service as keystone
from controllers.openstackcluster.tests.environment import BALANCER, GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackcluster.tests.test_takeover import made_by_the_go_provider

REFUSALS = [
    pytest.param({"status": 403, "message": "Policy does not allow this request to be performed."}, id="403"),
    pytest.param({"status": 401, "message": "The request you have made requires authentication."}, id="401"),
    pytest.param({"status": 503}, id="503"),
]
WITHOUT_BALANCER: dict[str, Any] = {**MANAGED, **GROUPS}


def octavia_answers(world: ClusterEnvironment, effect: dict[str, Any]) -> None:
    world.add_fault(match={"service": "load-balancer"}, effect=effect)


def octavia_requests(world: ClusterEnvironment) -> list[str]:
    return [request for request in world.requests() if "/lbaas/" in request]


def without_octavia(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = keystone.catalog
    monkeypatch.setattr(
        keystone, "catalog", lambda *all_: [each for each in whole(*all_) if each["type"] != "load-balancer"]
    )


def is_deleted(world: ClusterEnvironment) -> bool:
    world.remove()
    world.settle(for_s=900)
    return world.is_gone()


def test_a_cloud_without_octavia_does_not_hold_up_a_deletion(
    world: ClusterEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_octavia(monkeypatch)
    world.up(**MANAGED, **GROUPS)
    assert world.is_ready()
    world.start()

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize("effect", REFUSALS)
def test_a_cluster_without_load_balancer_is_deleted_after_a_restart(
    world: ClusterEnvironment, effect: dict[str, Any]
) -> None:
    octavia_answers(world, effect)
    world.up(**WITHOUT_BALANCER)
    world.start()

    assert is_deleted(world)
    assert world.created() == {}
    assert octavia_requests(world) == []


@pytest.mark.parametrize("effect", REFUSALS)
def test_a_cluster_that_made_nothing_is_deleted_after_a_restart(
    world: ClusterEnvironment, effect: dict[str, Any]
) -> None:
    octavia_answers(world, effect)
    network = world.network()
    world.up(network={"id": network["id"]}, apiServer={"enableFloatingIP": False, "fixedIP": "10.9.0.9"})
    world.start()

    assert is_deleted(world)
    # Workloads may have left load balancers on a network that stays: they are searched for, and not waited for.
    assert len(octavia_requests(world)) <= 2


@pytest.mark.parametrize("effect", REFUSALS)
def test_a_cluster_whose_network_never_came_is_deleted_after_a_restart(
    world: ClusterEnvironment, effect: dict[str, Any]
) -> None:
    octavia_answers(world, effect)
    world.up(network={"filter": {"name": "nowhere"}})
    world.start()

    assert is_deleted(world)


@pytest.mark.parametrize("effect", REFUSALS)
def test_a_recorded_load_balancer_waits_for_octavia(world: ClusterEnvironment, effect: dict[str, Any]) -> None:
    world.up(**MANAGED, **BALANCER)
    octavia_answers(world, effect)
    world.start()

    assert not is_deleted(world)

    world.clear_faults()
    world.settle(for_s=900)
    assert world.is_gone()
    assert world.created() == {}


def test_a_load_balancer_that_only_the_spec_names_is_looked_for(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    octavia_answers(world, {"status": 403})
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"resources": None, "apiServerManagedLoadBalancer": None}})
    world.start()

    assert not is_deleted(world)
    assert len(world.created()["loadbalancers"]) == 1


def test_a_load_balancer_that_only_the_status_names_is_looked_for(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    octavia_answers(world, {"status": 403})
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": {"apiServer": None}, "status": {"resources": None}})
    world.start()

    assert not is_deleted(world)


def test_a_create_that_was_not_answered_is_looked_for(world: ClusterEnvironment) -> None:
    pending = [{"kind": "load_balancer", "role": "lb-api", "since": "2026-01-01T00:00:00Z"}]
    world.up(**WITHOUT_BALANCER)
    octavia_answers(world, {"status": 403})
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"resources": {"pending": pending}}})
    world.start()

    assert not is_deleted(world)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["one process", "restarted"])
def test_a_cluster_that_came_without_its_history_is_only_deleted_with_proof(
    world: ClusterEnvironment, *, is_restarted: bool
) -> None:
    world.up(**MANAGED, **BALANCER)
    octavia_answers(world, {"status": 403})
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": {"apiServer": None}, "status": None})
    world.start()

    assert not is_deleted(world)
    if is_restarted:
        world.start()
        world.settle(for_s=900)
    assert not world.is_gone()
    assert len(world.created()["loadbalancers"]) == 1

    world.clear_faults()
    world.settle(for_s=900)
    assert world.is_gone()
    assert world.created() == {}


def test_a_cluster_that_is_being_taken_over_is_only_deleted_with_proof(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world, WITHOUT_BALANCER)
    octavia_answers(world, {"status": 403})

    assert not is_deleted(world)

    world.clear_faults()
    world.settle(for_s=900)
    assert world.is_gone()


def test_a_cluster_that_was_taken_over_without_load_balancer_is_deleted(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world, WITHOUT_BALANCER)
    octavia_answers(world, {"status": 403})
    world.settle(for_s=300)
    world.start()

    assert is_deleted(world)
    assert world.created() == {}


def test_a_recorded_load_balancer_waits_for_octavia_to_come_back_to_the_catalogue(
    world: ClusterEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.up(**MANAGED, **BALANCER)
    with monkeypatch.context() as patched:
        without_octavia(patched)
        world.start()
        assert not is_deleted(world)

    world.start()
    world.settle(for_s=900)
    assert world.is_gone()
    assert world.created() == {}
