"""Other objects of one kind that have recorded the same resource; makes no requests."""

from __future__ import annotations

from typing import Final

from capo.engine.context import ReconcileContext
from capo.engine.store import Index
from capo.kube.kinds import (
    OPENSTACK_CLUSTER,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
)


def is_recorded_elsewhere(context: ReconcileContext, kind: str, resource_id: str) -> bool:
    """Return whether another object of the kind has recorded a resource, or shows it as its server.

    Resources of the Go provider have no stamp: two objects of the same name, in two namespaces, could both adopt one.
    """
    # A server has the name of its object; the names of a cluster's resources include its namespace.
    for obj in context.deps.store.find(_BY_NAME[context.key.kind], context.key.name):
        status = obj.get("status") or {}
        if obj["metadata"]["uid"] == context.obj["metadata"]["uid"]:
            continue
        recorded = {(r["kind"], r["id"]) for r in (status.get("resources") or {}).get("records") or ()}
        if (kind, resource_id) in recorded or status.get("instanceID") == resource_id:
            return True
    return False


_KINDS: Final = (
    OPENSTACK_CLUSTER,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
)
_BY_NAME: Final = {kind: Index(kind, lambda obj: [obj["metadata"]["name"]]) for kind in _KINDS}
"""Objects by name, in all namespaces."""
