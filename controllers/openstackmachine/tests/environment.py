"""A cluster with machines as Cluster API creates it, and a manager that reconciles OpenStackMachines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capo import names
from capo.engine.context import Dependencies
from capo.engine.reconciler import Reconciler
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeClock, FakeKube, RecordedEvents
from capo.engine.worker import Result
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key, Kind
from capo.shares import CloudKey
from controllers.openstackmachine.controller import MachineController

NAMESPACE = "default"
LABELS = {names.CLUSTER_NAME_LABEL: "demo"}
KINDS = (CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER)
IDENTITY = {"name": "secret", "cloudName": "cloud"}
READY_SERVER = {
    "ready": True,
    "instanceID": "server-id",
    "instanceState": "ACTIVE",
    "addresses": [
        {"type": "InternalIP", "address": "10.6.0.7"},
        {"type": "InternalDNS", "address": "worker"},
    ],
}


class NoCloud:
    """Credentials that no reconcile may use."""

    def cloud(self, ref: Mapping[str, Any], namespace: str) -> Any:
        raise AssertionError("this pass needs no cloud")

    def forget(self, ref: Mapping[str, Any], namespace: str) -> None:
        """Do nothing."""

    @staticmethod
    def cloud_key(ref: Mapping[str, Any] | None, namespace: str) -> CloudKey:
        return CloudKey("slot", "192.0.2.1")


class MachineEnvironment:
    """A provisioned cluster with a worker whose bootstrap data is ready; tests remove what they do not need."""

    def __init__(self, identities: Any = None, *, machine: str = "worker", is_control_plane: bool = False) -> None:
        self.kube, self.clock, self.events, self.store = FakeKube(), FakeClock(), RecordedEvents(), Store()
        self.identities: Any = identities or NoCloud()
        self.deps = Dependencies(self.kube, self.store, self.events, self.clock)  # type: ignore[arg-type]
        self.restart()
        self.kube.put(CLUSTER, cluster())
        self.kube.put(OPENSTACK_CLUSTER, openstack_cluster())
        self.add_machine(machine, is_control_plane=is_control_plane)
        self.machine = machine

    def restart(self) -> None:
        """Restart the manager, with empty caches."""
        self.reconciler = Reconciler(MachineController(self.identities, self.deps), self.deps)

    def add_machine(self, name: str, *, is_control_plane: bool = False) -> None:
        """Create a Machine with its OpenStackMachine."""
        labels = {**LABELS, **({names.CONTROL_PLANE_LABEL: ""} if is_control_plane else {})}
        self.kube.put(MACHINE, machine(name, labels))
        self.kube.put(OPENSTACK_MACHINE, openstack_machine(name, labels))

    def patch(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> None:
        """Merge patch an object as another client."""
        self.kube.edit(kind, NAMESPACE, name, patch)

    def delete(self) -> None:
        """Request the deletion of the OpenStackMachine."""
        self.patch(OPENSTACK_MACHINE, self.machine, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})

    def find(self, kind: Kind, name: str) -> dict[str, Any] | None:
        """Return an object of the API server, None without it."""
        return self.kube.get(kind, NAMESPACE, name)

    def obj(self, name: str = "") -> dict[str, Any]:
        found = self.find(OPENSTACK_MACHINE, name or self.machine)
        assert found is not None
        return found

    def server(self, name: str = "") -> dict[str, Any]:
        found = self.find(OPENSTACK_SERVER, name or self.machine)
        assert found is not None
        return found

    def run(self, name: str = "") -> Result:
        """Sync the store and reconcile once."""
        self.sync()
        return self.reconciler.reconcile(Key(OPENSTACK_MACHINE, NAMESPACE, name or self.machine))

    def sync(self) -> None:
        """Update the store as the watches do."""
        for kind in KINDS:
            items = list(self.kube.list(kind))
            self.store.replace(kind, items, namespace=None, resource_version="999999")

    def condition(self, type_: str, name: str = "") -> tuple[str, str] | None:
        """Return status and reason of a condition, None without it."""
        conditions = self.obj(name).get("status", {}).get("conditions") or ()
        return next(((c["status"], c["reason"]) for c in conditions if c["type"] == type_), None)

    def message(self, type_: str) -> str:
        """Return the message of a condition."""
        conditions = self.obj()["status"]["conditions"]
        return str(next(c["message"] for c in conditions if c["type"] == type_))

    def become_active(self, name: str = "", **status: Any) -> None:
        """Set the status of an ACTIVE server, as its own controller does."""
        self.patch(OPENSTACK_SERVER, name or self.machine, {"status": {**READY_SERVER, **status}})


def cluster() -> dict[str, Any]:
    return {
        "metadata": {"name": "demo", "namespace": NAMESPACE},
        "spec": {"infrastructureRef": {"apiGroup": names.GROUP, "kind": "OpenStackCluster", "name": "infra"}},
        "status": {"initialization": {"infrastructureProvisioned": True}},
    }


def openstack_cluster() -> dict[str, Any]:
    return {
        "metadata": {"name": "infra", "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "identityRef": IDENTITY,
            "managedSecurityGroups": {},
            "controlPlaneEndpoint": {"host": "127.64.0.5", "port": 6443},
        },
        "status": {
            "initialization": {"provisioned": True},
            "network": {"id": "net", "name": "n", "subnets": [{"id": "sub", "name": "s", "cidr": "10.6.0.0/24"}]},
            "controlPlaneSecurityGroup": {"id": "group-cp", "name": "cp"},
            "workerSecurityGroup": {"id": "group-worker", "name": "w"},
        },
    }


def machine(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "failureDomain": "az1",
            "bootstrap": {"dataSecretName": f"{name}-boot"},
            "infrastructureRef": {"apiGroup": names.GROUP, "kind": "OpenStackMachine", "name": name},
        },
    }


def openstack_machine(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "uid": "m", "controller": True}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "flavor": {"filter": {"name": "m1.small"}},
            "image": {"filter": {"name": "ubuntu"}},
            "sshKeyName": "k",
        },
    }
