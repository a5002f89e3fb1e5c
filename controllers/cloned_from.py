"""The template that a machine was cloned from, by the annotations that Cluster API writes to its clones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from capo import names
from capo.engine.store import Index, Store
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_MACHINE, OPENSTACK_MACHINE_TEMPLATE

_TEMPLATE_KIND: Final = f"{OPENSTACK_MACHINE_TEMPLATE.kind}.{names.GROUP}"


def template_of(obj: Object, store: Store) -> Object | None:
    """Return the template of a machine; None if it has none, or it is gone."""
    name = _annotation(obj, names.CLONED_FROM_NAME_ANNOTATION)
    namespace = obj["metadata"]["namespace"]
    return store.get(OPENSTACK_MACHINE_TEMPLATE, namespace, name) if is_clone(obj, name) else None


def template_name(obj: Object) -> str:
    """Return the name of the OpenStackMachineTemplate of a machine, empty if it has none; pure."""
    name = _annotation(obj, names.CLONED_FROM_NAME_ANNOTATION)
    return name if is_clone(obj, name) else ""


def is_clone(obj: Object, template_name: str) -> bool:
    """Return whether a machine was cloned from the OpenStackMachineTemplate of this name; pure."""
    is_of_kind = _annotation(obj, names.CLONED_FROM_KIND_ANNOTATION) == _TEMPLATE_KIND
    return bool(template_name) and is_of_kind and _annotation(obj, names.CLONED_FROM_NAME_ANNOTATION) == template_name


def clones(template: Object, store: Store) -> list[Object]:
    """Return the OpenStackMachines that were cloned from a template."""
    metadata = template["metadata"]
    return store.find(_CLONES, (metadata["namespace"], metadata["name"]))


def _template(machine: Object) -> Iterable[tuple[str, str]]:
    name = template_name(machine)
    return [(machine["metadata"]["namespace"], name)] if name else []


_CLONES: Final = Index(OPENSTACK_MACHINE, _template)


def _annotation(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))
