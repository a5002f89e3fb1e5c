"""JSON patches (RFC 6902) of metadata that other controllers write, too: each change tests the value that it replaces.

They need no resourceVersion, so a label or an owner reference that another controller wrote concurrently is no
conflict. Results of the whole object, such as status and our own finalizer, are written by a merge patch with
resourceVersion.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import jsonpatch

from capo.json_types import Json


def without_finalizer(obj: Mapping[str, Any], finalizer: str) -> list[Json]:
    """Return the patch that removes a finalizer from an object; empty if it is absent."""
    present = obj["metadata"].get("finalizers") or []
    left = [each for each in present if each != finalizer]
    old = {"metadata": {"uid": obj["metadata"]["uid"], "finalizers": list(present)}}
    return precise(old, {"metadata": {**old["metadata"], "finalizers": left}})


def precise(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Json]:
    """Return the patch that changes the named fields of an object from old to new; empty if nothing changes.

    It fails if the object was recreated, or if a value that it replaces or removes differs from old.
    """
    document: Any = copy.deepcopy(dict(old))
    found: list[Json] = []
    for operation in jsonpatch.make_patch(old, new):
        replaced = {"replace": "path", "remove": "path", "move": "from"}.get(operation["op"])
        if replaced:
            pointer = operation[replaced]
            found.append({"op": "test", "path": pointer, "value": jsonpatch.JsonPointer(pointer).resolve(document)})
        found.append(operation)
        document = jsonpatch.apply_patch(document, [operation])
    return [{"op": "test", "path": "/metadata/uid", "value": old["metadata"]["uid"]}, *found] if found else []
