"""A network and a server that were created by hand become those of a cluster, and are deleted with it.

On the real services alone: capo/operations/adoption/tests has all of it on the simulator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml

from capo.__main__ import main
from capo.json_types import Json
from capo.local.testing import core_definitions
from capo.operations.errors import ExitStatus
from e2e.servers.environment import ServersEnvironment
from environments.core_manager_stub import CoreManagerStub

pytestmark = pytest.mark.integration

CLUSTER: Final = "adopted"
KINDS: Final = ("clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io")
CLUSTERS: Final = "openstackclusters"


def capo(ground: ServersEnvironment, folder: Path, *arguments: str, applied: str) -> list[int]:
    """Write a plan, then apply it; return both exit statuses."""
    path, kubeconfig = folder / applied, str(ground.rig.kubeconfig)
    on_loopback = "--openstack-denied-networks="
    written = main(["adopt", *arguments, "-n", ground.namespace, "-o", str(path), on_loopback])
    return [written, main(["adopt", "apply", str(path), "--kubeconfig", kubeconfig, on_loopback])]


def network_by_hand(ground: ServersEnvironment) -> str:
    made = ground.make("network", "/networks", "network", name=f"{ground.namespace}-lan")
    values = {"network_id": made["id"], "cidr": "10.77.0.0/24", "ip_version": 4}
    ground.make("network", "/subnets", "subnet", name=f"{ground.namespace}-lan", **values)
    return str(made["id"])


def server_by_hand(ground: ServersEnvironment, network_id: str) -> str:
    flavors = ground.cloud.list_all("compute", "/flavors", "flavors")
    flavor = next(each["id"] for each in flavors if each["name"] == "m1.tiny")
    values = {"flavorRef": flavor, "imageRef": ground.image["id"], "networks": [{"uuid": network_id}]}
    made = ground.make("compute", "/servers", "server", name=f"{ground.namespace}-jump", **values)

    def is_active() -> bool:
        return bool(ground.cloud.get("compute", f"/servers/{made['id']}")["server"]["status"] == "ACTIVE")

    ground.wait_until("the server is ACTIVE", is_active)
    return str(made["id"])


def status(ground: ServersEnvironment) -> Json:
    return ground.status(CLUSTERS, CLUSTER)


@pytest.mark.lab
def test_a_network_and_a_bastion_by_hand_are_adopted_and_deleted(ground: ServersEnvironment, tmp_path: Path) -> None:
    ground.rig.install_crds([core_definitions()[name] for name in KINDS])
    clouds, core = tmp_path / "clouds.yaml", CoreManagerStub(ground.api, ground.namespace)
    clouds.write_text(yaml.safe_dump({"clouds": {"it": dict(ground.tenant.entry)}}))
    network = network_by_hand(ground)
    server = server_by_hand(ground, network)
    cloud = ("--clouds", str(clouds), "--cloud", "it", "--identity", "member")

    # The port of the server is named, and that the provider determines the endpoint.
    adopted = capo(ground, tmp_path, "network", network, "--cluster", CLUSTER, *cloud, applied="network.yaml")
    assert adopted == [ExitStatus.FOUND, ExitStatus.DONE]
    core.step()
    ground.wait_until("the network is adopted", lambda: (status(ground).get("network") or {}).get("id") == network)
    arguments = ("bastion", server, "--cluster", CLUSTER, "--kubeconfig", str(ground.rig.kubeconfig))
    assert capo(ground, tmp_path, *arguments, applied="bastion.yaml") == [ExitStatus.DONE, ExitStatus.DONE]
    ground.wait_until("the bastion is adopted", lambda: (status(ground).get("bastion") or {}).get("id") == server)
    assert [each["id"] for each in ground.cloud.list_all("compute", "/servers", "servers")].count(server) == 1

    ground.delete("clusters", CLUSTER)

    def is_gone() -> bool:
        core.step()
        return ground.find("clusters", CLUSTER) is None

    ground.wait_until("the cluster is deleted", is_gone)
    assert network not in [each["id"] for each in ground.cloud.list_all("network", "/networks", "networks")]
    assert server not in [each["id"] for each in ground.cloud.list_all("compute", "/servers", "servers")]
