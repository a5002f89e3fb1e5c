"""What an update may change, and which specs cause warnings; pure functions on JSON data, one module per kind.

Rules about one object alone are CEL rules and schema in the models, so that they hold without a webhook; this package
compares old with new. All changes that are not allowed are reported at once, field by field. Deletions are never
refused, and neither is an update that does not change spec and owner id, whatever the spec is: finalizers must be
removable.

Source: the Go provider's webhooks; where a verdict differs, ``docs/reference/admission.md`` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from api.validation import (
    credentials,
    machines,
    openstackcluster,
    openstackclustertemplate,
    owner,
    templates,
    warning,
    workloads,
)
from api.validation.difference import Fault
from capo.json_types import Json

__all__ = ["KINDS", "Fault", "faults_of_create", "faults_of_update", "warnings_of"]

DRY_RUN: Final = "topology.cluster.x-k8s.io/dry-run"
"""Annotation of the requests with which Cluster API asks what a template would become."""

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
    """Return what an object may not be created with; nothing if it is valid."""
    return owner.faults(kind, new, None) or [
        *credentials.faults(kind, new, None),
        *templates.faults(new, None),
        *workloads.faults(kind, new, None),
    ]


def faults_of_update(kind: str, old: Json, new: Json, *, is_dry_run: bool) -> list[Fault]:
    """Return everything that the update may not change; nothing if it is allowed.

    Args:
        kind: one of ``KINDS``.
        old: the present object.
        new: the object after the update, in the same version.
        is_dry_run: the request changes nothing.
    """
    if of_owner := owner.faults(kind, new, old):
        return of_owner
    if (old.get("spec") or {}) == (new.get("spec") or {}):
        return []
    annotations = (new.get("metadata") or {}).get("annotations") or {}
    if is_dry_run and kind in _EXEMPT and DRY_RUN in annotations:
        return []
    return [
        *KINDS[kind](old, new),
        *credentials.faults(kind, new, old),
        *templates.faults(new, old),
        *workloads.faults(kind, new, old),
    ]


def warnings_of(kind: str, obj: Json) -> list[str]:
    """Return which fields of the spec, and which annotations, have no effect or cannot work, one sentence for each."""
    return [*warning.spec_warnings(kind, obj.get("spec") or {}), *warning.annotation_warnings(obj)]
