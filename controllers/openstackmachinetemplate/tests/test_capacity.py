"""What the status of a template says about its nodes, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo.kube.kinds import (
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    OPENSTACK_CLUSTER,
    ORC_IMAGE,
)
from capo.settings import Settings
from controllers.openstackmachinetemplate.controller import KEPT_S
from controllers.openstackmachinetemplate.tests.environment import KIND, OWNER, TemplateEnvironment


@pytest.fixture
def world() -> Iterator[TemplateEnvironment]:
    with TemplateEnvironment() as made:
        yield made


def test_the_template_of_a_deployment_without_machines_gets_its_capacity(world: TemplateEnvironment) -> None:
    world.flavor("big", vcpus=8, ram=16384, disk=40)
    world.image(hw_architecture="aarch64", os_type="linux")
    world.place(flavor={"filter": {"name": "big"}})
    world.refer()

    world.settle()

    status = world.status()
    assert status["capacity"] == {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "40Gi", "storage": "40Gi"}
    assert status["nodeInfo"] == {"architecture": "arm64", "operatingSystem": "linux"}
    assert world.state("CapacityReady") == ("True", "Ready")
    assert world.state("Ready") == ("True", "Ready")
    assert world.state("OpenStackAuthenticationSucceeded") == ("True", "Ready")


def test_a_flavor_is_found_by_its_id_and_the_root_volume_counts(world: TemplateEnvironment) -> None:
    flavor = world.flavor("odd", vcpus=1, ram=1500, disk=0, ephemeral=7)
    world.place(flavor={"id": flavor["id"]}, rootVolume={"sizeGiB": 30})
    world.refer()

    world.settle()

    assert world.status()["capacity"] == {
        "cpu": "1",
        "memory": "1500Mi",
        "ephemeral-storage": "7Gi",
        "storage": "30Gi",
    }


def test_devices_are_reported_as_the_site_maps_them_w_92() -> None:
    mapping = (("VGPU", "nvidia.com/gpu"), ("alias:a100", "nvidia.com/gpu"), ("alias:nic", "example.com/nic"))
    specs = {
        "resources:VGPU": "1",
        "resources2:VGPU": "1",
        "pci_passthrough:alias": "a100:2, nic:1,fpga:1",
        "hw:cpu_policy": "dedicated",
        "trait:HW_ARCH_X86_64": "required",
    }
    with TemplateEnvironment(Settings(flavor_resources=mapping)) as world:
        world.flavor("gpu", extra_specs=specs)
        world.place(flavor={"filter": {"name": "gpu"}})
        world.refer()

        world.settle()

        capacity = world.status()["capacity"]
        assert capacity["nvidia.com/gpu"] == "4"
        assert capacity["example.com/nic"] == "1"
        assert capacity["cpu"] == "4"
        assert world.status()["nodeInfo"]["architecture"] == "amd64"
        assert "alias:fpga of the flavor is left out" in world.condition(KIND, "t", "CapacityReady")["message"]


@pytest.mark.parametrize("is_by_id", [False, True])
def test_an_image_is_one_of_windows_by_its_distribution_alone(world: TemplateEnvironment, *, is_by_id: bool) -> None:
    world.image(os_distro="windows", os_type=None)
    (image_id,) = [id_ for id_, each in world.inventory()["images"].items() if each["name"] == "tiny-image"]
    world.place(image={"id": image_id} if is_by_id else {"filter": {"name": "tiny-image"}})
    world.refer()

    world.settle(for_s=5)

    assert world.status()["nodeInfo"] == {"architecture": "amd64", "operatingSystem": "windows"}
    assert "os_type" not in world.condition(KIND, "t", "NodeInfoReady").get("message", "")


def test_the_image_of_orc_is_waited_for(world: TemplateEnvironment) -> None:
    world.image(os_type="windows")
    world.place(image={"imageRef": {"name": "soon"}})
    world.refer()
    world.settle(for_s=5)
    assert world.state("NodeInfoReady")[0] == "Unknown"
    assert world.status()["capacity"]

    (image_id,) = [id_ for id_, each in world.inventory()["images"].items() if each["name"] == "tiny-image"]
    available = [{"type": "Available", "status": "True"}]
    world.apply(ORC_IMAGE, {"metadata": {"name": "soon"}, "status": {"id": image_id, "conditions": available}})
    world.settle(for_s=5)

    assert world.status()["nodeInfo"] == {"architecture": "amd64", "operatingSystem": "windows"}


def orc_image(image_id: str, available: str, **progressing: Any) -> dict[str, Any]:
    """Return an Image of ORC whose id is known."""
    shown: list[dict[str, Any]] = [{"type": "Available", "status": available}]
    shown += [{"type": "Progressing", "status": "False", "observedGeneration": 1, **progressing}] if progressing else []
    status = {"id": image_id, "conditions": shown}
    return {"metadata": {"name": "soon", "generation": 1}, "status": status}


@pytest.mark.parametrize("resyncs", [0, 5])
def test_an_image_of_orc_whose_id_was_known_before_is_read_when_it_is_available(
    world: TemplateEnvironment, resyncs: int
) -> None:
    (image_id,) = [id_ for id_, each in world.inventory()["images"].items() if each["name"] == "tiny-image"]
    world.apply(ORC_IMAGE, orc_image(image_id, "False"))
    world.place(image={"imageRef": {"name": "soon"}})
    world.refer()
    world.settle(for_s=30)
    for _ in range(resyncs):
        world.wake_all()
        world.settle(for_s=600)
    assert world.state("NodeInfoReady")[0] == "Unknown"

    world.apply(ORC_IMAGE, orc_image(image_id, "True"))
    world.settle(for_s=5)

    assert world.state("NodeInfoReady")[0] == "True"
    assert world.state("ReferencesReady")[0] == "True"


def test_an_image_of_orc_that_failed_is_reported_at_once(world: TemplateEnvironment) -> None:
    (image_id,) = [id_ for id_, each in world.inventory()["images"].items() if each["name"] == "tiny-image"]
    world.apply(ORC_IMAGE, orc_image(image_id, "False"))
    world.place(image={"imageRef": {"name": "soon"}})
    world.refer()
    world.settle(for_s=30)

    failed = {"reason": "UnrecoverableError", "message": "no such image in the import"}
    world.apply(ORC_IMAGE, orc_image(image_id, "False", **failed))
    world.settle(for_s=5)

    assert world.state("NodeInfoReady") == ("Unknown", "DependencyFailed")
    assert "no such image in the import" in world.condition(KIND, "t", "NodeInfoReady")["message"]


def test_an_image_of_orc_that_is_available_is_read_once(world: TemplateEnvironment) -> None:
    (image_id,) = [id_ for id_, each in world.inventory()["images"].items() if each["name"] == "tiny-image"]
    world.apply(ORC_IMAGE, orc_image(image_id, "True"))
    world.place(image={"imageRef": {"name": "soon"}})
    world.refer()
    world.settle(for_s=120)
    reads = world.reads()

    for number in range(5):
        world.patch(ORC_IMAGE, "soon", {"metadata": {"labels": {"number": str(number)}}})
        world.settle(for_s=120)

    assert world.reads() == reads


def test_a_template_in_use_is_read_once_and_written_once_w_91(world: TemplateEnvironment) -> None:
    world.place()
    world.place("other")
    world.refer()
    world.refer("other", name="cp", kind=KUBEADM_CONTROL_PLANE)  # the same shape of reference is enough here
    world.settle()
    assert len(world.reads()) == 2, "two templates share the list of flavors and that of images"
    assert world.kube.writes == [("patch/status", KIND.kind, "other"), ("patch/status", KIND.kind, "t")]

    for _ in range(100):
        world.wake_all()
        world.settle(for_s=600)

    assert len(world.reads()) == 2
    assert len(world.kube.writes) == 2


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"ownerReferences": []}, id="no-owner"),
        pytest.param({"ownerReferences": [{**OWNER, "kind": "ClusterClass"}]}, id="of-a-class"),
    ],
)
def test_nothing_is_asked_or_written_for_a_template_without_a_cluster(
    world: TemplateEnvironment, metadata: dict[str, Any]
) -> None:
    world.place(metadata=metadata)
    world.refer()

    world.settle()

    assert world.requests() == []
    assert world.kube.writes == []


def test_nothing_is_asked_for_a_template_that_nothing_refers_to_w_91(world: TemplateEnvironment) -> None:
    world.place()
    world.refer("another")

    world.settle()

    assert world.requests() == []
    assert world.state("Ready") == ("Unknown", "NotReferred")
    assert len(world.kube.writes) == 1


def test_a_new_template_is_not_reported_before_something_can_refer_to_it(world: TemplateEnvironment) -> None:
    world.place(metadata={"creationTimestamp": world.timestamp()})
    world.settle(for_s=10)
    assert world.kube.writes == []

    world.refer()
    world.settle(for_s=10)

    assert world.state("Ready") == ("True", "Ready")
    assert len(world.kube.writes) == 1


def test_a_template_that_is_no_longer_referred_to_keeps_its_capacity(world: TemplateEnvironment) -> None:
    world.place()
    world.refer()
    world.settle()

    world.refer("another")
    world.wake_all()
    world.settle()

    assert world.state("Ready") == ("Unknown", "NotReferred")
    assert world.status()["capacity"]["cpu"] == "1"


def test_machine_sets_of_a_deployment_refer_to_nothing_by_themselves(world: TemplateEnvironment) -> None:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "name": "md", "uid": "u"}
    world.place()
    world.refer(name="md-1", kind=MACHINE_SET, ownerReferences=[owner])
    world.settle()
    assert world.requests() == []

    world.refer(name="alone", kind=MACHINE_SET)
    world.settle()

    assert world.state("Ready") == ("True", "Ready")


def test_the_reference_of_a_control_plane_of_another_kind_is_assumed(world: TemplateEnvironment) -> None:
    world.patch(CLUSTER, "c", {"spec": {"controlPlaneRef": {"kind": "OtherControlPlane"}}})
    world.place()

    world.settle()

    assert world.state("Ready") == ("True", "Ready")


def test_a_flavor_that_disappeared_is_noticed_when_replicas_change_w_93(world: TemplateEnvironment) -> None:
    world.flavor("big", vcpus=8)
    world.place(flavor={"filter": {"name": "big"}})
    world.refer()
    world.settle()

    world.remove_flavor("big")
    world.clock.advance(3600)
    world.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"replicas": 3}})
    world.settle(for_s=60)

    assert world.state("CapacityReady") == ("False", "FlavorNotFound")
    assert world.state("Ready")[0] == "False"
    assert world.status()["capacity"]["cpu"] == "8", "what was read stays"

    world.flavor("big", vcpus=2)
    world.settle(for_s=600)

    assert world.status()["capacity"]["cpu"] == "2"
    assert world.state("Ready") == ("True", "Ready")


def test_a_missing_flavor_costs_little(world: TemplateEnvironment) -> None:
    world.place(flavor={"filter": {"name": "nowhere"}})
    world.refer()
    world.settle(for_s=5)
    world.cloud.counter.reset()

    for _ in range(60):
        world.patch(OPENSTACK_CLUSTER, "c", {"status": {"seen": world.clock.now()}})
        world.settle(for_s=60)

    assert len([path for path in world.reads() if "flavors" in path]) <= 13, "once in five minutes"


def test_an_outage_proves_nothing_and_keeps_what_is_known_w_93(world: TemplateEnvironment) -> None:
    world.place()
    world.refer()
    world.settle()
    before = world.status()["capacity"]

    world.add_fault(match={"service": "compute", "path": "*flavors*"}, effect={"status": 503})
    world.clock.advance(KEPT_S)
    world.wake_all()
    world.settle(for_s=30)

    assert world.state("CapacityReady")[0] == "Unknown"
    assert world.status()["capacity"] == before

    world.clear_faults()
    world.settle()
    assert world.state("CapacityReady") == ("True", "Ready")


def test_keys_that_the_flavor_no_longer_has_are_removed_w_92() -> None:
    settings = Settings(flavor_resources=(("VGPU", "nvidia.com/gpu"),), node_info_defaults=())
    with TemplateEnvironment(settings) as world:
        flavor = world.flavor("gpu", extra_specs={"resources:VGPU": "1"})
        world.image(os_type="linux")
        world.place(flavor={"filter": {"name": "gpu"}})
        world.refer()
        world.settle()
        assert world.status()["capacity"]["nvidia.com/gpu"] == "1"

        flavor["extra_specs"] = {}
        world.image(os_type="")
        world.clock.advance(3600)
        world.patch(KIND, "t", {"metadata": {"annotations": {"check": "again"}}})
        world.settle()

        assert "nvidia.com/gpu" not in world.status()["capacity"]
        assert "nodeInfo" not in world.status()


def test_what_neither_image_nor_flavor_states_is_assumed_and_named_w_92(world: TemplateEnvironment) -> None:
    world.place()
    world.refer()

    world.settle()

    assert world.status()["nodeInfo"] == {"architecture": "amd64", "operatingSystem": "linux"}
    assert "architecture amd64 is assumed" in world.condition(KIND, "t", "NodeInfoReady")["message"]
    assert world.state("Ready") == ("True", "Ready")


def test_an_architecture_that_a_flavor_stated_is_kept_while_flavors_cannot_be_listed_w_93(
    world: TemplateEnvironment,
) -> None:
    world.flavor("arm", extra_specs={"trait:HW_ARCH_AARCH64": "required"})
    world.place(flavor={"filter": {"name": "arm"}})
    world.refer()
    world.settle()
    assert world.status()["nodeInfo"]["architecture"] == "arm64"

    world.add_fault(match={"service": "compute", "path": "*flavors*"}, effect={"status": 503})
    world.clock.advance(KEPT_S)
    world.wake_all()
    world.settle(for_s=30)

    assert world.state("CapacityReady")[0] == "Unknown"
    assert world.status()["nodeInfo"]["architecture"] == "arm64"


def test_no_architecture_is_assumed_before_flavors_can_be_listed(world: TemplateEnvironment) -> None:
    world.add_fault(match={"service": "compute", "path": "*flavors*"}, effect={"status": 503})
    world.place()
    world.refer()
    world.settle(for_s=30)
    assert world.status()["nodeInfo"] == {"operatingSystem": "linux"}

    world.clear_faults()
    world.settle()

    assert world.status()["nodeInfo"]["architecture"] == "amd64"


def test_a_paused_template_is_left_alone_until_it_is_not_paused(world: TemplateEnvironment) -> None:
    world.patch(CLUSTER, "c", {"spec": {"paused": True}})
    world.place()
    world.refer()
    world.settle()
    assert world.requests() == []
    assert world.state("Paused") == ("True", "Paused")

    world.patch(CLUSTER, "c", {"spec": {"paused": False}})
    world.settle()

    assert world.state("Paused") == ("False", "NotPaused")
    assert world.state("Ready") == ("True", "Ready")


def test_credentials_that_are_missing_are_reported_and_tried_again(world: TemplateEnvironment) -> None:
    world.place(identityRef={"name": "later", "cloudName": "sim"})
    world.refer()
    world.settle(for_s=30)
    assert world.state("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")

    world.apply_secret("later")
    world.settle()

    assert world.state("OpenStackAuthenticationSucceeded") == ("True", "Ready")
    assert world.status()["capacity"]


def test_a_template_is_not_written_while_its_cluster_is_deleted(world: TemplateEnvironment) -> None:
    world.place()
    world.refer()
    world.settle()
    writes = len(world.kube.writes)

    world.patch(CLUSTER, "c", {"metadata": {"deletionTimestamp": world.timestamp(), "finalizers": ["x"]}})
    world.refer("another")
    world.wake_all()
    world.settle()

    assert len(world.kube.writes) == writes
