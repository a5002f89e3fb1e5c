"""The template of a MachineDeployment without machines, on a real API server with Cluster API's managers."""

from __future__ import annotations

from typing import Any

import pytest

from capo.json_types import Json
from capo.simulator.nova.flavors import add_flavor
from e2e.machines import objects
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.objects import CORE, LABELS

pytestmark = pytest.mark.integration

GROUP = "infrastructure.cluster.x-k8s.io"
PLURAL = "openstackmachinetemplates"


def template(name: str, flavor: str) -> Json:
    spec = {"flavor": {"filter": {"name": flavor}}, "image": {"filter": {"name": "tiny-image"}}}
    metadata = {"name": name, "labels": LABELS}
    kind = {"apiVersion": f"{GROUP}/v1beta2", "kind": "OpenStackMachineTemplate"}
    return {**kind, "metadata": metadata, "spec": {"template": {"spec": spec}}}


def deployment(name: str, template_name: str) -> Json:
    ref = {"apiGroup": GROUP, "kind": "OpenStackMachineTemplate", "name": template_name}
    machine = {"clusterName": objects.CLUSTER, "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": ref}
    spec = {
        "clusterName": objects.CLUSTER,
        "replicas": 0,
        "selector": {"matchLabels": {"workers": name}},
        "template": {"metadata": {"labels": {"workers": name}}, "spec": machine},
    }
    kind = {"apiVersion": f"{CORE}/v1beta2", "kind": "MachineDeployment"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def place(world: MachinesEnvironment) -> None:
    """Create a cluster whose MachineDeployment has no machines, and a template that nothing refers to."""

    def change_cloud() -> None:
        flavor = add_flavor(world.simulator.cloud, "workers", vcpus=4, ram=8000, disk=30)
        world.users.add(flavor["id"])
        flavor["extra_specs"] = {"trait:HW_ARCH_AARCH64": "required", "resources:VGPU": "1"}
        for image in world.simulator.cloud.table("image", "images").values():
            image["os_type"] = "linux"

    world.simulator.call(change_cloud)
    world.apply(*objects.bare_cluster(world.simulator.clouds_yaml.read_bytes()))
    world.apply(template("used", "workers"), template("unused", "workers"), deployment("md", "used"))


def state(world: MachinesEnvironment, type_: str) -> tuple[Any, Any]:
    found = world.condition(PLURAL, "used", type_)
    return found.get("status"), found.get("reason")


def test_the_template_of_a_deployment_without_machines_gets_its_capacity(world: MachinesEnvironment) -> None:
    place(world)

    world.wait_until("the template is ready", lambda: state(world, "Ready") == ("True", "Ready"))

    status = world.status(PLURAL, "used")
    assert status["capacity"] == {"cpu": "4", "memory": "8000Mi", "ephemeral-storage": "30Gi", "storage": "30Gi"}
    assert status["nodeInfo"] == {"architecture": "arm64", "operatingSystem": "linux"}
    assert world.status(PLURAL, "unused") == {}


def test_a_flavor_that_disappeared_is_named_when_the_deployment_is_scaled(world: MachinesEnvironment) -> None:
    """Takes a minute: for so long the manager shares a list of flavors, and no setting shortens that."""
    place(world)
    world.wait_until("the template is ready", lambda: state(world, "Ready") == ("True", "Ready"))

    def remove() -> None:
        flavors = world.simulator.cloud.table("compute", "flavors")
        for id_ in [id_ for id_, flavor in flavors.items() if flavor["name"] == "workers"]:
            del flavors[id_]

    world.simulator.call(remove)
    # The list of flavors that the first reading used is shared for a minute, so that the first scaling may not show it.
    replicas = iter(range(1, 1000))

    def scale_and_look() -> bool:
        world.patch("machinedeployments", "md", {"spec": {"replicas": next(replicas) % 2}})
        return state(world, "CapacityReady") == ("False", "FlavorNotFound")

    world.wait_until("the flavor is named", scale_and_look)

    assert world.status(PLURAL, "used")["capacity"]["cpu"] == "4"
    references = world.condition(PLURAL, "used", "ReferencesReady")
    assert (references["status"], references["reason"]) == ("False", "ReferencesMissing")
    assert "flavor: no flavor is named workers" in references["message"]

    def named_by_the_cluster() -> str:
        return str(world.condition("openstackclusters", objects.CLUSTER, "MachineTemplatesReady").get("message"))

    world.wait_until("the cluster names the template", lambda: "Template used: flavor: " in named_by_the_cluster())
