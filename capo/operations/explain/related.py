"""The objects around one object: from its Cluster to its OpenStackServer; those that should exist and do not, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from capo import names
from capo.contract import references
from capo.json_types import Json, Object
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Kind
from capo.operations.access import Management

KINDS: Final = (CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER)
"""Kinds that can be explained."""
SHORT: Final = {"osc": OPENSTACK_CLUSTER, "osm": OPENSTACK_MACHINE, "oss": OPENSTACK_SERVER}
READY: Final = ("Ready", "Available")


@dataclass(frozen=True)
class Part:
    """An object of the story.

    Args:
        obj: None if it does not exist.
        named_by: the object that names it, and where, if it must exist.
    """

    kind: Kind
    namespace: str
    name: str
    obj: Json | None = None
    named_by: str = ""

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.name}"

    @property
    def is_missing(self) -> bool:
        """Whether it does not exist although an object names it."""
        return self.obj is None and bool(self.named_by)

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was requested."""
        return bool(self.metadata.get("deletionTimestamp"))

    @property
    def metadata(self) -> Json:
        """Its metadata, empty if it does not exist."""
        return dict((self.obj or {}).get("metadata") or {})

    @property
    def status(self) -> Json:
        """Its status, empty if it has none."""
        return dict((self.obj or {}).get("status") or {})

    @property
    def conditions(self) -> list[Json]:
        """Its conditions."""
        return list(self.status.get("conditions") or ())

    @property
    def is_ready(self) -> bool:
        """Whether its summary is True; Cluster API up to 1.10 calls it Ready, later ones Available on a Cluster."""
        summary = [each for each in self.conditions if each.get("type") in READY]
        is_true = bool(summary) and all(each.get("status") == "True" for each in summary)
        return is_true or (self.kind == OPENSTACK_SERVER and bool(self.status.get("ready")))


@dataclass
class Related:
    """An object with those around it.

    Args:
        chain: the object that was asked for and what it depends on, the one nearest to the cloud first.
        around: others: the Cluster and the OpenStackCluster of a machine.
        machines: of a Cluster: those that are not ready, each as a chain.
        count: of a Cluster: how many Machines it has.
    """

    subject: Part
    chain: list[Part]
    around: list[Part] = field(default_factory=list)
    machines: list[list[Part]] = field(default_factory=list)
    count: int = 0

    @property
    def parts(self) -> list[Part]:
        """All objects, each once."""
        found = [
            *self.around,
            *reversed(self.chain),
            *(each for machine in self.machines for each in reversed(machine)),
        ]
        return list({(each.kind, each.name): each for each in found}.values())


def find(management: Management, kind: Kind, namespace: str, name: str) -> Related:
    """Return an object with those around it.

    Raises:
        OperatorError: it does not exist, or the user may not read it or one of the others.
    """
    return _Finder(management, namespace).find(kind, management.get(kind, namespace, name))


class _Finder:
    """Reads the objects around one object, in its namespace."""

    def __init__(self, management: Management, namespace: str) -> None:
        self._management = management
        self._namespace = namespace

    def find(self, kind: Kind, obj: Json) -> Related:
        """Return the object with those around it."""
        subject = self._part(kind, obj)
        if kind in (CLUSTER, OPENSTACK_CLUSTER):
            return self._of_cluster(subject)
        chain = self._chain(subject)
        return Related(subject, chain, self._around(chain))

    def _of_cluster(self, subject: Part) -> Related:
        if subject.kind == CLUSTER:
            cluster: Part | None = subject
            infrastructure = self._infrastructure(subject, OPENSTACK_CLUSTER)
        else:
            infrastructure, cluster = subject, self._owner(subject, CLUSTER)
        chain = [each for each in (infrastructure, cluster) if each]
        name = cluster.name if cluster else references.cluster_name(subject.obj or {"metadata": {}}) or ""
        machines = self._list(MACHINE, name) if name else []
        troubled = [each for each in machines if not each.is_ready or each.is_deleting]
        return Related(subject, chain, [], [self._chain(each) for each in troubled], len(machines))

    def _chain(self, part: Part) -> list[Part]:
        """Return what a machine consists of, from the OpenStackServer to the Machine."""
        machine = server = None
        if part.kind == OPENSTACK_SERVER:
            server, infrastructure = part, self._owner(part, OPENSTACK_MACHINE)
        elif part.kind == MACHINE:
            machine, infrastructure = part, self._infrastructure(part, OPENSTACK_MACHINE)
        else:
            infrastructure = part
        if infrastructure and infrastructure.obj:
            server = server or self._read(OPENSTACK_SERVER, infrastructure.name)
            machine = machine or self._owner(infrastructure, MACHINE)
        return [each for each in (server, infrastructure, machine) if each and (each.obj or each.named_by)]

    def _around(self, chain: list[Part]) -> list[Part]:
        name = next(filter(None, map(_cluster_of, chain)), None)
        if not name:
            owner = next(filter(None, (self._owner(each, OPENSTACK_CLUSTER) for each in chain if each.obj)), None)
            return [owner] if owner else []
        cluster = self._read(CLUSTER, name, named_by=f"{chain[-1]} in its label {names.CLUSTER_NAME_LABEL}")
        infrastructure = self._infrastructure(cluster, OPENSTACK_CLUSTER) if cluster.obj else None
        return [each for each in (cluster, infrastructure) if each]

    def _infrastructure(self, part: Part, kind: Kind) -> Part | None:
        name = references.infrastructure_name(part.obj or {"metadata": {}}, kind.kind)
        return self._read(kind, name, named_by=f"{part} in spec.infrastructureRef") if name else None

    def _owner(self, part: Part, kind: Kind) -> Part | None:
        found = references.owner(part.obj or {"metadata": {}}, group=kind.group, kind=kind.kind)
        return self._read(kind, found.name, named_by=f"{part} in metadata.ownerReferences") if found else None

    def _read(self, kind: Kind, name: str, *, named_by: str = "") -> Part:
        found = self._management.find(kind, self._namespace, name)
        return Part(kind, self._namespace, name, found, named_by)

    def _list(self, kind: Kind, cluster: str) -> list[Part]:
        selector = f"{names.CLUSTER_NAME_LABEL}={cluster}"
        return [
            self._part(kind, each) for each in self._management.list(kind, self._namespace, label_selector=selector)
        ]

    def _part(self, kind: Kind, obj: Json) -> Part:
        return Part(kind, self._namespace, obj["metadata"]["name"], obj)


def _cluster_of(part: Part) -> str | None:
    return references.cluster_name(part.obj) if part.obj else None


def identity_refs(related: Related) -> Iterator[Object]:
    """Yield the objects that name credentials, those nearest to the cloud first."""
    every: list[Any] = [*related.chain, *related.around]
    yield from (each.obj for each in every if each.obj and (each.obj.get("spec") or {}).get("identityRef"))
