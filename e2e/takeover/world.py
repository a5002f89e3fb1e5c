"""A rig with a cluster of real Cluster API managers on a simulated cloud, and what becomes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capo import names
from capo.kube.kinds import OURS
from capo.local import installed
from capo.local.clusterctl import Clusterctl
from capo.local.demo import clouds, story, watch
from capo.local.demo.objects import Objects
from capo.local.rig import Rig
from capo.local.testing import session_folder
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Inventory, inventory, more_than
from capo.version import VERSION
from e2e.manager import wait_until

Json = dict[str, Any]

NAMESPACE = "teams"
CLUSTER = "shop"
LIMIT_S = 300.0
RECORDED = ("compute/servers", "volume/volumes", "network/trunks", "network/floatingips", "load-balancer/loadbalancers")
"""Kinds of which all that is made is recorded by its id."""
WORKER_SPEC = {
    "rootVolume": {"sizeGiB": 20},
    "additionalBlockDevices": [{"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}],
    "tags": ["shop", "worker"],
    "ports": [{}, {"nameSuffix": "storage", "trunk": True}],
}
"""What a worker has beside the default template: volumes, tags, a second port with a trunk."""


@dataclass
class World:
    """One management cluster and a cloud.

    Args:
        before: what was in the cloud from the start, by kind and id.
    """

    clusterctl: Clusterctl
    simulator: Simulator
    before: Inventory = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rig = self.clusterctl.rig
        self.objects = Objects(self.rig.api, NAMESPACE)

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def install(self, version: str = VERSION) -> None:
        """Have a version installed by clusterctl, its manager running, and a namespace for the cluster."""
        self.clusterctl.prepare()
        self.clusterctl.prepare(version=version)
        installed.install(self.clusterctl, version)
        installed.start(self.rig)
        self.rig.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])

    def make_cluster(self) -> None:
        """Have a cluster with load balancer and bastion, one control plane machine and one worker Running."""
        self.apply_cluster()
        self.until_running(workers=1)

    def apply_cluster(self) -> None:
        """Apply that cluster."""
        variables = self.clusterctl.variables
        manifests = self.clusterctl.cluster(CLUSTER, namespace=NAMESPACE, kubernetes=variables["KUBERNETES_VERSION"])
        for obj in manifests:
            if obj["kind"] == "OpenStackMachineTemplate" and obj["metadata"]["name"].endswith("md-0"):
                obj["spec"]["template"]["spec"] |= WORKER_SPEC
        self.rig.apply(story.with_bastion(manifests, variables))

    def until_running(self, *, workers: int) -> None:
        """Wait until the machines are Running and the bastion is reachable."""

        def lacks() -> str:
            self.rig.check()
            seen = self.objects.look()
            return watch.lacks_machines(seen, control_planes=1, workers=workers) or watch.lacks_bastion(seen, CLUSTER)

        self.until("the cluster is up", lambda: not lacks())

    def until(self, what: str, reached: Any, *, limit_s: float = LIMIT_S) -> None:
        """Wait for something; what the objects say is in the error."""
        try:
            wait_until(what, reached, limit_s=limit_s, every_s=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{watch.why(self.objects.look())}") from error

    def ours(self) -> dict[str, Json]:
        """Return every object of our kinds by its path, in the version that is stored."""
        found = {}
        for kind in OURS:
            base = f"/apis/{kind.group}/{kind.version}"
            where = f"{base}/namespaces/{NAMESPACE}/{kind.plural}" if kind.is_namespaced else f"{base}/{kind.plural}"
            for obj in self.rig.api.get(where)["items"]:
                found[f"{where}/{obj['metadata']['name']}"] = obj
        return found

    def reconciled(self) -> dict[str, Json]:
        """Return those of our objects that have resources in the cloud."""
        return {path: obj for path, obj in self.ours().items() if obj["metadata"].get("finalizers")}

    def recorded(self) -> set[str]:
        """Return the ids that our objects record."""
        statuses = [obj["status"] for obj in self.reconciled().values()]
        return {record["id"] for status in statuses for record in status.get("resources", {}).get("records", ())}

    def is_gone(self) -> bool:
        """Tell whether the Cluster and all objects that had resources are gone."""
        return self.objects.find("clusters", CLUSTER) is None and not self.reconciled()

    # -- OpenStack --------------------------------------------------------------------------------------------------

    def made(self) -> Inventory:
        """Return what there is more in the cloud than before, by kind and id."""
        return more_than(self.before, inventory(self.simulator))

    def ids(self) -> dict[str, set[str]]:
        """Return the ids of what was made, by kind."""
        return {kind: set(items) for kind, items in self.made().items()}

    def count_anew(self) -> None:
        """Forget the requests so far."""
        self.simulator.call(self.simulator.cloud.counter.reset)

    def writes(self) -> list[str]:
        """Return what was asked of the cloud that changes something."""
        calls = self.simulator.call(lambda: list(self.simulator.cloud.counter.calls))
        return [f"{call.method} {call.path}" for call in calls if call.write_number]


def is_known(obj: Json) -> bool:
    """Tell whether an object is ours by now, with everything of it recorded, and ready."""
    annotations = obj["metadata"].get("annotations") or {}
    status = obj.get("status") or {}
    ready = next((c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    is_ready = bool(status.get("ready")) if obj["kind"] == "OpenStackServer" else ready == "True"
    is_ours = names.OWNER_ID_ANNOTATION in annotations and names.TAKEN_OVER_ANNOTATION not in annotations
    return is_ours and is_ready


@contextlib.contextmanager
def world(rigs_folder: Path, name: str, *, simulator: Simulator | None = None) -> Iterator[World]:
    """Yield a rig that is up, with clusterctl and a cloud.

    Args:
        rigs_folder: where rigs of tests are.
        name: of the rig.
        simulator: a cloud that is there already.
    """
    rig = Rig(session_folder(rigs_folder, name), say=print)
    with contextlib.ExitStack() as stack:
        cloud = simulator or stack.enter_context(Simulator.start())
        stack.callback(rig.down, wipe=True)
        rig.up()
        site = clouds.simulated(cloud.clouds_yaml, cloud.url)
        yield World(Clusterctl(rig, rig.layout.root / "clusterctl", site.variables), cloud, inventory(cloud))
