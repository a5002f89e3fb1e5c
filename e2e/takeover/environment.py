"""A rig with a cluster of real Cluster API managers on a cloud."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OURS
from capo.local import installed, manifests
from capo.local.clusterctl import Clusterctl
from capo.local.demo import scenario, watch
from capo.local.demo.counting import by_service, is_write
from capo.local.demo.objects import LIVING, Objects
from capo.local.rig import Rig
from capo.local.testing import session_folder
from capo.simulator.testing import Inventory, more_than
from capo.version import VERSION
from e2e.install.terminal import Terminal
from e2e.takeover.cloud import CloudUnderTest
from environments.api_server import NamespaceEnvironment
from environments.manager_process import NotReachedError, wait_until

NAMESPACE = "teams"
CLUSTER = "shop"
POOL = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackFloatingIPPool", "name": "addresses"}
CLAIM = "theirs"
IPAM = "ipam.cluster.x-k8s.io/v1beta2"
MOVE_HIERARCHY_LABEL = "clusterctl.cluster.x-k8s.io/move-hierarchy"
SECOND_NAMESPACE = "others"
"""The namespace of the second cluster. It has the first one's name, so its bastion and some of its ports do, too."""
RECORDED = ("compute/servers", "volume/volumes", "network/trunks", "network/floatingips", "load-balancer/loadbalancers")
"""Kinds whose created resources are all recorded by id."""
WORKER_SPEC = {
    "rootVolume": {"sizeGiB": 20},
    "additionalBlockDevices": [{"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}],
    "tags": ["shop", "worker"],
    "ports": [{}, {"nameSuffix": "storage", "trunk": True}],
}
"""Additions to the default template for a worker: volumes, tags, a second port with a trunk."""
VOLATILE = ("operating_status",)
"""Fields of resources that change without a request of the provider."""
COSTS: Final[list[str]] = []
"""Costs of parts of the tests, for the summary."""


@dataclass
class TakeoverEnvironment(NamespaceEnvironment):
    """One management cluster and a cloud.

    Args:
        before: initial resources of the cloud, by kind and id.
    """

    clusterctl: Clusterctl
    cloud: CloudUnderTest
    before: Inventory = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rig = self.clusterctl.rig

    def shell(self) -> Terminal:
        """Return a shell whose kubectl uses this management cluster; its files are kept."""
        made = Terminal(self.rig, self.rig.layout.root / "operator", programs=["kubectl"])
        made.checkout.mkdir(parents=True, exist_ok=True)
        return made

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def install(self, version: str = VERSION, *flags: str) -> None:
        """Install a version with clusterctl, start its manager with more flags, and create namespaces for clusters."""
        self.clusterctl.prepare()
        self.clusterctl.prepare(version=version)
        installed.install(self.clusterctl, version)
        installed.start(self.rig, *flags)
        self.rig.apply([manifests.namespace(name) for name in (NAMESPACE, SECOND_NAMESPACE)])

    def create_cluster(self, namespace: str = NAMESPACE, worker: Json = WORKER_SPEC) -> None:
        """Create a cluster with load balancer and bastion, and wait until a control plane machine and a worker run."""
        self.apply_cluster(namespace, worker)
        self.wait_until_running(workers=1, namespace=namespace)

    def create_second_cluster(self) -> None:
        """Create a cluster of the same name in the second namespace; its resources count as initial ones."""
        self.create_cluster(SECOND_NAMESPACE)
        self.before = self.cloud.inventory()

    def apply_cluster(self, namespace: str = NAMESPACE, worker: Json = WORKER_SPEC) -> None:
        """Apply the cluster's manifest."""
        variables = self.clusterctl.variables
        wanted = self.clusterctl.cluster(CLUSTER, namespace=namespace, kubernetes=variables["KUBERNETES_VERSION"])
        for obj in wanted:
            if obj["kind"] == "OpenStackMachineTemplate" and obj["metadata"]["name"].endswith("md-0"):
                obj["spec"]["template"]["spec"] |= worker
        self.rig.apply(scenario.with_bastion(wanted, variables))

    def create_pool(self) -> None:
        """Create a pool of floating IPs, which waits for the cluster's credentials, and a claim without an owner."""
        identity = {"name": f"{CLUSTER}-cloud-config", "cloudName": self.clusterctl.variables["OPENSTACK_CLOUD"]}
        network = {"id": self.clusterctl.variables["OPENSTACK_EXTERNAL_NETWORK_ID"]}
        spec = {"identityRef": identity, "reclaimPolicy": "Delete", "floatingIPNetwork": network}
        version, name = f"{POOL['apiGroup']}/v1alpha1", {"name": POOL["name"]}
        metadata = {"name": CLAIM, "labels": {MOVE_HIERARCHY_LABEL: "true"}}
        self.apply(
            {"apiVersion": version, "kind": POOL["kind"], "metadata": name, "spec": spec},
            {"apiVersion": IPAM, "kind": "IPAddressClaim", "metadata": metadata, "spec": {"poolRef": POOL}},
        )

    def claimed_addresses(self) -> dict[str, str]:
        """Return the addresses of answered claims by the claims' names."""
        addresses = {obj["metadata"]["name"]: obj["spec"]["address"] for obj in self.list("ipaddresses")}
        claims = {obj["metadata"]["name"]: obj.get("status", {}) for obj in self.list("ipaddressclaims")}
        return {
            name: addresses[status["addressRef"]["name"]] for name, status in claims.items() if "addressRef" in status
        }

    def wait_until_running(self, *, workers: int, namespace: str = NAMESPACE) -> None:
        """Wait until the machines are Running and the bastion is reachable."""
        objects = Objects(self.rig.api, namespace)

        def lacks() -> str:
            self.rig.check()
            seen = objects.look()
            return watch.lacks_machines(seen, control_planes=1, workers=workers) or watch.lacks_bastion(seen, CLUSTER)

        self.wait_until("the cluster is up", lambda: not lacks())

    def wait_until(self, what: str, reached: Any) -> None:
        """Wait for a state; the error has the objects' messages."""
        try:
            wait_until(what, reached, limit_s=self.cloud.limit_s, every_s=0.5)
        except NotReachedError as error:
            raise NotReachedError(f"{error}\n{watch.why(self.look())}") from error

    def ours(self, namespace: str = NAMESPACE) -> dict[str, Json]:
        """Return every object of our kinds by its path, in the stored version."""
        found = {}
        for kind in OURS:
            base = f"/apis/{kind.group}/{kind.version}"
            where = f"{base}/namespaces/{namespace}/{kind.plural}" if kind.is_namespaced else f"{base}/{kind.plural}"
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
        """Return whether the Cluster and all objects that had resources are deleted."""
        return self.find("clusters", CLUSTER) is None and not self.reconciled()

    def forget_second_cluster(self) -> None:
        """Delete the second cluster's objects and keep its resources; no manager of ours may be the leader."""
        objects = Objects(self.rig.api, SECOND_NAMESPACE)
        objects.delete("clusters", CLUSTER)

        def is_forgotten() -> bool:
            for path, obj in self.ours(SECOND_NAMESPACE).items():
                if "deletionTimestamp" in obj["metadata"]:
                    self.rig.api.patch(path, {"metadata": {"finalizers": None}})
            return not any(objects.list(plural) for plural in LIVING)

        self.wait_until("the second cluster is forgotten", is_forgotten)

    # -- OpenStack --------------------------------------------------------------------------------------------------

    def created(self) -> Inventory:
        """Return the added resources of the cloud, by kind and id."""
        return more_than(self.before, self.cloud.inventory())

    def ids(self) -> dict[str, set[str]]:
        """Return the ids of the added resources, by kind."""
        return {kind: set(items) for kind, items in self.created().items()}

    def accept_strangers(self) -> None:
        """Count the present state of the initial resources as unchanged."""
        self.before = self.strangers()

    def strangers(self) -> Inventory:
        """Return the present state of the initial resources."""
        now = self.cloud.inventory()
        return {kind: {i: now[kind][i] for i in items if i in now.get(kind, {})} for kind, items in self.before.items()}

    def changed_strangers(self) -> list[str]:
        """Return the initial resources that are missing or changed."""
        now = self.strangers()
        return [
            f"{kind} {id_}: {_difference(body, now[kind].get(id_))}"
            for kind, items in self.before.items()
            for id_, body in items.items()
            if _difference(body, now[kind].get(id_))
        ]

    def stay_idle(self) -> None:
        """Wait for late actions of the provider after it has found everything."""
        # The absence of actions is no state to wait for: lists after a takeover begin up to a minute later.
        time.sleep(self.cloud.idle_s)

    def writes(self) -> list[str]:
        """Return the provider's writes since the last reset of the count."""
        sent = self.cloud.requests().elements()
        return [f"{request} of {service}" for service, request in sent if is_write(service, request)]

    @contextlib.contextmanager
    def counted(self, what: str) -> Iterator[None]:
        """Count the requests of a block, and record them and the time for the summary."""
        self.cloud.reset_requests()
        began_s = time.monotonic()
        yield
        took_s, tally = time.monotonic() - began_s, self.cloud.requests()
        services = ", ".join(f"{service} {count}" for service, count in by_service(tally).items())
        COSTS.append(
            f"{what} ({self.cloud.name}): {took_s:.0f} s, {tally.total()} requests ({services}), "
            f"{len(self.writes())} of them writes"
        )


def is_known(obj: Json) -> bool:
    """Return whether an object is adopted, all its resources are recorded, and it is ready."""
    annotations = obj["metadata"].get("annotations") or {}
    status = obj.get("status") or {}
    ready = next((c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"), None)
    is_ready = bool(status.get("ready")) if obj["kind"] == "OpenStackServer" else ready == "True"
    is_ours = names.OWNER_ID_ANNOTATION in annotations and names.TAKEN_OVER_ANNOTATION not in annotations
    return is_ours and is_ready


def _difference(before: Json, now: Json | None) -> str:
    """Return the fields that differ, empty when none does."""
    if now is None:
        return "is gone"
    old, new = _comparable(before), _comparable(now)
    fields = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return ", ".join(f"{name}: {old.get(name)} -> {new.get(name)}" for name in fields)


def _comparable(value: Any) -> Any:
    """Return a value without volatile fields, and with sorted lists: services answer them in any order."""
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items() if name not in VOLATILE}
    if isinstance(value, list):
        return sorted((_comparable(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


@contextlib.contextmanager
def takeover_environment(rigs_folder: Path, name: str, cloud: CloudUnderTest) -> Iterator[TakeoverEnvironment]:
    """Yield a running rig, with clusterctl.

    Args:
        rigs_folder: folder of the tests' rigs.
        name: of the rig.
        cloud: cloud of its clusters.
    """
    rig = Rig(session_folder(rigs_folder, name), say=print)
    with contextlib.ExitStack() as stack:
        stack.callback(rig.down, wipe=True)
        rig.up()
        yield TakeoverEnvironment(
            rig.api,
            NAMESPACE,
            Clusterctl(rig, rig.layout.root / "clusterctl", cloud.variables),
            cloud,
            cloud.inventory(),
        )
