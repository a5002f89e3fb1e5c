"""OpenStackClusterTemplate: the spec of its clusters never changes; their metadata may."""

from __future__ import annotations

from capo.api.v1beta2 import OpenStackClusterSpec
from capo.api.validation.difference import Fault, Json, changes, inside, normal
from capo.api.validation.machines import NEW_TEMPLATE


def faults(old: Json, new: Json) -> list[Fault]:
    """Return what may not change of a template."""
    before, after = normal(OpenStackClusterSpec, *(inside(obj, "spec", "template", "spec") for obj in (old, new)))
    return [change.fault(NEW_TEMPLATE) for change in changes(before, after, "spec.template.spec")]
