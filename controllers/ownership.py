"""The owner of an object's resources when the object itself lost its owner id (design: a lost annotation)."""

from __future__ import annotations

from capo.engine.context import ReconcileContext
from capo.errors import NotFoundError
from capo.ledger import Ledger
from capo.openstack.cloud import Body, Cloud
from capo.openstack.kinds import KINDS, ResourceKind, is_named


def recorded_owner(cloud: Cloud, ledger: Ledger, common_name: str) -> str | None:
    """Return the owner in the stamp of the first recorded resource that has one for its role.

    Resources that were adopted from the Go provider, or are the user's, have none; None if no resource has one. Users
    can write records by hand: a resource without the object's name proves nothing.

    Args:
        common_name: part of the name or description of every resource of the object.

    Raises:
        CapoError: the cloud does not answer.
    """
    for record in sorted(ledger.records.values(), key=lambda record: record.role):
        kind = KINDS.get(record.kind)
        body = _body(cloud, kind, record.id) if kind else None
        stamp = kind.stamp_of(body) if kind and body else None
        if body and stamp and stamp.role == record.role and is_named(body, common_name):
            return stamp.owner
    return None


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


def _body(cloud: Cloud, kind: ResourceKind, resource_id: str) -> Body | None:
    try:
        answer = cloud.get(kind.service, kind.path(resource_id), microversion=kind.microversion)
    except NotFoundError:
        return None
    body: Body = answer[kind.body_key]
    return body
