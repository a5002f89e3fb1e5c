"""Deleting one object whose OpenStack service has failed permanently."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER, SECRET
from controllers.openstackcluster.tests.environment import MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

AWAY: dict[str, Any] = {"status": 404, "body": "default backend - 404"}


def annotate(world: ClusterEnvironment, value: str) -> None:
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": {names.ABANDON_ANNOTATION: value}}})


def owner(world: ClusterEnvironment) -> str:
    return str(world.osc()["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0])


def events(world: ClusterEnvironment, reason: str) -> list[str]:
    return [message for _, told, message in world.events.seen if told == reason]


def test_a_deletion_that_fails_for_long_names_the_way_out_and_what_it_leaves(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    network = world.record("network")
    world.add_fault(match={"service": "network"}, effect=AWAY)

    world.remove()
    world.settle(for_s=600)
    assert events(world, "DeletionBlocked") == []
    world.settle(for_s=900)

    told = set(events(world, "DeletionBlocked"))
    assert len(told) == 1
    assert f"{names.ABANDON_ANNOTATION}={owner(world)}" in told.pop()
    annotate(world, owner(world))
    world.settle(for_s=30)
    assert world.is_gone()
    assert f"network {network}" in events(world, "ResourcesAbandoned")[0]
    assert network in world.inventory()["networks"]


def test_it_works_without_credentials_too(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    world.kube.objects.pop(next(key for key in world.kube.objects if key.kind == SECRET))
    world.start()
    world.remove()
    world.settle(for_s=1200)
    assert events(world, "DeletionBlocked")

    annotate(world, owner(world))
    world.settle(for_s=30)

    assert world.is_gone()


@pytest.mark.parametrize("value", ["true", "", "aaaaaaaaaaaaa"])
def test_a_value_that_is_not_the_owner_id_abandons_nothing(world: ClusterEnvironment, value: str) -> None:
    world.up(**MANAGED)
    annotate(world, value)
    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


def test_an_object_that_is_not_deleted_ignores_it(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    annotate(world, owner(world))
    world.settle(for_s=60)

    assert world.is_ready()
    world.remove()
    world.settle(for_s=60)
    assert world.is_gone()
