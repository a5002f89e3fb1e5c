"""Clusters whose status was lost, as after ``clusterctl move``: all resources are found again, none is changed."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_SERVER
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BASTION,
    BASTION_NAME,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

OPEN: dict[str, Any] = {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}}
SPECS = [
    pytest.param({**MANAGED, **GROUPS, **BASTION, **BALANCER}, id="load balancer"),
    pytest.param({**MANAGED, **GROUPS, **BASTION, **OPEN}, id="load balancer with allowed CIDRs"),
    pytest.param({**MANAGED, **GROUPS, **BASTION}, id="floating IP alone"),
]


def move(world: ClusterEnvironment) -> None:
    """Remove the status of Cluster, OpenStackCluster and bastion, and give them new uids and matching owners."""
    owner = {**world.osc()["metadata"]["ownerReferences"][0], "uid": "moved-cluster"}
    world.patch(CLUSTER, CLUSTER_NAME, {"metadata": {"uid": "moved-cluster"}, "status": None})
    metadata = {"uid": "moved-osc", "ownerReferences": [owner]}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": metadata, "status": None})
    of_bastion = world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]["ownerReferences"][0]
    moved = {"uid": "moved-bastion", "ownerReferences": [{**of_bastion, "uid": "moved-osc"}]}
    world.patch(OPENSTACK_SERVER, BASTION_NAME, {"metadata": moved, "status": None})
    world.start()
    world.cloud.counter.reset()


def shown(world: ClusterEnvironment) -> dict[str, Any]:
    """Return the status without timestamps."""
    status = world.status()
    return {name: status[name] for name in status.keys() - {"conditions", "resources"}}


def ids(world: ClusterEnvironment) -> dict[str, set[str]]:
    return {kind: set(items) for kind, items in world.created().items()}


@pytest.mark.parametrize("spec", SPECS)
def test_nothing_is_rebuilt_or_changed_and_the_status_is_as_it_was(
    world: ClusterEnvironment, spec: dict[str, Any]
) -> None:
    world.up(**spec, for_s=300)
    before, status = ids(world), shown(world)
    records = {r["role"]: r["id"] for r in world.status()["resources"]["records"]}
    move(world)

    world.settle(for_s=900)
    world.resync()
    world.settle(for_s=60)

    assert world.writes() == []
    assert ids(world) == before
    assert shown(world) == status
    assert world.is_ready()
    found = {r["role"]: r["id"] for r in world.status()["resources"]["records"]}
    assert found == {role: id_ for role, id_ in records.items() if role in found}


@pytest.mark.parametrize("spec", SPECS)
def test_a_moved_cluster_that_is_deleted_at_once_leaves_nothing_behind(
    world: ClusterEnvironment, spec: dict[str, Any]
) -> None:
    world.up(**spec, for_s=300)
    move(world)

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert not world.has_bastion()
    assert world.created() == {}
