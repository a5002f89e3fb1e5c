"""A replacement that deletes first gets its quota again: no other cluster takes what its deletion frees."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from capo.openstack import quota_places
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BALANCER_PATH,
    BASTION,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from environments.in_memory import killed_when

OTHER = "other"
BALANCED = {**MANAGED, **BALANCER}
WITH_BASTION = {**MANAGED, **GROUPS, **BASTION}
LARGER_DISK = {"bastion": {"spec": {"sshKeyName": "lab", "configDrive": True}}}


def allow(world: ClusterEnvironment, service: str, resource: str, limit: int) -> None:
    project_id = world.member.project_id
    world.simulator.call(lambda: world.cloud.set_quota(service, project_id, resource, limit))


def reason_of_other(world: ClusterEnvironment) -> str:
    return str(world.condition(OPENSTACK_CLUSTER, OTHER, "LoadBalancerReady").get("reason", ""))


def rebuild(world: ClusterEnvironment, load_balancer: dict[str, Any]) -> None:
    """Put a load balancer into ERROR and ask for its replacement; the other cluster waits for the quota by then."""
    world.set_state("loadbalancers", load_balancer["id"], provisioning_status="ERROR")
    world.settle(for_s=1300)  # the next list shows it
    annotations = {names.REBUILD_LOAD_BALANCER_ANNOTATION: load_balancer["id"]}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": annotations}})
    world.wake_all()


def load_balancers(world: ClusterEnvironment) -> list[tuple[str, str]]:
    found = world.inventory().get("loadbalancers", {}).values()
    return [(each["name"].split("-")[4], each["vip_address"]) for each in found]


@pytest.fixture
def full(world: ClusterEnvironment, request: pytest.FixtureRequest) -> ClusterEnvironment:
    """Return an environment with a load balancer, and a cluster that waits for the quota of them."""
    world.up(**BALANCED)
    allow(world, "load-balancer", "load_balancer", 1)
    world.place_another(OTHER, cloud_name=getattr(request, "param", "sim"), **BALANCED)
    world.settle(for_s=900)
    assert reason_of_other(world) == "QuotaExceeded"
    return world


def test_a_rebuilt_load_balancer_gets_its_quota_again_although_others_wait_for_it(full: ClusterEnvironment) -> None:
    before = full.one("loadbalancers")

    rebuild(full, before)
    full.settle(for_s=900)

    assert full.is_ready(), full.message("Ready")
    assert load_balancers(full) == [(CLUSTER_NAME, before["vip_address"])]
    assert reason_of_other(full) == "QuotaExceeded"


@pytest.mark.parametrize("full", ["sim", "sim-appcred"], indirect=True)
def test_a_cluster_that_is_paused_for_some_minutes_gets_its_quota_again_whatever_credentials_wait_for_it(
    full: ClusterEnvironment,
) -> None:
    rebuild(full, full.one("loadbalancers"))
    full.settle(until=lambda: not load_balancers(full))

    full.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})
    full.settle(for_s=quota_places.KEPT_S - 60)
    assert load_balancers(full) == []
    full.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    full.settle(for_s=300)

    assert [name for name, _ in load_balancers(full)] == [CLUSTER_NAME]


def test_a_rebuilt_load_balancer_of_ovn_gets_its_listener_again(world: ClusterEnvironment) -> None:
    world.use_ovn()
    world.up(**BALANCED)
    allow(world, "load-balancer", "listener", 1)
    world.place_another(OTHER, **BALANCED)
    world.settle(for_s=900)
    before = world.inventory()["loadbalancers"]
    (own,) = (each for each in before.values() if each["name"].endswith(f"-{CLUSTER_NAME}-kubeapi"))

    rebuild(world, own)
    world.settle(for_s=900)

    assert world.is_ready(), world.message("Ready")


def test_a_place_is_kept_over_a_restart_although_another_cluster_is_reconciled_first(full: ClusterEnvironment) -> None:
    rebuild(full, full.one("loadbalancers"))
    with killed_when(full, lambda: not load_balancers(full)):
        full.settle(for_s=60)

    full.start()
    full._due = {key: at_s + (60 if key.name == CLUSTER_NAME else 0) for key, at_s in full._due.items()}
    full.settle(for_s=900)

    assert full.is_ready(), full.message("Ready")
    assert [name for name, _ in load_balancers(full)] == [CLUSTER_NAME]


def test_a_place_that_somebody_outside_takes_is_reported_and_the_cluster_goes_on_when_there_is_room(
    full: ClusterEnvironment,
) -> None:
    before = full.one("loadbalancers")
    rebuild(full, before)
    full.settle(until=lambda: not load_balancers(full))
    subnet = full.member.make_network(cidr="10.77.0.0/24")[1]
    full.member.make(f"{BALANCER_PATH}/loadbalancers", "loadbalancer", vip_subnet_id=subnet["id"], name="a-b-c-d-taken")
    full.settle(for_s=600)

    assert full.shown("LoadBalancerReady") == ("False", "QuotaExceeded")
    message = full.message("LoadBalancerReady")
    assert "load balancers exhausted: needs 1, 0 left; what the deletion of the former one freed is not left" in message
    assert "Quota has been met for resources: Load Balancer" in message
    assert "Raise the project's quota or remove something" in message

    allow(full, "load-balancer", "load_balancer", 2)
    full.settle(for_s=600)
    assert full.is_ready(), full.message("Ready")
    assert CLUSTER_NAME in [name for name, _ in load_balancers(full)]


@pytest.mark.parametrize("how", ["paused", "deleted"])
def test_an_owner_that_does_not_go_on_does_not_block_others_for_ever(full: ClusterEnvironment, how: str) -> None:
    rebuild(full, full.one("loadbalancers"))
    full.settle(until=lambda: not load_balancers(full))

    if how == "paused":
        full.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})
    else:
        full.remove()
    full.settle(for_s=quota_places.KEPT_S + 600)

    assert [name for name, _ in load_balancers(full)] == [OTHER]


def test_a_cluster_that_was_paused_before_a_restart_keeps_no_place(full: ClusterEnvironment) -> None:
    rebuild(full, full.one("loadbalancers"))
    full.settle(until=lambda: not load_balancers(full))
    full.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})

    full.start()
    full.settle(for_s=300)

    assert [name for name, _ in load_balancers(full)] == [OTHER]


@pytest.mark.parametrize(
    ("service", "resource"),
    [
        pytest.param("compute", "instances", id="instances"),
        pytest.param("compute", "cores", id="cores"),
        pytest.param("network", "port", id="ports"),
    ],
)
@pytest.mark.parametrize("is_restarted", [False, True], ids=["one process", "restarted"])
def test_a_replaced_bastion_gets_its_quota_again_although_others_wait_for_it(
    world: ClusterEnvironment, service: str, resource: str, is_restarted: bool
) -> None:
    world.up(**WITH_BASTION)
    world.place_another(OTHER, **MANAGED, **GROUPS)
    world.settle(for_s=60)
    used = {
        "instances": len(world.inventory()["servers"]),
        "cores": 1,
        "port": len(
            [each for each in world.inventory()["ports"].values() if each["project_id"] == world.member.project_id]
        ),
    }
    allow(world, service, resource, used[resource])
    world.patch(OPENSTACK_CLUSTER, OTHER, {"spec": BASTION})
    world.settle(for_s=900)
    other = names.bastion(OTHER)
    assert world.condition(OPENSTACK_SERVER, other, "Ready")["reason"] == "QuotaExceeded"
    (before,) = world.inventory()["servers"]

    world.change(**LARGER_DISK)
    if is_restarted:
        world.settle(until=lambda: not world.inventory().get("servers"))
        world.start()
        world._due = {key: at_s + (60 if CLUSTER_NAME in key.name else 0) for key, at_s in world._due.items()}
    world.settle(for_s=900)

    (after,) = world.inventory()["servers"].values()
    assert (after["name"], after["id"] == before) == (names.bastion(CLUSTER_NAME), False)
    assert world.shown("BastionReady") == ("True", "Ready")


def test_the_bastion_of_another_cluster_gets_the_place_if_none_is_wanted_any_more(world: ClusterEnvironment) -> None:
    world.up(**WITH_BASTION)
    allow(world, "compute", "instances", 1)
    world.place_another(OTHER, **WITH_BASTION)
    world.settle(for_s=900)

    world.change(**LARGER_DISK)
    world.settle(until=lambda: not world.inventory().get("servers"))
    world.change(bastion={"enabled": False})
    world.settle(for_s=quota_places.KEPT_S + 600)

    assert [each["name"] for each in world.inventory()["servers"].values()] == [names.bastion(OTHER)]
