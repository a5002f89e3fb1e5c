"""Patches that share unchanged parts with the old object; neither argument is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import jsonpatch

from capo.json_types import Json
from e2e.simulation import refusals

MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
JSON: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"


def parse(body: bytes) -> Any:
    """Return the JSON of a request.

    Raises:
        Refusal: it is no JSON.
    """
    try:
        return json.loads(body)
    except ValueError as error:
        raise refusals.bad_request(f"error decoding patch: {error}") from None


def mapping(value: Any) -> Json:
    """Return a value that must be an object.

    Raises:
        Refusal: it is something else.
    """
    if not isinstance(value, dict):
        raise refusals.bad_request("error decoding patch: no JSON object")
    return value


def change(content_type: str, body: bytes) -> Callable[[Json], Json]:
    """Return the function that applies a patch to an object.

    Raises:
        Refusal: the content type is unknown, or the body is no such patch.
    """
    match content_type.partition(";")[0]:
        case "application/merge-patch+json":
            patch = mapping(parse(body))
            return lambda old: mapping(merged(old, patch))
        case "application/apply-patch+yaml":
            wanted = mapping(parse(body))
            return lambda old: applied(old, wanted)
        case "application/json-patch+json":
            operations = parse(body)
            return lambda old: _json_patched(old, operations)
    raise refusals.unsupported_media_type((JSON, MERGE, APPLY))


def merged(old: Any, patch: Any) -> Any:
    """Return old with a merge patch (RFC 7386), old itself when that changes nothing."""
    if not isinstance(patch, dict):
        return old if old == patch and type(old) is type(patch) else patch
    if not isinstance(old, dict):
        return merged({}, patch) or {}
    new: Json | None = None
    for name, value in patch.items():
        if value is None:
            if name in old:
                new = dict(old) if new is None else new
                del new[name]
            continue
        present = old.get(name)
        result = merged(present, value)
        if result is not present or name not in old:
            new = dict(old) if new is None else new
            new[name] = result
    return old if new is None else new


def applied(old: Json, wanted: Mapping[str, Any]) -> Json:
    """Return old with a server-side apply, approximated: fields of an earlier apply are not removed."""
    metadata = dict(wanted.get("metadata") or {})
    known = old["metadata"]
    if "finalizers" in metadata:
        present = known.get("finalizers") or []
        metadata["finalizers"] = [*present, *(one for one in metadata["finalizers"] if one not in present)]
    if "ownerReferences" in metadata:
        owners = {owner["uid"]: owner for owner in known.get("ownerReferences") or ()}
        owners |= {owner["uid"]: owner for owner in metadata["ownerReferences"]}
        metadata["ownerReferences"] = list(owners.values())
    return mapping(merged(old, {**wanted, "metadata": metadata}))


def _json_patched(old: Json, operations: Any) -> Json:
    try:
        # It copies the whole object: rare enough.
        return mapping(jsonpatch.apply_patch(old, operations))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        raise refusals.rejected() from None
