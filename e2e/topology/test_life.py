"""The life of a cluster of our ClusterClass under Cluster API's real managers, beside one without a topology.

The tests of this file follow one another on one cluster. Servers are simulated, and so are the API servers and nodes of
workload clusters (``capo/local/tools/workload``): what kubeadm does on a machine during an upgrade is not tested.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from capo.json_types import Json
from capo.local.demo.counting import kubernetes_writes, scrape
from capo.local.demo.objects import Objects, is_control_plane, server_id
from capo.local.demo.watch import lacks_machines
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from capo.version import VERSION
from e2e.takeover.cloud import SimulatedCloud, running
from e2e.takeover.environment import COSTS, NAMESPACE, TakeoverEnvironment, takeover_environment
from environments.targets import SIMULATOR

pytestmark = [pytest.mark.integration, pytest.mark.topology, pytest.mark.timeout(1200), pytest.mark.incremental]

PLAIN, MANAGED = "plain", "managed"
SECOND_CLASS = "second"
UNHEALTHY_S: Final = 30
"""The check applies to a machine that is being created, too, and replaces it unless the check is removed before."""


SLACK: Final = 10
"""Lists and writes by which two creations of the same cluster differ on a busy machine."""
MAX_WRITES: Final = 80
LATE_S: Final = 75.0
"""Lists that show whether a create took effect twice are sent within a minute: they count for the cluster, too."""


class TopologyEnvironment:
    """A management cluster, and two clusters of the same shape: one with a topology, one without."""

    def __init__(self, base: TakeoverEnvironment, simulator: Simulator) -> None:
        self.base, self.rig, self.simulator = base, base.rig, simulator
        self.objects = Objects(base.rig.api, NAMESPACE)
        self.costs: dict[str, tuple[int, int]] = {}
        """Requests to OpenStack and writes to Kubernetes of each cluster's creation."""
        self.version = base.clusterctl.variables["KUBERNETES_VERSION"]
        # clusterctl leaves out a class that the namespace has.
        self.manifests = self.generated(MANAGED, "topology")

    def generated(self, name: str, flavor: str = "") -> list[Json]:
        """Return the objects of a cluster with one control plane machine and two workers."""
        wanted = self.base.clusterctl.cluster(
            name, namespace=NAMESPACE, kubernetes=self.version, machines=(1, 2), flavor=flavor
        )
        for obj in wanted:
            if obj["kind"] == "OpenStackClusterTemplate":
                obj["spec"]["template"]["metadata"] = {"labels": {"team": "blue"}, "annotations": {"cost": "center"}}
        return wanted

    def create(self, what: str, wanted: list[Json], name: str) -> None:
        """Create a cluster, wait until it runs, and note what it cost the provider."""
        before = self._writes()
        with self.base.counted(what):
            self.rig.apply(wanted)
            self.wait_until_running(name)
            time.sleep(LATE_S)
        self.costs[name] = self.base.cloud.requests().total(), int(self._writes() - before)
        COSTS.append(f"{what}: {self.costs[name][1]} Kubernetes writes")

    def _writes(self) -> int:
        return kubernetes_writes(scrape(f"http://127.0.0.1:{self.rig.ports['capo-metrics']}/metrics")).total()

    def lacks(self, name: str) -> str:
        """Return what keeps the machines of a cluster from being Running, empty if they all are."""
        self.rig.check()
        seen = self.objects.look()
        found = {"machines": [m for m in seen.all("machines") if m["spec"]["clusterName"] == name]}
        return lacks_machines(type(seen)(found), control_planes=1, workers=2)

    def wait_until_running(self, name: str = MANAGED) -> None:
        """Wait until exactly the wanted machines of a cluster are Running."""
        self.base.wait_until("all machines run", lambda: not self.lacks(name))

    def machines(self, *, control_plane: bool, name: str = MANAGED) -> dict[str, Json]:
        """Return the control plane machines or the workers of a cluster by name."""
        found = [m for m in self.objects.list("machines") if m["spec"]["clusterName"] == name]
        return {m["metadata"]["name"]: m for m in found if is_control_plane(m) == control_plane}

    def wait_for_others(self, old: dict[str, Json], *, control_plane: bool) -> dict[str, Json]:
        """Wait until none of these machines is left and all are Running; return the present ones."""
        present: dict[str, Json] = {}

        def are_replaced() -> bool:
            nonlocal present
            present = self.machines(control_plane=control_plane)
            return not old.keys() & present.keys() and not self.lacks(MANAGED)

        self.base.wait_until("the machines are others", are_replaced)
        return present

    def edit_topology(self, **fields: Any) -> None:
        """Replace fields of the topology of the managed cluster."""
        topology = self.objects.get("clusters", MANAGED)["spec"]["topology"]
        self.objects.patch("clusters", MANAGED, {"spec": {"topology": {**topology, **fields}}})

    def edit_worker_flavor(self, name: str) -> None:
        """Replace the variable with the flavor of workers."""
        variables = [{**v, "value": name} if v["name"] == "workerFlavor" else v for v in self.spec()["variables"]]
        self.edit_topology(variables=variables)

    def described(self) -> str:
        """Return what clusterctl describes of the managed cluster, with the conditions of its objects."""
        options = (f"--namespace={NAMESPACE}", "--show-conditions=OpenStackCluster", "--echo")
        return self.base.clusterctl("describe", "cluster", MANAGED, *options)

    def spec(self) -> Json:
        """Return the topology of the managed cluster."""
        found: Json = self.objects.get("clusters", MANAGED)["spec"]["topology"]
        return found

    def ours(self, plural: str) -> list[Json]:
        """Return our objects of a kind that belong to the managed cluster."""
        label = "cluster.x-k8s.io/cluster-name"
        return [o for o in self.objects.list(plural) if (o["metadata"].get("labels") or {}).get(label) == MANAGED]

    def flavors(self, machines: dict[str, Json]) -> set[str]:
        """Return the flavors with which the OpenStackMachines of Machines were created."""
        names = {m["spec"]["infrastructureRef"]["name"] for m in machines.values()}
        found = [o for o in self.ours("openstackmachines") if o["metadata"]["name"] in names]
        return {o["spec"]["flavor"]["filter"]["name"] for o in found}


@pytest.fixture(scope="module")
def topology(rigs_folder: Path) -> Iterator[TopologyEnvironment]:
    """Yield a management cluster with a running cluster of each sort."""
    with running(SIMULATOR) as cloud, takeover_environment(rigs_folder, "topology", cloud) as base:
        assert isinstance(cloud, SimulatedCloud)
        base.install(VERSION, "--insecure-diagnostics=true")  # its metrics are read without a token
        made = TopologyEnvironment(base, cloud.simulator)
        made.create("a cluster without topology", made.generated(PLAIN), PLAIN)
        made.create("a cluster with a topology", made.manifests, MANAGED)
        yield made


def test_metadata_of_the_template_arrives_on_the_cluster_that_is_created_from_it(topology: TopologyEnvironment) -> None:
    (found,) = topology.ours("openstackclusters")

    assert found["metadata"]["labels"]["team"] == "blue"
    assert found["metadata"]["annotations"]["cost"] == "center"


def test_a_cluster_with_a_topology_costs_about_as_much_as_one_without(topology: TopologyEnvironment) -> None:
    requests, writes = topology.costs[MANAGED]

    assert 0 < requests <= topology.costs[PLAIN][0] + SLACK
    assert 0 < writes <= min(topology.costs[PLAIN][1] + SLACK, MAX_WRITES)


def test_another_flavor_of_the_workers_replaces_the_workers_alone(topology: TopologyEnvironment) -> None:
    workers, control_planes = topology.machines(control_plane=False), topology.machines(control_plane=True)
    wanted = topology.base.clusterctl.variables["OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR"]
    assert topology.flavors(workers) != {wanted}

    topology.edit_worker_flavor(wanted)

    assert topology.flavors(topology.wait_for_others(workers, control_plane=False)) == {wanted}
    assert topology.machines(control_plane=True).keys() == control_planes.keys()


def test_clusterctl_describe_shows_that_a_flavor_does_not_exist_until_it_is_replaced(
    topology: TopologyEnvironment,
) -> None:
    workers = topology.machines(control_plane=False)
    (before,) = topology.flavors(workers)

    topology.edit_worker_flavor("misspelled")
    topology.base.wait_until("the flavor is named", lambda: "no flavor is named misspelled" in topology.described())
    topology.edit_worker_flavor(before)
    topology.base.wait_until("it is no longer", lambda: "MachineTemplatesReady" not in topology.described())
    topology.base.wait_until(
        "the workers are the same", lambda: topology.machines(control_plane=False).keys() == workers.keys()
    )


def test_another_version_replaces_the_control_plane_first_and_then_the_workers(
    topology: TopologyEnvironment,
) -> None:
    workers, control_planes = topology.machines(control_plane=False), topology.machines(control_plane=True)
    major, minor, patch = topology.version.split(".")
    wanted = f"{major}.{minor}.{int(patch) + 1}"

    topology.edit_topology(version=wanted)
    new_control_planes = topology.wait_for_others(control_planes, control_plane=True)
    new_workers = topology.wait_for_others(workers, control_plane=False)

    assert {m["spec"]["version"] for m in (*new_control_planes.values(), *new_workers.values())} == {wanted}
    created = {name: m["metadata"]["creationTimestamp"] for name, m in (new_control_planes | new_workers).items()}
    assert max(created[name] for name in new_control_planes) <= min(created[name] for name in new_workers)


def test_another_class_replaces_what_it_changes(topology: TopologyEnvironment) -> None:
    workers, control_planes = topology.machines(control_plane=False), topology.machines(control_plane=True)
    topology.rig.apply(second_class(topology.manifests))

    topology.edit_topology(classRef={"name": SECOND_CLASS})
    present = topology.wait_for_others(workers, control_plane=False)

    names = {m["spec"]["infrastructureRef"]["name"] for m in present.values()}
    tags = [o["spec"].get("tags") for o in topology.ours("openstackmachines") if o["metadata"]["name"] in names]
    assert tags == [[SECOND_CLASS], [SECOND_CLASS]]
    assert topology.machines(control_plane=True).keys() == control_planes.keys()


def second_class(wanted: list[Json]) -> list[Json]:
    """Return a class that differs from ours in the tags of workers."""
    (made,) = (copy.deepcopy(obj) for obj in wanted if obj["kind"] == "ClusterClass")
    template = next(
        copy.deepcopy(obj)
        for obj in wanted
        if obj["kind"] == "OpenStackMachineTemplate" and obj["metadata"]["name"] == "openstack-worker"
    )
    made["metadata"]["name"] = SECOND_CLASS
    template["metadata"]["name"] = "second-worker"
    template["spec"]["template"]["spec"]["tags"] = [SECOND_CLASS]
    made["spec"]["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"]["name"] = "second-worker"
    return [template, made]


def test_a_worker_whose_server_vanished_is_replaced_by_the_health_check_of_the_topology(
    topology: TopologyEnvironment,
) -> None:
    unhealthy = {"type": "InfrastructureReady", "timeoutSeconds": UNHEALTHY_S}
    checks = {
        "nodeStartupTimeoutSeconds": 0,
        "unhealthyMachineConditions": [{**unhealthy, "status": status} for status in ("False", "Unknown")],
    }
    (deployment,) = topology.spec()["workers"]["machineDeployments"]
    checked = {**deployment, "healthCheck": {"enabled": True, "checks": checks}}
    topology.edit_topology(workers={"machineDeployments": [checked]})
    name, machine = next(iter(topology.machines(control_plane=False).items()))

    client = Client(topology.simulator)
    with client.session:
        client.ask("DELETE", f"/compute/v2.1/servers/{server_id(machine)}")

    def is_deleted() -> bool:
        found = topology.objects.find("machines", name)
        return not found or "deletionTimestamp" in found["metadata"]

    topology.base.wait_until("its machine is deleted", is_deleted)
    topology.edit_topology(workers={"machineDeployments": [deployment]})
    topology.wait_for_others({name: machine}, control_plane=False)


def test_deletion_leaves_nothing_behind(topology: TopologyEnvironment) -> None:
    for name in (MANAGED, PLAIN):
        topology.objects.delete("clusters", name)
    topology.base.wait_until("everything is gone", lambda: not topology.base.reconciled())
    topology.base.wait_until("nothing is left in the cloud", lambda: not topology.base.created())
