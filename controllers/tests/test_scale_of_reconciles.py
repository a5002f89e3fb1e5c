"""What the life of a cluster or machine costs does not grow with others in its project and in its cluster."""

from __future__ import annotations

import collections
import json
import re
import uuid
from collections.abc import Callable
from typing import Any, Final

import pytest

from capo.engine.worker import Result
from capo.json_types import Json
from capo.kube.kinds import (
    CLUSTER,
    MACHINE,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_SERVER,
    SECRET,
    Key,
)
from capo.openstack.kinds import KINDS
from controllers.openstackcluster.controller import ClusterController
from controllers.openstackmachine.controller import MachineController
from controllers.openstackserver.controller import ServerController
from environments import objects, operations
from environments.in_memory import NAMESPACE, InMemoryEnvironment

FEW: Final = 10
MANY: Final = 100
GROWTH: Final = 1.02
"""Requests differ by a few headers, and a map of indices by a few collisions."""
PHASES: Final = ("creation", "resync", "deletion")
Costs = collections.Counter[tuple[str, str]]
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|capo:[a-z0-9]{13}\b|\bseed\b")


class Counted:
    """A reconciler that counts its instructions while a phase has a name."""

    def __init__(self, reconciler: Any, project: Project) -> None:
        self._reconciler = reconciler
        self._project = project

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reconciler, name)

    def reconcile(self, key: Key) -> Result:
        results: list[Result] = []
        if not self._project.phase:
            return self._reconciler.reconcile(key)  # type: ignore[no-any-return]
        spent = operations.count(lambda: results.append(self._reconciler.reconcile(key)))
        self._project.costs[self._project.phase, key.kind.kind] += spent
        return results[0]


class Project(InMemoryEnvironment):
    """A project in which one cluster or machine is copied so many times before another one is created and deleted.

    Objects and resources of the copies are stored and listed like others; they are not reconciled.
    """

    def __init__(self) -> None:
        super().__init__(ClusterController, MachineController, ServerController)
        self.phase = ""
        self.costs: Costs = collections.Counter()
        self.apply_secret()
        self.apply(SECRET, objects.bootstrap())

    def start(self) -> None:
        """Start the manager with counted reconcilers."""
        super().start()
        self.controllers = [Counted(each, self) for each in self.controllers]

    def create(self, name: str) -> None:
        """Create a cluster with a load balancer, a bastion, and one machine."""
        owner = self.apply(CLUSTER, objects.cluster(name))
        spec = {
            "managedSecurityGroups": {},
            "apiServer": {"managedLoadBalancer": {"enabled": True}},
            "bastion": {"enabled": True, "spec": objects.MACHINE_SPEC},
        }
        self.apply(OPENSTACK_CLUSTER, objects.openstack_cluster(name, owner=owner, **spec))
        self.settle(for_s=60.0)
        self.patch(CLUSTER, name, {"status": {"initialization": {"infrastructureProvisioned": True}}})
        self.join(f"{name}-m", name, is_control_plane=True)
        assert self.condition(OPENSTACK_CLUSTER, name, "Ready")["status"] == "True"

    def join(self, name: str, cluster: str, *, is_control_plane: bool = False) -> None:
        """Create a machine of a cluster."""
        owner = self.apply(MACHINE, objects.machine(name, cluster, is_control_plane=is_control_plane))
        made = objects.openstack_machine(name, cluster, owner=owner, is_control_plane=is_control_plane)
        self.apply(OPENSTACK_MACHINE, made)
        self.settle(for_s=60.0)
        assert self.condition(OPENSTACK_MACHINE, name, "Ready")["status"] == "True"

    def resync(self, cluster: str, machine: str) -> None:
        """Reconcile a cluster, a machine and its server once more."""
        for kind, each in ((OPENSTACK_CLUSTER, cluster), (OPENSTACK_MACHINE, machine), (OPENSTACK_SERVER, machine)):
            self._wake(Key(kind, NAMESPACE, each))
        self.settle(for_s=5.0)

    def leave(self, machine: str) -> None:
        """Delete a machine."""
        for kind in (OPENSTACK_MACHINE, MACHINE):
            self.delete(kind, machine)
            self.settle(for_s=60.0)
        assert not self.exists(OPENSTACK_MACHINE, machine)

    def live(self, name: str, cluster: str = "") -> None:
        """Create a cluster with a machine, or a machine of a cluster; reconcile them once more; delete them."""
        self._begin("creation", name)
        machine = name if cluster else f"{name}-m"
        if cluster:
            self.join(name, cluster, is_control_plane=True)
        else:
            self.create(name)
        self._begin("resync", name)
        self.resync(cluster or name, machine)
        self._begin("deletion", name)
        self.leave(machine)
        if not cluster:
            self.delete(OPENSTACK_CLUSTER, name)
            self.settle(for_s=60.0)
            assert not self.exists(OPENSTACK_CLUSTER, name)

    def _begin(self, phase: str, name: str) -> None:
        self.phase = phase if name == "measured" else ""

    def copy(self, given: dict[str, dict[str, Json]], copies: int) -> None:
        """Copy all objects and resources that were not given, with other ids and names."""
        known = {id_ for items in given.values() for id_ in items}
        tables = {place: table for place, table in self.cloud._tables.items() if place[0] != "identity"}
        made = {
            place: {id_: each for id_, each in table.items() if id_ not in known} for place, table in tables.items()
        }
        own = {id_ for items in made.values() for id_ in items}
        objs = [(key, obj) for key, obj in self.kube.objects.items() if key.name.startswith("seed")]
        resources = json.dumps([[*place, items] for place, items in made.items()])
        stored = json.dumps([obj for _, obj in objs])
        uids = {obj["metadata"]["uid"] for _, obj in objs}

        def copied(text: str, number: int) -> Any:
            def other(found: re.Match[str]) -> str:
                if found[0] == "seed":
                    return f"c{number}"
                if found[0].startswith("capo:"):
                    return f"capo:{uuid.uuid5(uuid.NAMESPACE_URL, f'{number} {found[0]}').hex[:13]}"
                return (
                    str(uuid.uuid5(uuid.NAMESPACE_URL, f"{number} {found[0]}")) if found[0] in own | uids else found[0]
                )

            return json.loads(_ID.sub(other, text))

        for number in range(copies):
            for service, kind, items in copied(resources, number):
                tables[service, kind].update(items)
            for (key, _), obj in zip(objs, copied(stored, number), strict=True):
                self.kube.objects[Key(key.kind, key.namespace, obj["metadata"]["name"])] = obj
        self._sync()
        self._due.clear()
        for kind in KINDS:
            self.clouds.pollers[0].demand(kind, Key(OPENSTACK_CLUSTER, NAMESPACE, "seed"))
        self.settle(for_s=5.0)


def among_clusters(copies: int) -> Costs:
    """Return what a cluster with a machine costs among so many others."""
    with Project() as project:
        given = project.inventory()
        project.create("seed")
        project.copy(given, copies)
        project.live("first")  # which builds the indices
        project.settle(for_s=60.0)
        project.live("measured")
        return project.costs


def among_machines(copies: int) -> Costs:
    """Return what a control plane machine costs in a cluster with so many workers."""
    with Project() as project:
        project.create("home")
        given = project.inventory()
        project.join("seed", "home")
        project.copy(given, copies)
        project.live("first", "home")
        project.settle(for_s=60.0)
        project.live("measured", "home")
        return project.costs


@pytest.mark.parametrize("cost", [among_clusters, among_machines])
def test_a_life_costs_as_much_among_100_others_as_among_10(cost: Callable[[int], Costs]) -> None:
    few, many = cost(FEW), cost(MANY)

    assert few.keys() >= {(phase, OPENSTACK_MACHINE.kind) for phase in PHASES}
    grown = {place: (few[place], many[place]) for place in few if many[place] > GROWTH * few[place]}
    assert not grown, grown
