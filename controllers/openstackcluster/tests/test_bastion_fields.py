"""Each field of the bastion is edited on a running cluster: a new server has it, nothing of the old one is left."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers.openstackcluster.tests.environment import BASTION, BASTION_NAME, GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

pytestmark = pytest.mark.slow

OTHER_ID = "3f1c2b1a-4b6e-4f8e-9d53-0a5a3a3f1c2b"
GROUP = {"filter": {"name": "own-group"}}
EDITS: list[Any] = [
    pytest.param("spec.flavor", {"flavor": {"filter": {"name": "m1.medium"}}}, id="flavor"),
    pytest.param("spec.image", {"image": {"filter": {"name": "other-image"}}}, id="image"),
    pytest.param("spec.sshKeyName", {"sshKeyName": "other"}, id="key"),
    pytest.param("spec.ports", {"ports": [{"nameSuffix": "a"}, {"nameSuffix": "b", "tags": ["x"]}]}, id="ports"),
    pytest.param("spec.ports", {"trunk": True}, id="trunk"),
    pytest.param("spec.securityGroups", {"securityGroups": [GROUP]}, id="security groups"),
    pytest.param("spec.tags", {"tags": ["blue"]}, id="tags"),
    pytest.param("spec.serverMetadata", {"serverMetadata": [{"key": "a", "value": "b"}]}, id="metadata"),
    pytest.param("spec.configDrive", {"configDrive": True}, id="config drive"),
    pytest.param("spec.rootVolume", {"rootVolume": {"sizeGiB": 2}}, id="root volume"),
    pytest.param(
        "spec.additionalBlockDevices",
        {"additionalBlockDevices": [{"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}]},
        id="more disks",
    ),
    pytest.param("spec.serverGroup", {"serverGroup": {"filter": {"name": "apart"}}}, id="server group"),
    pytest.param(
        "spec.schedulerHintAdditionalProperties",
        {"schedulerHintAdditionalProperties": [{"name": "a", "value": {"type": "String", "string": "b"}}]},
        id="scheduler hints",
    ),
]


def furnish(world: ClusterEnvironment) -> None:
    """Create the resources that the edits refer to."""
    world.member.make("/network/v2.0/security-groups", "security_group", name="own-group")
    world.member.ask("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "other"}})
    group = {"name": "apart", "policies": ["anti-affinity"]}
    world.member.ask("POST", "/compute/v2.1/os-server-groups", {"server_group": group})
    images = world.cloud.table("image", "images")

    def copy() -> None:
        first = next(image for image in images.values() if image["name"] == "tiny-image")
        images[OTHER_ID] = {**first, "id": OTHER_ID, "name": "other-image"}

    world.simulator.call(copy)


@pytest.mark.parametrize(("field", "edit"), EDITS)
def test_an_edited_field_is_in_effect_and_nothing_else_is_left(
    world: ClusterEnvironment, field: str, edit: dict[str, Any]
) -> None:
    furnish(world)
    world.up(**MANAGED, **GROUPS, **BASTION)
    old, address = world.one("servers")["id"], world.status()["bastion"]["floatingIP"]
    told: set[str] = set()

    world.change(bastion={"spec": edit})
    world.settle(for_s=120, until=lambda: told.add(world.message("BastionReady")))

    assert world.shown("BastionReady") == ("True", "Ready"), world.message("BastionReady")
    assert any(message.startswith(f"spec.bastion.{field} changed; step 1 of 2") for message in told)
    server = world.one("servers")
    assert server["id"] != old
    assert world.status()["bastion"]["floatingIP"] == address
    ports = [p for p in world.created()["ports"].values() if p["name"].startswith(BASTION_NAME)]
    assert {p["device_id"] for p in ports} == {server["id"]}
    assert len(ports) == len(edit.get("ports", [{}]))
    assert len(world.created().get("volumes", {})) == len({"rootVolume", "additionalBlockDevices"} & edit.keys())
    assert len(world.created().get("trunks", {})) == len({"trunk"} & edit.keys())

    world.remove()
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize(
    "is_of_last_release", [False, True], ids=["in the status", "in a message, by the last release"]
)
def test_the_cause_of_a_replacement_survives_a_restart_and_goes_with_its_end(
    world: ClusterEnvironment, is_of_last_release: bool
) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION)
    world.change(bastion={"spec": {"flavor": {"filter": {"name": "m1.medium"}}}})
    world.settle(for_s=60, until=lambda: world.shown("BastionReady") == ("False", "Replacing"))
    assert world.status()["bastionReplacement"] == {
        "cause": "SpecChanged",
        "changedFields": ["spec.bastion.spec.flavor"],
    }
    if is_of_last_release:
        world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"bastionReplacement": None}})
    told: set[str] = set()

    world.start()
    world.settle(for_s=120, until=lambda: told.add(world.message("BastionReady")))

    assert any(message.startswith("spec.bastion.spec.flavor changed; step 2 of 2") for message in told)
    assert world.shown("BastionReady") == ("True", "Ready")
    assert "bastionReplacement" not in world.status()


def test_a_replacement_that_the_last_release_completed_is_not_shown_after_the_next_upgrade(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION)
    left = {"cause": "SpecChanged", "changedFields": ["spec.bastion.spec.flavor"]}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"bastionReplacement": left}})

    world.start()
    world.settle(for_s=30)

    assert "bastionReplacement" not in world.status()
    assert world.shown("BastionReady") == ("True", "Ready")
