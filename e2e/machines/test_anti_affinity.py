"""The template of the how-to page for anti-affinity, on a real API server with Cluster API's managers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from capo.json_types import Json
from capo.local.errors import ApiError
from e2e.machines import objects
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.objects import CORE, LABELS
from environments.objects import BOOTSTRAP, bootstrap

pytestmark = pytest.mark.integration

GROUP: Final = "infrastructure.cluster.x-k8s.io"
PAGE: Final = Path(__file__).parents[2] / "docs/how-to/anti-affinity.md"


def example() -> Json:
    """Return the page's template, labelled for our manager."""
    (text,) = re.findall(r"(?ms)^    apiVersion: .*?(?=^\S)", PAGE.read_text(encoding="utf-8"))
    template: Json = yaml.safe_load(re.sub(r"(?m)^    ", "", text))
    template["metadata"]["labels"] = dict(LABELS)
    return template


def deployment(template: str) -> Json:
    """Return a MachineDeployment with two machines of a template."""
    ref = {"apiGroup": GROUP, "kind": "OpenStackMachineTemplate", "name": template}
    machine = {"clusterName": objects.CLUSTER, "bootstrap": {"dataSecretName": BOOTSTRAP}, "infrastructureRef": ref}
    spec = {
        "clusterName": objects.CLUSTER,
        "replicas": 2,
        "selector": {"matchLabels": {"workers": "md"}},
        "template": {"metadata": {"labels": {"workers": "md", **LABELS}}, "spec": machine},
    }
    return {"apiVersion": f"{CORE}/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "md"}, "spec": spec}


def test_the_machines_of_a_deployment_are_on_different_hosts(world: MachinesEnvironment) -> None:
    template = example()
    world.apply(*objects.bare_cluster(world.simulator.clouds_yaml.read_bytes()), bootstrap())
    world.apply(template, deployment(template["metadata"]["name"]))

    def running() -> list[Json]:
        return [server for server in world.cloud("compute/servers").values() if server["status"] == "ACTIVE"]

    world.wait_until("both servers run", lambda: len(running()) == 2)

    (group,) = world.cloud("compute/server_groups").values()
    assert group["policy"] == "soft-anti-affinity"
    assert sorted(group["members"]) == sorted(server["id"] for server in running())
    assert len({server["host"] for server in running()}) == 2
    assert world.condition("openstackclusters", objects.CLUSTER, "ServerGroupsReady")["status"] == "True"


@pytest.mark.parametrize("value", ["soft", "hard", "none"])
def test_a_group_of_the_user_excludes_ours(world: MachinesEnvironment, value: str) -> None:
    template = example()
    template["spec"]["template"]["spec"] |= {"antiAffinity": value, "serverGroup": {"filter": {"name": "own"}}}

    if value == "none":
        world.apply(template)
    else:
        with pytest.raises(ApiError, match="antiAffinity and serverGroup exclude each other"):
            world.apply(template)


def test_a_bastion_has_no_anti_affinity(world: MachinesEnvironment) -> None:
    secret, cluster, infrastructure = objects.bare_cluster(world.simulator.clouds_yaml.read_bytes())
    spec = example()["spec"]["template"]["spec"]
    infrastructure["spec"]["bastion"] = {"enabled": True, "spec": spec}

    with pytest.raises(ApiError, match="antiAffinity cannot be set for a bastion"):
        world.apply(secret, cluster, infrastructure)
