"""Which OpenStackMachines are requeued."""

from __future__ import annotations

from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from controllers.openstackmachine import routes
from controllers.openstackmachine.tests.environment import NAMESPACE, MachineEnvironment

WORKER, FIRST, SECOND = ((NAMESPACE, name) for name in ("worker", "first", "second"))


def settled() -> MachineEnvironment:
    """Return a world with two provisioned control plane machines and a worker."""
    world = MachineEnvironment()
    for name in ("first", "second"):
        world.add_machine(name, is_control_plane=True)
    for name in ("worker", "first", "second"):
        conditions = [{"type": "Paused", "status": "False"}]
        status = {"initialization": {"provisioned": True}, "conditions": conditions}
        world.patch(OPENSTACK_MACHINE, name, {"metadata": {"finalizers": ["f"]}, "status": status})
    world.sync()
    return world


def test_machine_wakes_what_it_refers_to() -> None:
    world = settled()

    assert list(routes.keys_for_machine(world.find(MACHINE, "worker") or {}, world.store)) == [WORKER]


def test_cluster_wakes_nobody_who_is_settled() -> None:
    world = settled()

    assert list(routes.keys_for_cluster(world.find(CLUSTER, "demo") or {}, world.store)) == []


def test_cluster_that_is_paused_wakes_all_c_40() -> None:
    world = settled()
    world.patch(CLUSTER, "demo", {"spec": {"paused": True}})

    found = list(routes.keys_for_cluster(world.find(CLUSTER, "demo") or {}, world.store))

    assert sorted(found) == sorted([WORKER, FIRST, SECOND])


def test_cluster_wakes_those_that_wait_for_its_infrastructure() -> None:
    world = settled()
    world.patch(OPENSTACK_MACHINE, "worker", {"status": {"initialization": None}})
    world.sync()

    assert list(routes.keys_for_cluster(world.find(CLUSTER, "demo") or {}, world.store)) == [WORKER]


def test_openstack_cluster_wakes_the_control_plane() -> None:
    world = settled()

    found = routes.keys_for_openstack_cluster(world.find(OPENSTACK_CLUSTER, "infra") or {}, world.store)

    assert list(found) == [FIRST, SECOND]


def test_server_wakes_its_machine_and_a_bastion_wakes_none() -> None:
    world = MachineEnvironment()
    world.run()
    server = world.server()

    assert list(routes.keys_for_server(server, world.store)) == [WORKER]
    server["metadata"]["ownerReferences"][0]["kind"] = "OpenStackCluster"
    assert list(routes.keys_for_server(server, world.store)) == []


def test_control_plane_machine_that_goes_wakes_the_others() -> None:
    world = settled()

    assert list(routes.keys_for_sibling(world.obj("first"), world.store)) == []
    world.patch(OPENSTACK_MACHINE, "first", {"metadata": {"deletionTimestamp": "now"}})
    assert list(routes.keys_for_sibling(world.obj("first"), world.store)) == [SECOND]


def test_control_plane_machine_that_dies_wakes_the_others_w_09() -> None:
    world = settled()
    world.patch(OPENSTACK_MACHINE, "first", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})

    assert list(routes.keys_for_sibling(world.obj("first"), world.store)) == [("default", "second")]


def test_worker_that_goes_wakes_nobody() -> None:
    world = settled()
    world.patch(OPENSTACK_MACHINE, "worker", {"metadata": {"deletionTimestamp": "now"}})

    assert list(routes.keys_for_sibling(world.obj("worker"), world.store)) == []
