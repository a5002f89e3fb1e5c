"""Deletions of a worker's OpenStackMachine: they need only Kubernetes."""

from __future__ import annotations

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key
from controllers.openstackmachine.tests.environment import NAMESPACE, MachineEnvironment

READY = "Ready"
FINALIZER = names.finalizer("OpenStackMachine")


def test_deletion_waits_until_the_server_is_gone_c_34() -> None:
    world = MachineEnvironment()
    world.run()
    world.delete()

    world.run()
    world.clock.advance(30.0)
    world.run()

    assert world.server()["metadata"]["deletionTimestamp"]
    assert world.condition(READY) == ("False", "Deleting")
    del world.kube.objects[Key(OPENSTACK_SERVER, NAMESPACE, "worker")]
    world.run()
    assert world.find(OPENSTACK_MACHINE, "worker") is None


def test_server_is_asked_to_go_only_once() -> None:
    world = MachineEnvironment()
    world.run()
    world.delete()

    world.run()
    world.run()

    assert world.kube.writes.count(("delete", "OpenStackServer", "worker")) == 1


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param([Key(OPENSTACK_CLUSTER, NAMESPACE, "infra")], id="OpenStackCluster"),
        pytest.param([Key(MACHINE, NAMESPACE, "worker")], id="Machine"),
        pytest.param(
            [
                Key(CLUSTER, NAMESPACE, "demo"),
                Key(MACHINE, NAMESPACE, "worker"),
                Key(OPENSTACK_CLUSTER, NAMESPACE, "infra"),
            ],
            id="everything",
        ),
    ],
)
def test_deletion_needs_none_of_the_owners_w_15_w_17(missing: list[Key]) -> None:
    world = MachineEnvironment()
    world.run()
    for key in missing:
        del world.kube.objects[key]
    world.delete()

    world.run()
    del world.kube.objects[Key(OPENSTACK_SERVER, NAMESPACE, "worker")]
    world.run()

    assert world.find(OPENSTACK_MACHINE, "worker") is None


def test_deletion_of_one_that_never_had_a_server_is_done_at_once() -> None:
    world = MachineEnvironment()
    world.patch(MACHINE, "worker", {"spec": {"bootstrap": {"dataSecretName": None}}})
    world.run()
    world.delete()

    world.run()

    assert world.find(OPENSTACK_MACHINE, "worker") is None


def test_deletion_finds_a_server_that_the_store_does_not_know() -> None:
    world = MachineEnvironment()
    world.run()
    world.delete()
    world.sync()
    world.store.apply(OPENSTACK_SERVER, "DELETED", world.server())

    world.reconciler.reconcile(Key(OPENSTACK_MACHINE, NAMESPACE, "worker"))

    assert world.obj()["metadata"]["finalizers"] == [FINALIZER]
    assert world.server()["metadata"]["deletionTimestamp"]


def test_a_deletion_that_goes_as_expected_is_not_reported_for_half_a_minute() -> None:
    world = MachineEnvironment()
    world.run()
    world.delete()
    world.kube.writes.clear()

    result = world.run()
    assert world.kube.writes == [("delete", "OpenStackServer", "worker")]
    assert result.requeue_after_s == 30.0

    world.clock.advance(30.0)
    world.run()
    assert world.condition(READY) == ("False", "Deleting")


def test_a_deletion_that_the_server_reports_as_blocked_is_reported_at_once() -> None:
    world = MachineEnvironment()
    world.run()
    world.delete()
    world.run()
    blocked = {"type": "Ready", "status": "False", "reason": "DeletionBlocked", "message": "port in use"}
    generation = world.server()["metadata"]["generation"]
    shown = {"conditions": [{**blocked, "observedGeneration": generation}]}
    world.patch(OPENSTACK_SERVER, "worker", {"status": shown})

    world.run()

    assert world.condition(READY) == ("False", "Deleting")
    assert "port in use" in world.message(READY)
