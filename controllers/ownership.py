"""Other objects of one kind that have recorded the same resource; makes no requests."""

from __future__ import annotations

from capo.engine.context import ReconcileContext


def is_recorded_elsewhere(context: ReconcileContext, kind: str, resource_id: str) -> bool:
    """Return whether another object of the kind has recorded a resource, or shows it as its server.

    Resources of the Go provider have no stamp: two objects of the same name, in two namespaces, could both adopt one.
    """
    for obj in context.deps.store.list(context.key.kind):
        metadata, status = obj["metadata"], obj.get("status") or {}
        # A server has the name of its object; the names of a cluster's resources include its namespace.
        if metadata["uid"] == context.obj["metadata"]["uid"] or metadata["name"] != context.key.name:
            continue
        recorded = {(r["kind"], r["id"]) for r in (status.get("resources") or {}).get("records") or ()}
        if (kind, resource_id) in recorded or status.get("instanceID") == resource_id:
            return True
    return False
