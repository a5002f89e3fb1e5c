"""The plan file: what was found, with proofs, and what a reviewer approves. Source: ADR 0017, rule 5."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capo.json_types import Json
from capo.operations import files
from capo.operations.access import Management
from capo.operations.errors import OperatorError
from capo.operations.orphans.evidence import Evidence
from capo.operations.orphans.findings import DELETABLE, Orphan, groups
from capo.operations.orphans.usage import ResourceKey

VERSION: Final = 1
MAX_AGE: Final = datetime.timedelta(hours=24)
_SKEW: Final = datetime.timedelta(minutes=5)
_OWNER: Final = re.compile(r"[a-z2-7]{13}")
_HEAD: Final = """\
# Orphans that `capo orphans` found. As it is, this plan deletes nothing.
#
# Review each entry. Under `delete.owners` write the owner ids whose resources are to be deleted. A resource with
# `doubts` is deleted only if its id is under `delete.singly`, too, whatever owner it has. Then, within 24 hours and
# with the same management clusters:
#
#   capo orphans --delete FILE --kubeconfig ...
#
# Each resource is read and proven again right before its deletion.
"""


@dataclass(frozen=True)
class Planned:
    """One resource of a plan.

    Args:
        mark: the evidence of its owner when the plan was written.
    """

    key: ResourceKey
    project: str
    owner: str
    mark: str


@dataclass(frozen=True)
class Plan:
    """A plan as its reviewer left it.

    Args:
        witnesses: uids of the management clusters that were read, with their names.
        owners: approved owner ids.
        singly: ids of approved resources.
    """

    witnesses: Mapping[str, str]
    resources: Sequence[Planned]
    owners: frozenset[str]
    singly: frozenset[str]

    @property
    def approved(self) -> list[Planned]:
        """The resources whose deletion is approved, by their owner or singly."""
        return [each for each in self.resources if each.owner in self.owners or each.key[1] in self.singly]

    def expect(self, managements: Sequence[Management]) -> None:
        """Require that all management clusters of the plan are given.

        Raises:
            OperatorError: one is missing; what it knows now would be taken for orphans.
        """
        given = {each.uid for each in managements}
        if missing := [name for uid, name in self.witnesses.items() if uid not in given]:
            raise OperatorError(
                f"the plan was written with management clusters that are not given: {', '.join(missing)}"
            )


def document(orphans: Sequence[Orphan], evidence: Evidence, *, now: datetime.datetime) -> Json:
    """Return a plan that approves nothing."""
    together = Together(orphans)
    return {
        "version": VERSION,
        "created": now.isoformat(timespec="seconds"),
        "managementClusters": [
            {"name": each.name, "uid": each.uid, "objects": each.objects} for each in evidence.witnesses
        ],
        "delete": {"owners": [], "singly": []},
        "orphans": [_entry(each, together.of(each)) for each in orphans],
    }


class Together:
    """What is deleted with an orphan when its owner is approved; for one without an owner, with its cluster."""

    def __init__(self, orphans: Sequence[Orphan]) -> None:
        self._keys: dict[tuple[str, str], set[ResourceKey]] = {}
        for each in orphans:
            for group in groups(each.attribution):
                self._keys.setdefault((each.resource.location, group), set()).add(each.key)

    def of(self, orphan: Orphan) -> Collection[ResourceKey]:
        """Return the keys of these resources."""
        found = (self._keys[orphan.resource.location, group] for group in groups(orphan.attribution))
        return frozenset[ResourceKey]().union(*found)


def _entry(orphan: Orphan, deleted: Collection[ResourceKey]) -> Json:
    resource, doubts = orphan.resource, orphan.left_doubts(deleted)
    return {
        "kind": resource.kind,
        "id": resource.id,
        "name": resource.name,
        "project": resource.location,
        "owner": orphan.attribution.owner_id,
        "cluster": str(orphan.attribution.cluster or ""),
        "role": orphan.attribution.role,
        "state": resource.state,
        "created": resource.created,
        "size": str(resource.size),
        "mark": orphan.mark,
        "proof": orphan.proof,
        **({"doubts": doubts} if doubts else {}),
        **({"refused": orphan.refusal} if orphan.refusal else {}),
    }


def write(path: Path, plan: Json) -> None:
    """Write a plan to a new file.

    Raises:
        OperatorError: the file exists, or cannot be written.
    """
    files.write_new(path, _HEAD + files.to_yaml(plan))


def read(path: Path, *, now: datetime.datetime) -> Plan:
    """Return a reviewed plan.

    Raises:
        OperatorError: it cannot be read, is too old, approves nothing, or approves what it does not have.
    """
    found = files.document(path)
    try:
        plan, created = _parsed(found), datetime.datetime.fromisoformat(found["created"])
        age = now - created
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OperatorError(f"{path} is no plan of this version: {error!r}") from error
    if age > MAX_AGE or age < -_SKEW:
        raise OperatorError(f"{path} was written at {created.isoformat()}, which is not within the last 24 hours")
    _check(plan, path)
    return plan


def _parsed(found: Any) -> Plan:
    if found["version"] != VERSION:
        raise ValueError("another version")
    owners, singly = found["delete"]["owners"], found["delete"]["singly"]
    if not isinstance(owners, list) or not isinstance(singly, list):
        raise TypeError("delete.owners and delete.singly are lists")
    return Plan(
        {str(each["uid"]): str(each["name"]) for each in found["managementClusters"]},
        [_planned(each) for each in found["orphans"]],
        frozenset(map(str, owners)),
        frozenset(map(str, singly)),
    )


def _planned(entry: Any) -> Planned:
    kind, id_, owner = str(entry["kind"]), str(entry["id"]), str(entry["owner"])
    if kind not in DELETABLE or not files.ID.fullmatch(id_) or (owner and not _OWNER.fullmatch(owner)):
        raise ValueError(f"{kind[:40]} {id_[:40]} of owner {owner[:40]}")
    return Planned((kind, id_), str(entry["project"]), owner, str(entry["mark"]))


def _check(plan: Plan, path: Path) -> None:
    if not plan.owners and not plan.singly:
        raise OperatorError(f"{path} approves nothing: write owner ids under delete.owners after a review")
    unknown = [*(plan.owners - {each.owner for each in plan.resources if each.owner})]
    unknown += [*(plan.singly - {each.key[1] for each in plan.resources})]
    if unknown:
        raise OperatorError(f"{path} approves what it does not have: {', '.join(sorted(unknown))}")
    if not plan.witnesses:
        raise OperatorError(f"{path} names no management cluster")
