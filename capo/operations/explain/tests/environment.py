"""A provider in virtual time whose objects and cloud an operator's command reads."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from capo.engine import conditions
from capo.json_types import Json
from capo.kube.client import Snapshot
from capo.kube.connection import Connection
from capo.kube.event_objects import CORE_EVENT
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, SECRET, Kind
from capo.operations.access import CloudAccess, Management
from capo.operations.console import Console
from capo.operations.errors import ExitStatus
from capo.operations.explain import command
from capo.operations.explain.printing import Report
from environments import objects
from environments.provider import NAME, ProviderEnvironment


@dataclass
class Kubernetes:
    """The API server of the environment, as a client that reads."""

    stage: ProviderEnvironment
    connection: Connection = field(
        default_factory=lambda: Connection("https://kubernetes.example", namespace="default")
    )
    events: list[Json] = field(default_factory=list)
    forbidden: set[Kind] = field(default_factory=set)

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        return self.stage.kube.get(kind, namespace, name)

    def served(self, group: str, kind: str) -> Kind | None:
        return self.stage.kube.served(group, kind)

    def snapshot(self, kind: Kind, namespace: str | None = None, **selectors: Any) -> Snapshot:
        if kind == CORE_EVENT:
            return Snapshot(self.events, "1")
        found = self.stage.kube.list(kind, namespace, label_selector=selectors.get("label_selector"))
        return Snapshot(list(found), "1")

    def record(self, obj: Mapping[str, Any], type_: str, reason: str, message: str, *, action: str = "") -> None:
        """Keep an Event in place of writing it."""
        at = conditions.timestamp(self.stage.clock.wall())
        about = {"uid": obj["metadata"]["uid"], "name": obj["metadata"]["name"]}
        event = {"type": type_, "reason": reason, "message": message, "involvedObject": about, "lastTimestamp": at}
        self.events.append({"metadata": {"name": f"e{len(self.events)}", "creationTimestamp": at}, **event})


class ExplainEnvironment(ProviderEnvironment):
    """A provider, and what ``capo explain`` says about its objects."""

    def __init__(self) -> None:
        super().__init__()
        self.kubernetes = Kubernetes(self)
        self.events.emit = self.kubernetes.record  # type: ignore[method-assign, assignment]

    def management(self) -> Management:
        """Return the management cluster, with the time of the environment."""
        clouds = CloudAccess()
        clouds.clock = self.clock  # type: ignore[assignment]
        return Management(self.kubernetes, "mgmt", clouds)  # type: ignore[arg-type]

    def report(self, name: str, *, reads_cloud: bool = True) -> Report:
        """Return the report about ``kind/name``."""
        kind, object_name = command.kind_and_name(name)
        return command.read(self.management(), kind, "default", object_name, reads_cloud=reads_cloud)

    def explain(self, name: str, output: str = "", **options: Any) -> tuple[str, ExitStatus]:
        """Return what is printed, stderr included, and the exit status."""
        printed = io.StringIO()
        status = command.explain(Console(output, out=printed, err=printed), self.report(name, **options))
        return printed.getvalue(), status

    def place_cluster(self) -> None:
        """Apply a cluster, as Cluster API has it."""
        self.before = self.inventory()
        cluster = self.apply(CLUSTER, objects.cluster(NAME))
        self.apply(OPENSTACK_CLUSTER, objects.openstack_cluster(NAME, owner=cluster))

    def place_machine(self, name: str = NAME, **spec: Any) -> None:
        """Apply a worker of the cluster, as Cluster API has it."""
        self.apply(SECRET, objects.bootstrap())
        machine = self.apply(MACHINE, objects.machine(name, NAME))
        self.apply(OPENSTACK_MACHINE, objects.openstack_machine(name, NAME, owner=machine, **spec))

    def core_ready(self) -> None:
        """Set the conditions that Cluster API sets when all is up."""
        ready = {"status": {"conditions": [{"type": "Available", "status": "True", "reason": "Available"}]}}
        self.patch(CLUSTER, NAME, ready)
        if self.exists(MACHINE, NAME):
            self.patch(
                MACHINE, NAME, {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]}}
            )
