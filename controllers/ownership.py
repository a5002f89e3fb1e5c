"""Whose an object's resources are when the object itself does not know it any more (design: a lost annotation)."""

from __future__ import annotations

from capo.engine.turn import Turn
from capo.errors import NotFoundError
from capo.ledger import Ledger
from capo.openstack.cloud import Body, Cloud
from capo.openstack.kinds import KINDS, ResourceKind, is_named


def recorded_owner(cloud: Cloud, ledger: Ledger, common_name: str) -> str | None:
    """Return the owner in the stamp of the first recorded resource that carries one for its role.

    Resources that were adopted from the Go provider, or are the user's own, carry none; None when no resource does.
    Records can be written by hand: a resource that does not have the object's name tells nothing.

    Args:
        common_name: part of the name or description of all that is created for the object.

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


def is_recorded_elsewhere(turn: Turn, kind: str, resource_id: str) -> bool:
    """Return whether another object of the kind has recorded a resource, or shows it as its server.

    What the Go provider created carries no stamp: two objects of one name, in two namespaces, could both take it.
    """
    for obj in turn.tools.store.list(turn.key.kind):
        metadata, status = obj["metadata"], obj.get("status") or {}
        # Names of servers are those of their objects; names of clusters have the namespace in them.
        if metadata["uid"] == turn.obj["metadata"]["uid"] or metadata["name"] != turn.key.name:
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
