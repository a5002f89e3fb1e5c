"""Volumes that workloads left are deleted only from a list that a user reviewed."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER_IDENTITY
from controllers.openstackcluster.tests.environment import MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.test_idle import given_network
from controllers.openstackcluster.tests.test_workload_leftovers import OURS, TYPE, annotate, workloads


def test_a_deletion_waits_for_the_review_of_volumes_and_deletes_those_that_are_listed(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED)
    wanted, kept = workloads(world).volume("cache"), workloads(world).volume("data")
    world.clock.advance(30)
    annotate(world, "review")
    world.remove()
    world.settle(for_s=900)
    assert "networks" in world.created()
    assert wanted["id"] in world.message(TYPE)
    assert f"{names.LEFTOVER_VOLUMES_ANNOTATION}=<ids, separated by commas>" in world.message(TYPE)

    annotate(world, f"{wanted['id']}, ")
    world.settle(for_s=600)

    assert world.is_gone()
    assert set(world.created()["volumes"]) == {kept["id"]}


def test_a_review_without_volumes_holds_nothing_up(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    annotate(world, "review")

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()


def test_a_review_that_is_given_up_keeps_all_volumes(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    volume = workloads(world).volume("data")
    world.clock.advance(30)
    annotate(world, "review")
    world.remove()
    world.settle(for_s=300)
    assert not world.is_gone()

    annotate(world, None)
    world.settle(for_s=300)

    assert world.is_gone()
    assert set(world.created()["volumes"]) == {volume["id"]}


@pytest.mark.parametrize(
    ("cluster", "fields", "refusal"),
    [
        pytest.param("kubernetes", {}, "its driver knows its cluster as 'kubernetes'", id="the name of all"),
        pytest.param("default.other", {}, "its driver knows its cluster as 'default.other'", id="another cluster"),
        pytest.param(OURS, {"metadata": {}}, "no CSI driver created it", id="no driver"),
        pytest.param(OURS, {"status": "in-use"}, "it is in-use", id="in use"),
    ],
)
def test_a_volume_that_is_listed_and_not_ours_holds_the_deletion_until_it_is_removed_from_the_list(
    world: ClusterEnvironment, cluster: str, fields: dict[str, Any], refusal: str
) -> None:
    world.up(**MANAGED)
    volume = workloads(world, cluster).volume("data")
    world.clock.advance(30)
    world.simulator.call(lambda: world.cloud.table("volume", "volumes")[volume["id"]].update(fields))
    annotate(world, volume["id"])
    world.remove()
    world.settle(for_s=300)
    assert world.shown(TYPE) == ("False", "DeletionBlocked")
    assert refusal in world.message(TYPE)

    annotate(world, None)
    world.settle(for_s=300)

    assert world.is_gone()
    assert volume["id"] in world.created()["volumes"]


@pytest.mark.parametrize("value", ["reviw", "../servers/detail"])
def test_an_annotation_that_is_no_list_holds_the_deletion_and_says_so(world: ClusterEnvironment, value: str) -> None:
    world.up(**MANAGED)
    volume = workloads(world).volume("data")
    annotate(world, value)
    world.remove()
    world.settle(for_s=300)
    assert f"{value!r} is neither 'review' nor the id of a volume" in world.message(TYPE)
    assert not [each for each in world.requests() if "/volumes/" in each and not each.endswith("/detail")]

    annotate(world, None)
    world.settle(for_s=300)

    assert world.is_gone()
    assert volume["id"] in world.created()["volumes"]


@pytest.mark.parametrize(
    ("name", "kind", "is_refused"),
    [
        pytest.param("theirs", "ClusterIdentity", True, id="any name"),
        pytest.param("other.theirs", "ClusterIdentity", True, id="the name of another namespace"),
        pytest.param("default.mine", "ClusterIdentity", False, id="a name of its namespace"),
        pytest.param("theirs", "Secret", False, id="credentials of its own"),
    ],
)
def test_with_shared_credentials_a_name_of_ones_choice_proves_no_volume(
    world: ClusterEnvironment, name: str, kind: str, is_refused: bool
) -> None:
    shared = {
        "secretRef": {"name": "cloud", "namespace": "default"},
        "namespaceSelector": {"matchLabels": {"may": "1"}},
    }
    world.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared", "namespace": ""}, "spec": shared})
    world.kube.put(NAMESPACE, {"metadata": {"name": "default", "namespace": "", "labels": {"may": "1"}}})
    identity = {"name": "shared" if kind == "ClusterIdentity" else "cloud", "cloudName": "sim", "type": kind}
    world.up(**MANAGED, identityRef=identity, workloadLeftovers={"clusterName": name})
    assert world.is_ready(), world.message("Ready")
    volume = workloads(world, name).volume("data")
    world.clock.advance(30)
    annotate(world, volume["id"])

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone() != is_refused
    assert (volume["id"] in world.inventory().get("volumes", {})) == is_refused
    if is_refused:
        assert "must begin with the namespace" in world.message(TYPE)


def test_a_listed_volume_that_does_not_exist_is_done(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    annotate(world, "00000000-0000-4000-8000-000000000000")

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()


def test_a_listed_volume_with_snapshots_holds_the_deletion_until_they_are_gone(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    volume = workloads(world).volume("data")
    world.clock.advance(30)
    words = "Invalid volume: Volume status must be available or error and must not be attached, have snapshots"
    match = {"service": "volume", "method": "DELETE", "path": "/v3/*/volumes/*"}
    world.add_fault(match=match, effect={"status": 400, "kind": "badRequest", "message": words})
    annotate(world, volume["id"])
    world.remove()
    world.settle(for_s=300)
    assert "have snapshots" in world.message(TYPE)
    assert not world.is_gone()

    world.clear_faults()
    world.settle(for_s=300)

    assert world.is_gone()
    assert volume["id"] not in world.created().get("volumes", {})


# -- existing networks -----------------------------------------------------------------------------------------------


def up_on_existing_network(world: ClusterEnvironment, **spec: Any) -> str:
    """Create a cluster on the network of a user; return the id of its subnet."""
    where = given_network(world)
    del where["bastion"]
    world.up(**where, **spec, for_s=120)
    assert world.is_ready(), world.message("Ready")
    subnets = world.inventory()["subnets"]
    return next(id_ for id_, subnet in subnets.items() if subnet["network_id"] == where["network"]["id"])


def test_on_an_existing_network_the_deletion_waits_for_the_review_of_volumes_too(world: ClusterEnvironment) -> None:
    up_on_existing_network(world)
    wanted, kept = workloads(world).volume("cache"), workloads(world).volume("data")
    world.clock.advance(30)
    annotate(world, "review")
    world.remove()
    world.settle(for_s=600)
    assert not world.is_gone()
    assert world.message(TYPE).startswith("left by workloads of the cluster: volume ")
    assert wanted["id"] in world.message(TYPE)

    annotate(world, wanted["id"])
    world.settle(for_s=600)

    assert world.is_gone()
    assert set(world.created()["volumes"]) == {kept["id"]}


@pytest.mark.parametrize("policy", [{}, {"workloadLeftovers": {"policy": "Delete"}}], ids=["report", "delete"])
@pytest.mark.parametrize("is_restarted", [False, True], ids=["same process", "restarted"])
def test_on_an_existing_network_what_has_the_name_of_the_cluster_is_shown_and_kept(
    world: ClusterEnvironment, policy: dict[str, Any], is_restarted: bool
) -> None:
    subnet_id = up_on_existing_network(world, **policy)
    volume = workloads(world).volume("data")
    ours = workloads(world).load_balancer("shop", subnet_id)
    theirs = workloads(world, "default.other").load_balancer("shop", subnet_id)
    world.clock.advance(30)
    if is_restarted:
        world.start()

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    shown = [text for _, reason, text in world.events.seen if reason == "LeftoversFound"]
    assert len(shown) == 1
    assert f"possibly left by workloads of the cluster, and not deleted: load balancer {ours['id']}" in shown[0]
    assert volume["id"] in shown[0]
    assert theirs["id"] not in shown[0]
    assert {ours["id"], theirs["id"]} <= set(world.created()["loadbalancers"])
    assert volume["id"] in world.created()["volumes"]


def test_on_an_existing_network_a_failing_octavia_holds_no_deletion_up(world: ClusterEnvironment) -> None:
    where = given_network(world)
    private: dict[str, Any] = {
        "apiServer": {"enableFloatingIP": False},
        "controlPlaneEndpoint": {"host": "10.6.0.9", "port": 6443},
    }
    world.up(network=where["network"], router=where["router"], **private, workloadLeftovers={"policy": "Delete"})
    assert world.is_ready(), world.message("Ready")
    world.add_fault(match={"service": "load-balancer"}, effect={"status": 503})

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone(), world.message("Ready")
