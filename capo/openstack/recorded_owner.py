"""The owner in the stamps of recorded resources, for an object that lost its owner id. Source: ADR 0001."""

from __future__ import annotations

from capo.errors import NotFoundError
from capo.json_types import Body
from capo.ledger import Ledger
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS, ResourceKind, is_named


def find(cloud: Cloud, ledger: Ledger, common_name: str) -> str | None:
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


def _body(cloud: Cloud, kind: ResourceKind, resource_id: str) -> Body | None:
    try:
        answer = cloud.get(kind.service, kind.path(resource_id), microversion=kind.microversion)
    except NotFoundError:
        return None
    body: Body = answer[kind.body_key]
    return body
