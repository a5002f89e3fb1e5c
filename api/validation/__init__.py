"""What an update may change, and what is worth a warning; pure functions on JSON data, one module per kind.

Rules that look at one object alone are CEL rules and schema in the models, so that they hold without a webhook; here is
what compares old with new. Everything that may not change is told at once, field by field. Deletions are never refused,
and an update that leaves spec and owner id alone is never refused, whatever the spec says: finalizers must come off.

Source: the Go provider's webhooks; where a verdict differs, ``docs/reference/admission.md`` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from capo.api.validation import credentials, machines, openstackcluster, openstackclustertemplate, owner, warning
from capo.api.validation.difference import Fault, Json

__all__ = ["KINDS", "Fault", "faults_of_create", "faults_of_update", "warnings_of"]

DRY_RUN: Final = "topology.cluster.x-k8s.io/dry-run"
"""Annotation of the requests by which Cluster API asks what a template would become."""

Compare = Callable[[Json, Json], list[Fault]]
KINDS: Final[dict[str, Compare]] = {
    "OpenStackCluster": openstackcluster.faults,
    "OpenStackClusterTemplate": openstackclustertemplate.faults,
    "OpenStackMachine": machines.faults_of_machine,
    "OpenStackMachineTemplate": machines.faults_of_template,
    "OpenStackServer": machines.faults_of_server,
}
_EXEMPT: Final = frozenset({"OpenStackClusterTemplate", "OpenStackMachineTemplate", "OpenStackServer"})


def faults_of_create(kind: str, new: Json) -> list[Fault]:
    """Return what an object may not be created with; nothing when it is fine."""
    return owner.faults(kind, new, None) or credentials.faults(kind, new, None)


def faults_of_update(kind: str, old: Json, new: Json, *, is_dry_run: bool) -> list[Fault]:
    """Return everything that the update may not change; nothing when it is fine.

    Args:
        kind: one of ``KINDS``.
        old: the object as it is.
        new: the object as it would be, in the same version.
        is_dry_run: the request changes nothing.
    """
    if of_owner := owner.faults(kind, new, old):
        return of_owner
    if (old.get("spec") or {}) == (new.get("spec") or {}):
        return []
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    if is_dry_run and kind in _EXEMPT and DRY_RUN in annotations:
        return []
    return [*KINDS[kind](old, new), *credentials.faults(kind, new, old)]


def warnings_of(kind: str, new: Json, *, old: Json | None = None) -> list[str]:
    """Return what of the spec has no effect or cannot work, one sentence for each field.

    Args:
        old: the object as it is; None when it is made.
    """
    edited = warning.of_edit(kind, old.get("spec"), new.get("spec")) if old else []
    return [*warning.of(kind, new.get("spec") or {}), *edited]
