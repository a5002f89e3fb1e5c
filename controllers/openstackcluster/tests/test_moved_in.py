"""Clusters moved to a manager that serves their project already, as by ``clusterctl move``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from capo import names
from capo.engine.tests.fake_kube import FakeKube
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER
from controllers.openstackcluster.tests.environment import BALANCER, FULL, ClusterEnvironment

TWO = "two"
SPEC: dict[str, Any] = {
    "identityRef": {"name": "cloud", "cloudName": "sim"},
    "managedSubnets": [{"cidr": "10.8.0.0/24"}],
    **BALANCER,
    "managedSecurityGroups": {"allowAllInClusterTraffic": True},
}


@contextmanager
def source(world: ClusterEnvironment) -> Iterator[None]:
    """Run another management cluster, with its own API server and manager, on the same cloud."""
    target = (world.kube, world.store, world.controllers, world.clouds, world.deps, world._due, world._kinds)
    world.kube = FakeKube()
    world.apply_secret()
    world.start()
    yield
    world.kube, world.store, world.controllers, world.clouds, world.deps, world._due, world._kinds = target


def put(world: ClusterEnvironment, uid: str, spec: Mapping[str, Any], **metadata: Any) -> None:
    """Create the cluster's objects; the Cluster gets a new uid in each place, as in a move."""
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": TWO, "uid": uid, "controller": True}
    reference = {"apiGroup": names.GROUP, "kind": "OpenStackCluster", "name": TWO}
    world.apply(CLUSTER, {"metadata": {"name": TWO, "uid": uid}, "spec": {"infrastructureRef": reference}})
    labels = {names.CLUSTER_NAME_LABEL: TWO}
    born = {"name": TWO, "uid": f"osc-{uid}", "creationTimestamp": "2026-11-22T00:00:00Z", "labels": labels}
    world.apply(OPENSTACK_CLUSTER, {"metadata": {**born, "ownerReferences": [owner], **metadata}, "spec": spec})


@pytest.fixture
def moved(world: ClusterEnvironment) -> dict[str, str]:
    """Ids by role of a cluster that was created elsewhere and moved to where another one exists."""
    world.up(**FULL, for_s=120)
    world.resync()
    world.settle(for_s=60)
    with source(world):
        put(world, "there", SPEC)
        world.settle(for_s=120)
        made = world.get(OPENSTACK_CLUSTER, TWO)
    carried = {name: made["metadata"][name] for name in ("annotations", "finalizers")}
    put(world, "here", made["spec"], **carried)  # clusterctl move does not copy the status
    world.cloud.counter.reset()
    return {record["role"]: record["id"] for record in made["status"]["resources"]["records"]}


def test_a_cluster_that_is_moved_in_is_found_again_and_nothing_is_written(
    world: ClusterEnvironment, moved: dict[str, str]
) -> None:
    world.settle(for_s=180)
    world.resync()
    world.settle(for_s=60)

    assert world.writes() == []
    records = {r["role"]: r["id"] for r in world.get(OPENSTACK_CLUSTER, TWO)["status"]["resources"]["records"]}
    assert records == {role: id_ for role, id_ in moved.items() if role in records}
    assert {"network", "subnet", "router", "lb-api", "fip-api"} <= records.keys()


def test_a_cluster_that_is_moved_in_and_deleted_at_once_leaves_nothing_behind(
    world: ClusterEnvironment, moved: dict[str, str]
) -> None:
    world.delete(OPENSTACK_CLUSTER, TWO)
    world.settle(for_s=300)

    assert not world.exists(OPENSTACK_CLUSTER, TWO)
    left = {id_ for items in world.inventory().values() for id_ in items}
    assert not left & set(moved.values())


def test_what_was_created_elsewhere_is_found_after_a_move_there_and_back(world: ClusterEnvironment) -> None:
    world.up(**{name: value for name, value in FULL.items() if name != "managedSecurityGroups"}, for_s=120)
    here = world.osc()
    owner = here["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    world.kube.objects.pop(next(key for key in world.kube.objects if key.kind == OPENSTACK_CLUSTER))
    world.settle(for_s=5)
    made = {
        world.member.make(
            "/network/v2.0/security-groups",
            "security_group",
            name=names.security_group("default-kube", suffix),
            description=names.stamped(names.SECURITY_GROUP_DESCRIPTION, names.Stamp(owner, f"group-{suffix}")),
        )["id"]
        for suffix in ("controlplane", "worker")
    }
    world.clock.advance(600)

    kept = ("name", "annotations", "labels", "ownerReferences", "finalizers", "creationTimestamp")
    metadata = {name: value for name, value in here["metadata"].items() if name in kept}
    back = {**metadata, "uid": "back"}
    world.apply(OPENSTACK_CLUSTER, {"metadata": back, "spec": {**here["spec"], "managedSecurityGroups": {}}})
    world.settle(for_s=180)

    groups = world.created()["security_groups"]
    wanted = [names.security_group("default-kube", suffix) for suffix in ("controlplane", "worker")]
    assert {id_ for id_, body in groups.items() if body["name"] in wanted} == made


def test_a_second_network_with_our_stamp_is_reported_with_both_ids_and_stays(world: ClusterEnvironment) -> None:
    world.up(**FULL, for_s=120)
    owner = world.osc()["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    kept = world.record("network")
    second = world.member.make(
        "/network/v2.0/networks", "network", name="older", description=f"[{names.Stamp(owner, 'network')}]"
    )["id"]

    world.start()
    world.settle(for_s=120)

    assert {kept, second} <= world.inventory()["networks"].keys()
    assert world.record("network") == kept
    condition = next(c for c in world.status()["conditions"] if c["type"] == "NamesUnique")
    assert condition["reason"] == "DuplicateResource"
    assert kept in condition["message"]
    assert second in condition["message"]
