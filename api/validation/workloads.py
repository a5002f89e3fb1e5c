"""The name by which workloads of a cluster know it: with a dot it is that of a cluster of the namespace before the dot.

Not checked are templates: the clusters that are created from them may be in another namespace. A rule of the schema
cannot read the namespace of an object.
"""

from __future__ import annotations

from typing import Final

from api.validation.difference import Fault, inside, shown
from capo import names
from capo.json_types import Json

_PLACE: Final = ("spec", "workloadLeftovers", "clusterName")


def faults(kind: str, new: Json, old: Json | None) -> list[Fault]:
    """Return what is wrong with a new name; nothing for one that was stored before.

    Args:
        old: the present object; None when it is created.
    """
    name, namespace = inside(new, *_PLACE), inside(new, "metadata", "namespace")
    if kind != "OpenStackCluster" or not isinstance(name, str) or not isinstance(namespace, str):
        return []
    if names.may_name_workloads(name, namespace) or (old is not None and inside(old, *_PLACE) == name):
        return []
    advice = f"a name with a dot must begin with the namespace and a dot, here `{namespace}.`"
    return [Fault(".".join(_PLACE), f"Invalid value: {shown(name)}: {advice}")]
