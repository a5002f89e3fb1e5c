"""A management cluster in memory and a simulated cloud, of which plans are made, and the manager that then writes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self, cast

import yaml

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, SECRET
from capo.operations.access import CloudAccess, Management
from capo.operations.plan import changes
from capo.operations.plan.planning import Outcome, Planner
from environments import objects
from environments.provider import NAME, ProviderEnvironment

_VERSION: Final = re.compile(r"^/v[0-9.]+(/[0-9a-f]{32}(?=/))?")
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LONG_S: Final = 1500.0


class PlannedEnvironment(ProviderEnvironment):
    """Plans, and what the manager then really sends."""

    def __enter__(self) -> Self:
        self.kube.connection = SimpleNamespace(server="https://management", namespace="default")  # type: ignore[attr-defined]
        self.apply(SECRET, objects.bootstrap())
        return self

    def planner(self) -> Planner:
        """Return a planner that reads this environment."""
        management = Management(cast(Any, self.kube), "management", CloudAccess())
        return Planner(management, "default")

    def plan(self, *documents: Json, path: Path | None = None) -> Outcome:
        """Return the plan of the cluster, or that of documents in a file."""
        if not documents:
            return self.planner().of_cluster(NAME)
        assert path is not None
        path.write_text(yaml.safe_dump_all(documents))
        return self.planner().of_files([str(path)])

    def converge(self) -> None:
        """Run the manager until nothing is left to write; count its requests from now."""
        self.cloud.counter.reset()
        self.kube.writes.clear()
        self.wake_all()
        self.play(for_s=LONG_S)

    def sent(self) -> Counter[str]:
        """Return the writes that the manager sent to the cloud."""
        return Counter(normal(*each.split(" ", 1)) for each in self.writes())

    def made(self) -> Counter[tuple[str, str, str]]:
        """Return the objects that the manager created and deleted."""
        return Counter(each for each in self.kube.writes if each[0] in ("create", "delete"))

    def cluster(self, *machines: str, **spec: Any) -> Json:
        """Apply a cluster with machines, whose names begin with ``cp`` for the control plane; return the object."""
        cluster = self.apply(CLUSTER, objects.cluster(NAME))
        made = self.apply(OPENSTACK_CLUSTER, objects.openstack_cluster(NAME, owner=cluster, **spec))
        self.machines(machines)
        return made

    def machines(self, wanted: Iterable[str], **spec: Any) -> None:
        """Create machines, as Cluster API does."""
        for name in wanted:
            is_control_plane = "cp" in name
            machine = self.apply(MACHINE, objects.machine(name, NAME, is_control_plane=is_control_plane))
            infra = objects.openstack_machine(name, NAME, owner=machine, is_control_plane=is_control_plane, **spec)
            self.apply(OPENSTACK_MACHINE, infra)


def planned(outcome: Outcome) -> Counter[str]:
    """Return the planned writes to the cloud."""
    return Counter(normal(each.method, each.path) for each in outcome.changes if each.system == changes.CLOUD)


def planned_objects(outcome: Outcome) -> Counter[tuple[str, str, str]]:
    """Return the objects that the manager is planned to create and delete."""
    own = [each for each in outcome.changes if each.system == changes.KUBERNETES and each.action != changes.UPDATE]
    return Counter((each.action, each.kind, each.name.rpartition("/")[2]) for each in own)


def normal(method: str, path: str) -> str:
    """Return a request without version, project and ids."""
    return f"{method} {_ID.sub('ID', _VERSION.sub('', path))}"


def cause_of(outcome: Outcome, action: str, kind: str) -> set[str]:
    """Return the causes of the planned writes of a kind."""
    return {each.cause for each in outcome.changes if (each.action, each.kind) == (action, kind)}


def template_reference(name: str, kind: str = "OpenStackMachineTemplate") -> Json:
    """Return a reference to an object of ours."""
    return {"apiGroup": names.GROUP, "kind": kind, "name": name}


def control_plane(replicas: int, template: str, **spec: Any) -> Json:
    """Return a KubeadmControlPlane of the cluster."""
    return {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "cp"},
        "spec": {
            "replicas": replicas,
            "version": "v1.35.0",
            "machineTemplate": {"spec": {"infrastructureRef": template_reference(template)}},
            **spec,
        },
    }


def machine_deployment(replicas: int, template: str) -> Json:
    """Return a MachineDeployment of the cluster."""
    spec = {
        "clusterName": NAME,
        "bootstrap": {"dataSecretName": objects.BOOTSTRAP},
        "infrastructureRef": template_reference(template),
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        "metadata": {"name": "md"},
        "spec": {"clusterName": NAME, "replicas": replicas, "template": {"spec": spec}},
    }
