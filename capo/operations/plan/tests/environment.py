"""A management cluster in memory and a simulated cloud, of which plans are made, and the manager that then writes."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self, cast
from unittest import mock
from urllib.parse import urlsplit

import requests
import yaml

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, SECRET
from capo.openstack.connections import Limits
from capo.openstack.transport import HttpSession, HttpSessions
from capo.operations.access import CloudAccess, Management
from capo.operations.plan import changes, writes
from capo.operations.plan.planning import Outcome, Planner
from capo.settings import Settings
from environments import objects
from environments.provider import NAME, PATIENCE_S, ProviderEnvironment

_VERSION: Final = re.compile(r"^/v[0-9.]+(/[0-9a-f]{32}(?=/))?")
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHOSEN: Final = re.compile(
    rf"{_ID.pattern}|(?<=:ip-)[0-9a-f]{{32}}|(?<=capo:)[a-z2-7]{{13}}|[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+"
)
"""Ids of resources, of claims in roles, and of owners, and addresses."""
_SERVICE: Final = re.compile(r"^/(compute|networking|network|volume|load-balancer)(?=/)")
_CHANGE: Final = writes.change
LONG_S: Final = 1500.0


@dataclass
class Requests:
    """Writes to a cloud: method, path and body of each."""

    sent: list[tuple[str, str, Any]] = field(default_factory=list)

    def counted(self, known: Collection[str]) -> Counter[str]:
        """Return the writes.

        Args:
            known: ids and addresses with their values; the cloud or the provider chooses the others.
        """
        return Counter(
            _unchosen(f"{method} {_VERSION.sub('', path)} {json.dumps(_ordered(body), sort_keys=True)}", known)
            for method, path, body in self.sent
        )


def _ordered(value: Any) -> Any:
    """Return a body whose lists are in one order: what the provider sends has none."""
    if isinstance(value, Mapping):
        return {name: _ordered(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return sorted((_ordered(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def _unchosen(text: str, known: Collection[str]) -> str:
    return _CHOSEN.sub(lambda found: found[0] if found[0] in known else "CHOSEN", text)


class PlannedEnvironment(ProviderEnvironment):
    """Plans, and what the manager then really sends."""

    def __init__(self) -> None:
        self.recorded, self.planned = Requests(), Requests()
        self.known: set[str] = set()
        """Ids and addresses of the cloud and of all objects when the plan was made."""
        super().__init__()

    def start(self) -> None:
        """Start the manager; its writes are recorded."""
        super().start()
        self.clouds._http = HttpSessions(Limits(PATIENCE_S, PATIENCE_S, PATIENCE_S), kind=_recording(self.recorded))

    def __enter__(self) -> Self:
        self.kube.connection = SimpleNamespace(server="https://management", namespace="default")  # type: ignore[attr-defined]
        self.apply(SECRET, objects.bootstrap())
        return self

    def planner(self) -> Planner:
        """Return a planner that reads this environment."""
        management = Management(cast(Any, self.kube), "management", CloudAccess(Settings()))
        return Planner(management, "default")

    def plan(self, *documents: Json, path: Path | None = None) -> Outcome:
        """Return the plan of the cluster, or that of documents in a file."""
        self.planned.sent.clear()
        present = json.dumps([self.inventory(), list(self.kube.objects.values()), documents], default=str)
        self.known = set(_CHOSEN.findall(present))
        with mock.patch.object(writes, "change", self._change):
            outcome = self._planned(documents, path)
        self.known -= outcome.assigned.keys()
        return outcome

    def _planned(self, documents: Sequence[Json], path: Path | None) -> Outcome:
        if not documents:
            return self.planner().of_cluster(NAME)
        assert path is not None
        path.write_text(yaml.safe_dump_all(documents))
        return self.planner().of_files([str(path)])

    def _change(self, overlay: Any, call: writes.Call, before: Any, answer: Any) -> Any:
        self.planned.sent.append((call.method, call.path, copy.deepcopy(dict(call.body))))
        return _CHANGE(overlay, call, before, answer)

    def converge(self) -> None:
        """Run the manager until nothing is left to write; count its requests from now."""
        self.cloud.counter.reset()
        self.recorded.sent.clear()
        self.kube.writes.clear()
        self.wake_all()
        self.play(for_s=LONG_S)

    def expect_as_planned(self) -> None:
        """Run the manager; the cloud accepts the very requests of the last plan, of the same resources."""
        self.converge()
        wanted, found = self.planned.counted(self.known), self.recorded.counted(self.known)
        lines = [
            *(f"not sent: {each}" for each in wanted - found),
            *(f"not planned: {each}" for each in found - wanted),
        ]
        assert not lines, "\n".join(sorted(lines))

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

    def machines(self, wanted: Iterable[str], *, zone: str = "", **spec: Any) -> None:
        """Create machines, as Cluster API does.

        Args:
            zone: failure domain that Cluster API chooses; empty: none.
        """
        for name in wanted:
            is_control_plane = "cp" in name
            chosen = {"failureDomain": zone} if zone else {}
            machine = self.apply(MACHINE, objects.machine(name, NAME, is_control_plane=is_control_plane, **chosen))
            infra = objects.openstack_machine(name, NAME, owner=machine, is_control_plane=is_control_plane, **spec)
            self.apply(OPENSTACK_MACHINE, infra)


def _recording(into: Requests) -> type[HttpSession]:
    """Return a kind of session that records the writes that the cloud accepted."""

    class Recording(HttpSession):
        def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
            response = super().request(method, url, *args, **kwargs)
            path = urlsplit(str(url)).path
            if method not in ("GET", "HEAD") and "/auth/" not in path and response.status_code < 300:
                into.sent.append((method, _SERVICE.sub("", path), json.loads(kwargs.get("data") or "{}")))
            return response

    return Recording


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
