"""Owner references, and references from Cluster API's objects to ours; pure.

References are compared by group, kind and name: their version is the one that their writer used (C-56). Source:
docs/reference/contract.md, C-44 to C-59.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from capo import names
from capo.json_types import Object

CORE_GROUP: Final = "cluster.x-k8s.io"


class Reference(NamedTuple):
    """A referenced object, in the namespace of the referring one."""

    group: str
    kind: str
    name: str


def owner(obj: Object, *, group: str, kind: str) -> Reference | None:
    """Return the owner of a group and kind in any version, None if there is none."""
    found = (r for r in owners(obj) if r.group == group and r.kind == kind)
    return next(found, None)


def owners(obj: Object) -> list[Reference]:
    """Return all owners of an object."""
    references = obj["metadata"].get("ownerReferences") or ()
    return [Reference(_group(r["apiVersion"]), r["kind"], r["name"]) for r in references]


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def owner_cluster_name(obj: Object) -> str | None:
    """Return the name of the owning Cluster; None until Cluster API has written the reference (1.4, step 2)."""
    found = owner(obj, group=CORE_GROUP, kind="Cluster")
    return found.name if found else None


def owner_machine_name(obj: Object) -> str | None:
    """Return the name of the owning Machine, None if there is none.

    It may differ from the object's own name (C-27).
    """
    found = owner(obj, group=CORE_GROUP, kind="Machine")
    return found.name if found else None


def is_owned_by(obj: Object, candidate: Object) -> bool:
    """Return whether an owner reference has this object's uid: another object may have the same name."""
    references = obj["metadata"].get("ownerReferences") or ()
    return any(r.get("uid") == candidate["metadata"]["uid"] for r in references)


def cluster_name(obj: Object) -> str | None:
    """Return the name of the object's Cluster from its label (C-59), None if there is none."""
    return (obj["metadata"].get("labels") or {}).get(names.CLUSTER_NAME_LABEL) or None


def infrastructure_name(core_object: Object, kind: str) -> str | None:
    """Return the name of our object that a Cluster or a Machine refers to; None if the reference is to another kind.

    A reference of the core API v1beta1 has an ``apiVersion`` where that of v1beta2 has an ``apiGroup`` (C-56).
    """
    ref = core_object.get("spec", {}).get("infrastructureRef") or {}
    return ref.get("name") if group_of(ref) == names.GROUP and ref.get("kind") == kind else None


def group_of(ref: Mapping[str, Any]) -> str:
    """Return the group of a reference of any version of the core API, empty if it has none (C-56)."""
    return ref.get("apiGroup") or _group(ref.get("apiVersion") or "")


def template_name(core_object: Object, kind: str) -> str | None:
    """Return the name of our template that a MachineDeployment, MachineSet or control plane refers to; None: of none.

    The reference of a control plane of the core API v1beta1 is not in a ``spec`` of its machine template.
    """
    spec = core_object.get("spec") or {}
    machine = spec.get("template") or spec.get("machineTemplate") or {}
    ref = (machine.get("spec") or {}).get("infrastructureRef") or machine.get("infrastructureRef") or {}
    return infrastructure_name({"spec": {"infrastructureRef": ref}}, kind)


def controller_reference(candidate: Object) -> dict[str, Any]:
    """Return the owner reference from our object to its controller (C-44, C-46)."""
    return {
        "apiVersion": candidate["apiVersion"],
        "kind": candidate["kind"],
        "name": candidate["metadata"]["name"],
        "uid": candidate["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
