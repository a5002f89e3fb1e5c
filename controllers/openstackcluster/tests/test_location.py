"""A cluster is not reconciled while its credentials lead to another cloud; the check costs no write and no request."""

from __future__ import annotations

import contextlib

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from controllers.openstackcluster.tests.environment import (
    BASTION_NAME,
    COUNTS_OF_FULL,
    FULL,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.tests import elsewhere, stamps


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("kind", ["project", "region", "cloud"])
def test_credentials_that_lead_elsewhere_are_refused(
    world: ClusterEnvironment, kind: str, deletes: bool, restarts: bool
) -> None:
    world.up(for_s=120, **FULL)
    assert world.counts() == COUNTS_OF_FULL
    stored = world.status()["resources"]
    ways = {"region": elsewhere.other_region, "cloud": elsewhere.other_cloud}
    project = contextlib.nullcontext(elsewhere.other_project(world))
    with ways[kind](world) if kind in ways else project as entry:
        elsewhere.put_credentials(world, entry)
        if restarts:
            world.start()
        if deletes:
            world.remove()
        world.resync()
        world.settle(for_s=300)

        assert world.counts() == COUNTS_OF_FULL
        assert world.status()["resources"] == stored
        assert "IdentityNotUsable" in world.message("Ready")
        assert f"project {world.member.project_id} in region RegionOne" in world.message("Ready")

        world.apply_secret()
        world.settle(for_s=300)
        assert world.is_gone() is deletes
        assert world.counts() == ({} if deletes else COUNTS_OF_FULL)


def test_a_host_that_was_renamed_costs_a_write_for_each_object_and_nothing_more(world: ClusterEnvironment) -> None:
    world.up(for_s=120, **FULL)
    world.start()
    world.cloud.counter.reset()
    world.settle(for_s=60)
    usual = sorted(world.requests())
    elsewhere.put_credentials(world, elsewhere.other_name(world))
    world.kube.writes.clear()

    world.start()
    world.cloud.counter.reset()
    world.settle(for_s=60)

    assert world.is_ready()
    assert sorted(world.requests()) == usual
    assert len(world.kube.writes) == 2, world.kube.writes
    for kind, name in ((OPENSTACK_CLUSTER, "kube"), (OPENSTACK_SERVER, BASTION_NAME)):
        assert world.get(kind, name)["status"]["resources"]["location"]["authHost"].startswith("localhost:")


def test_what_another_version_recorded_gets_its_location_in_a_write(world: ClusterEnvironment) -> None:
    world.up(for_s=120, **FULL)
    world.start()
    world.cloud.counter.reset()
    world.settle(for_s=60)
    usual = sorted(world.requests())
    stored = world.status()["resources"]
    world.patch(OPENSTACK_CLUSTER, "kube", {"status": {"resources": {"location": None}}})
    world.kube.writes.clear()

    world.start()
    world.cloud.counter.reset()
    world.settle(for_s=60)

    assert world.status()["resources"] == stored
    assert sorted(world.requests()) == usual
    assert len(world.kube.writes) == 1, world.kube.writes


def test_credentials_may_be_corrected_before_anything_is_created(world: ClusterEnvironment) -> None:
    world.add_fault(match={"method": "POST", "service": "network"}, effect={"status": 403, "message": "Quota exceeded"})
    elsewhere.put_credentials(world, elsewhere.other_project(world))
    world.place(**GROUPS, managedSubnets=[{"cidr": "10.6.0.0/24"}])
    world.settle(for_s=30)
    assert not world.is_ready()

    world.clear_faults()
    elsewhere.put_credentials(world, elsewhere.entry_of(world))
    world.resync()
    world.settle(for_s=300)

    assert world.is_ready()
    assert world.status()["resources"]["location"]["projectID"] == world.member.project_id


@pytest.mark.parametrize("deletes", [False, True])
def test_what_the_status_of_the_go_provider_names_does_not_count_as_vanished_elsewhere(
    world: ClusterEnvironment, deletes: bool
) -> None:
    world.up(for_s=120, **MANAGED, **GROUPS)
    counts = world.counts()
    world.patch(OPENSTACK_CLUSTER, "kube", {"metadata": {"annotations": None}, "status": {"resources": None}})
    stamps.remove_all(world.cloud)
    with elsewhere.other_region(world) as entry:
        elsewhere.put_credentials(world, entry)
        if deletes:
            world.remove()
        world.start()
        world.settle(for_s=120)
        assert world.counts() == counts
        assert not world.is_gone()
        assert "nothing of what is recorded" in world.message("Ready")

        world.apply_secret()
        world.settle(for_s=120)
        assert world.counts() == ({} if deletes else counts)
        assert world.is_gone() is deletes
