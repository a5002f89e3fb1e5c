"""The owner id, which identifies resources in the cloud: set with the object's creation, never changed."""

from __future__ import annotations

from api.validation.difference import Fault, shown
from capo import names
from capo.json_types import Json

FIELD = f"metadata.annotations[{names.OWNER_ID_ANNOTATION}]"


def faults(kind: str, new: Json, old: Json | None) -> list[Fault]:
    """Return what is wrong with the owner id of an object.

    ``clusterctl move`` and restores create objects with the id that they had. It may be removed and restored: the
    manager restores it from the stamps of the recorded resources.

    Args:
        old: the present object; None when it is created.
    """
    found, before = _owner_id(new), _owner_id(old or {})
    if found is None or found == before:
        return []
    if before is not None:
        text = f"cannot change from {shown(before)}: it names what was created"
        return [Fault(FIELD, f"Invalid value: {shown(found)}: {text}")]
    metadata = new.get("metadata") or {}
    place = {"kind": kind, "namespace": metadata.get("namespace") or "", "name": metadata.get("name") or ""}
    if names.owner_of(found, **place) is None:
        text = f"Invalid value: {shown(found)}: was created for another object; leave it out, the provider sets it"
        return [Fault(FIELD, text)]
    return []


def _owner_id(obj: Json) -> str | None:
    found = ((obj.get("metadata") or {}).get("annotations") or {}).get(names.OWNER_ID_ANNOTATION)
    return str(found) if found else None
