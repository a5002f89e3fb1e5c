"""What all given management clusters know of owners; read as a whole or not at all. Source: ADR 0017, rules 1 to 3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from capo.json_types import Object
from capo.ledger import location_of
from capo.operations import owners
from capo.operations.access import Management
from capo.operations.errors import OperatorError
from capo.operations.owners import Owner


@dataclass(frozen=True)
class Witness:
    """A management cluster that was read.

    Args:
        uid: of its namespace ``kube-system``; a kubeconfig may lead elsewhere tomorrow.
        objects: how many owners it has.
    """

    name: str
    uid: str
    objects: int


@dataclass(frozen=True)
class Evidence:
    """What management clusters know.

    Args:
        owner_ids: every owner id in an annotation, also in one that was copied from another object.
        locations: the projects in which objects have recorded resources.
    """

    witnesses: Sequence[Witness]
    owners: Sequence[Owner]
    owner_ids: frozenset[str]
    locations: frozenset[str]

    @property
    def names(self) -> str:
        """The names of the management clusters."""
        return ", ".join(each.name for each in self.witnesses)


@dataclass
class _Read:
    """Objects by management cluster and uid: those of both passes."""

    objects: dict[tuple[str, str], tuple[Owner, Object]] = field(default_factory=dict)

    def add(self, management: Management) -> None:
        for owner, obj in owners.read(management):
            self.objects[management.uid, str(obj["metadata"].get("uid"))] = (owner, obj)


def distinct(managements: Sequence[Management]) -> list[Management]:
    """Return management clusters, each once: two kubeconfigs may lead to the same.

    Raises:
        OperatorError: there is none, or one cannot be identified.
    """
    if not managements:
        raise OperatorError("no management cluster: what no management cluster is asked about is no orphan")
    return list({each.uid: each for each in managements}.values())


def read(managements: Sequence[Management]) -> Evidence:
    """Return what management clusters know, of all namespaces.

    An object that ``clusterctl move`` moves during the reads may be missing in each cluster when it is read, but not
    when all are read twice.

    Raises:
        OperatorError: one of them, or one kind of objects, cannot be read.
    """
    found = _Read()
    for each in [*managements, *(managements if len(managements) > 1 else [])]:
        found.add(each)
    pairs = list(found.objects.values())
    locations = (location_of(obj.get("status")) for _, obj in pairs)
    return Evidence(
        [Witness(each.name, each.uid, sum(uid == each.uid for uid, _ in found.objects)) for each in managements],
        [owner for owner, _ in pairs],
        frozenset(owners.annotated_ids(obj for _, obj in pairs)),
        frozenset(str(each) for each in locations if each),
    )
