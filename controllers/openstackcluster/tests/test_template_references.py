"""The cluster names its machine templates that refer to what does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo.flag_values import SCALE_FROM_ZERO
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE_TEMPLATE
from capo.settings import Settings
from controllers.openstackcluster import template_references
from controllers.openstackcluster.tests.environment import MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME, OWNER

TYPE = "MachineTemplatesReady"


@pytest.fixture
def world() -> Iterator[ClusterEnvironment]:
    """A running cluster."""
    with ClusterEnvironment() as made:
        made.up(**MANAGED)
        yield made


def place_template(world: ClusterEnvironment, name: str, status: str, message: str = "", **metadata: Any) -> None:
    shown = [{"type": "ReferencesReady", "status": status, "reason": "x", "message": message}]
    spec = {"template": {"spec": {"flavor": {"filter": {"name": "big"}}, "image": {"filter": {"name": "i"}}}}}
    owned = {"name": name, "ownerReferences": [OWNER], **metadata}
    world.apply(OPENSTACK_MACHINE_TEMPLATE, {"metadata": owned, "spec": spec, "status": {"conditions": shown}})
    world.settle(for_s=10)


def shown(world: ClusterEnvironment) -> tuple[str, str]:
    found = world.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, TYPE)
    return found.get("status", ""), found.get("message", "")


def test_a_template_that_lacks_something_is_named_until_it_does_not(world: ClusterEnvironment) -> None:
    place_template(world, "workers", "False", "flavor: no flavor is named big")
    named = shown(world)

    place_template(world, "workers", "True")

    assert named == ("False", "OpenStackMachineTemplate workers: flavor: no flavor is named big")
    assert world.is_ready()
    assert shown(world) == ("", "")


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_a_template_of_which_nothing_is_known_to_be_missing_is_not_named(
    world: ClusterEnvironment, status: str
) -> None:
    place_template(world, "workers", status, "something")

    assert shown(world) == ("", "")


def test_a_template_of_another_namespace_is_not_named_whatever_owner_it_claims(world: ClusterEnvironment) -> None:
    place_template(world, "workers", "False", "hello", namespace="another")

    assert shown(world) == ("", "")


def test_of_many_templates_the_first_are_named(world: ClusterEnvironment) -> None:
    for number in range(7):
        place_template(world, f"t{number}", "False", "m" * 1000)

    _, message = shown(world)

    assert message.startswith(f"OpenStackMachineTemplate t0: {'m' * 300}...; OpenStackMachineTemplate t1: ")
    assert message.endswith("...; and 2 more")


def test_what_templates_showed_is_not_named_any_more_without_their_controller(world: ClusterEnvironment) -> None:
    place_template(world, "workers", "False", "flavor: no flavor is named big")
    assert shown(world)[0] == "False"

    world.settings = Settings(feature_gates={**world.settings.feature_gates, SCALE_FROM_ZERO: False})
    world.start()
    world.wake_all()
    world.settle(for_s=10)

    assert shown(world) == ("", "")


def test_a_cluster_is_reconciled_for_a_template_only_if_it_shows_something_else(world: ClusterEnvironment) -> None:
    place_template(world, "workers", "False", "flavor: no flavor is named big")
    template = world.get(OPENSTACK_MACHINE_TEMPLATE, "workers")
    same = list(template_references.keys_for_template(template, world.store))

    place_template(world, "workers", "True")
    outdated = [*world.status()["conditions"], {"type": TYPE, "status": "False", "message": "old"}]
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"conditions": outdated}})
    world._sync()

    assert same == []
    assert list(template_references.keys_for_template(template, world.store)) == [("default", CLUSTER_NAME)]
