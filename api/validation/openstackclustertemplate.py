"""OpenStackClusterTemplate: the spec of its clusters never changes; their metadata may."""

from __future__ import annotations

from api.v1beta2 import OpenStackClusterSpec
from api.validation.difference import Fault, changes, faults_of, inside, normal
from api.validation.machines import NEW_TEMPLATE
from capo.json_types import Json


def faults(old: Json, new: Json) -> list[Fault]:
    """Return the forbidden changes of a template."""
    written = inside(old, "spec", "template", "spec"), inside(new, "spec", "template", "spec")
    before, after = normal(OpenStackClusterSpec, *written)
    found = changes(before, after, "spec.template.spec", written=written)
    return faults_of(found, lambda _path: NEW_TEMPLATE)
