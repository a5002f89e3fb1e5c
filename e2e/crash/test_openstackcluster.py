"""A cluster with load balancer and bastion, its manager killed at every write to OpenStack: `make crash`.

With the real core manager of Cluster API, which gives the OpenStackCluster its owner and deletes it with the Cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from capo.crdgen import files
from capo.local.rig import Rig
from e2e.crash.test_openstackserver import WAYS, new
from e2e.crash.world import World, inventory, world

pytestmark = [pytest.mark.integration, pytest.mark.crash]

CLUSTER: Final = ("v1beta2", "openstackclusters", "crashed")
LIMIT_S: Final = 60.0


def objects() -> list[dict[str, Any]]:
    infrastructure = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "crashed"}
    spec = {
        "identityRef": {"name": "cloud", "cloudName": "sim"},
        "apiServer": {"managedLoadBalancer": {"enabled": True}},
        "managedSubnets": [{"cidr": "10.6.0.0/24"}],
        "managedSecurityGroups": {"allowAllInClusterTraffic": True},
        "bastion": {
            "enabled": True,
            "spec": {
                "flavor": {"filter": {"name": "m1.tiny"}},
                "image": {"filter": {"name": "tiny-image"}},
                "sshKeyName": "lab",
            },
        },
    }
    return [
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "crashed"},
            "spec": {"infrastructureRef": infrastructure},
        },
        {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "OpenStackCluster",
            "metadata": {"name": "crashed"},
            "spec": spec,
        },
    ]


def make_and_delete(made: World) -> tuple[int, dict[str, int]]:
    """Make the cluster, count what there is, delete it, look again; return the writes and the counts."""
    made.simulator.call(made.simulator.cloud.counter.reset)
    before = inventory(made.simulator)
    made.apply(*objects())
    made.until("the cluster and its bastion are ready", lambda: is_ready(made), limit_s=LIMIT_S)
    there = {kind: len(ids) for kind, ids in new(before, inventory(made.simulator)).items()}
    path = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{made.namespace}/clusters/crashed"
    made.rig.api.delete(path)
    made.until("the cluster is gone", lambda: made.get(*CLUSTER) is None, limit_s=LIMIT_S)
    left = new(before, inventory(made.simulator))
    assert left == {}, left
    return made.writes(), there


def is_ready(made: World) -> bool:
    status = (made.get(*CLUSTER) or {}).get("status", {})
    provisioned = status.get("initialization", {}).get("provisioned")
    resources = status.get("resources", {})
    return bool(provisioned and status.get("bastion", {}).get("floatingIP") and not resources.get("pending"))


@pytest.fixture(scope="module")
def kubeconfig(rig: Rig) -> Path:
    rig.install_crds(files.load(), strip_conversion=True)
    return rig.install_provider_account()


@pytest.fixture(scope="module")
def undisturbed(rig: Rig, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, int]]:
    with world(rig, kubeconfig, tmp_path_factory.mktemp("undisturbed")) as made:
        return make_and_delete(made)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("when", WAYS)
def test_a_manager_killed_at_every_write_leaves_nothing_twice_and_nothing_behind(
    when: str, rig: Rig, kubeconfig: Path, undisturbed: tuple[int, dict[str, int]], tmp_path: Path
) -> None:
    writes, expected = undisturbed
    kills = 0
    for write in range(1, writes + 1):
        with world(rig, kubeconfig, tmp_path) as made:
            order = made.kill_at(write, when)
            _, there = make_and_delete(made)
            kills += order.struck
            assert there == expected, f"killed {when} write {write}"

    assert kills == writes
