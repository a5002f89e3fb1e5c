"""Writes of claims and IPAddresses: each in the version in which the object was read, and only to that very object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from capo.engine.context import Dependencies
from capo.engine.store import DELETED
from capo.json_types import Object
from capo.kube import patches
from capo.kube.errors import Conflict, Gone
from capo.kube.kinds import IP_ADDRESS, Key, Kind
from controllers.openstackfloatingippool import ipam

MAX_CONFLICTS: Final = 8
T = TypeVar("T")
Patch = Callable[[Object], dict[str, Any] | None]
"""Returns the merge patch for the present object, None if there is nothing to write."""


def create_address(deps: Dependencies, wanted: Object, by: Key) -> Object:
    """Create an IPAddress.

    Raises:
        Conflict: one of that name exists: the next reconcile reads it.
    """
    made = deps.kube.create(IP_ADDRESS.as_read(wanted), wanted)
    deps.store.apply_own(IP_ADDRESS, made, by=by)
    return made


def patch(  # noqa: PLR0913 - each is named at the call
    deps: Dependencies, kind: Kind, obj: Object, wanted: Patch, *, by: Key | None, subresource: str | None = None
) -> Object | None:
    """Patch the current version of an object; return it, or None if it was deleted or replaced by another one.

    Raises:
        Conflict: it changed at each of the tries.
    """
    served, (namespace, name) = kind.as_read(obj), ipam.ident(obj)

    def write(present: Object) -> Object:
        body = wanted(present)
        if body is None:
            return present
        version = {"resourceVersion": present["metadata"]["resourceVersion"]}
        body = {**body, "metadata": {**body.get("metadata", {}), **version}}
        answer: Object = deps.kube.patch(served, namespace, name, body, subresource=subresource)
        deps.store.apply_own(kind, answer, by=by)
        return answer

    return _written(deps, kind, obj, write)


def _written(deps: Dependencies, kind: Kind, obj: Object, write: Callable[[Object], T]) -> T | None:
    """Return the result of a write to the current version of an object; None if it is gone, or is another one by now.

    Raises:
        Conflict: it changed at each of the tries.
    """
    served, (namespace, name) = kind.as_read(obj), ipam.ident(obj)
    present: Object | None = obj
    for _ in range(MAX_CONFLICTS):
        if present is None or present["metadata"]["uid"] != obj["metadata"]["uid"]:
            return None
        try:
            return write(present)
        except Conflict:
            present = deps.kube.get(served, namespace, name)
            if present is not None:
                # Stored as the other client's change: the answer to the next try has it, too, but requeues no writer.
                deps.store.apply(kind, "MODIFIED", present)
        except Gone:
            return None
    raise Conflict(f"{kind.kind} {namespace}/{name}: changed at each of {MAX_CONFLICTS} tries")


def add_finalizer(deps: Dependencies, kind: Kind, obj: Object, finalizer: str, *, by: Key | None) -> Object | None:
    """Add a finalizer; return the object, None if it is gone or its deletion was requested."""

    def wanted(present: Object) -> dict[str, Any] | None:
        known = list(present["metadata"].get("finalizers") or [])
        if finalizer in known or present["metadata"].get("deletionTimestamp"):
            return None
        return {"metadata": {"finalizers": [*known, finalizer]}}

    found = patch(deps, kind, obj, wanted, by=by)
    return found if found and finalizer in (found["metadata"].get("finalizers") or ()) else None


def remove_finalizer(deps: Dependencies, kind: Kind, obj: Object, finalizer: str, *, by: Key | None) -> bool:
    """Remove a finalizer; return False if it is not there any more, or the object is gone."""
    served, (namespace, name) = kind.as_read(obj), ipam.ident(obj)

    def write(present: Object) -> bool:
        operations = patches.without_finalizer(present, finalizer)
        if operations:
            answer = deps.kube.json_patch(served, namespace, name, operations)
            deps.store.apply_own(kind, answer, by=by)
        return bool(operations)

    return _written(deps, kind, obj, write) or False


def delete_address(deps: Dependencies, address: Object, *, by: Key | None) -> None:
    """Request the deletion of this very IPAddress; its finalizers stay."""
    metadata = address["metadata"]
    served = IP_ADDRESS.as_read(address)
    kept = deps.kube.delete(served, metadata["namespace"], metadata["name"], uid=metadata["uid"])
    if kept is not None:
        deps.store.apply_own(IP_ADDRESS, kept, by=by)
    else:
        deps.store.apply(IP_ADDRESS, DELETED, address)
