"""The step that applies edits of allowed address pairs to the ports; see :mod:`controllers.address_pairs`.

Only the pairs of the edit are added and removed: others, which a user or an operator added to a port, are kept.
"""

from __future__ import annotations

from capo import names
from capo.engine.steps import NotNeeded, Outcome
from capo.errors import CapoError, ForeignResourceError, InvalidSpecError, NotFoundError
from capo.json_types import Body
from capo.kube import patches
from capo.kube.errors import Conflict
from capo.kube.kinds import OPENSTACK_SERVER
from capo.openstack import port
from capo.openstack.port import Port
from controllers import address_pairs, attempts, roles
from controllers.address_pairs import Change, Record
from controllers.openstackserver import takeover
from controllers.openstackserver.scope import ServerScope


def ensure(scope: ServerScope) -> Outcome:
    """Apply the edits that the ports do not have yet, and record those that were applied."""
    record = address_pairs.record_of(scope.context.obj)
    if record is None or not record.changes or not _is_current(scope):
        return NotNeeded()
    left = dict(record.changes)

    def apply(index: int) -> None:
        _apply(scope, index, record.changes[index])
        del left[index]

    try:
        attempts.try_each(record.changes, apply)
    finally:
        if len(left) < len(record.changes):
            _settle(scope, Record(record.pairs, left))
    return NotNeeded()


def _is_current(scope: ServerScope) -> bool:
    """Return whether the API server has the same record: the store may lag behind edits that were applied since.

    If it has another one, the watch event of that requeues the object.
    """
    fresh = scope.context.deps.kube.get(OPENSTACK_SERVER, scope.namespace, scope.name)
    return fresh is not None and address_pairs.record_of(fresh) == address_pairs.record_of(scope.context.obj)


def _apply(scope: ServerScope, index: int, change: Change) -> None:
    """Send one update of a port, unless it has the edit already; a port that was deleted is left out.

    Raises:
        InvalidSpecError: port security is off, so the port cannot have pairs.
    """
    role = roles.port(index)
    known = takeover.find(scope, "port", role)
    found = _read(scope, known["id"]) if known else None
    if found is None:
        return
    expect_own(scope, role, found)
    if change.added and Port(found).port_security_enabled is False:
        raise InvalidSpecError(
            f"{role} cannot have allowed address pairs: its port security is off",
            resource=f"port {found['id']}",
            next_step="Remove them, or use a new template with port security.",
        )
    pairs = port.exchanged_pairs(found, added=change.added, removed=change.removed)
    if pairs is None:
        return
    try:
        changed = port.update(scope.cloud, found, {"allowed_address_pairs": pairs})
    except CapoError as error:
        scope.cloud_view.failed("port", found["id"], error)
        raise
    scope.cloud_view.upsert("port", changed)


def _read(scope: ServerScope, port_id: str) -> Body | None:
    """Return the port as it is now: an update replaces the whole list, and a list may be older than another edit."""
    try:
        return port.get(scope.cloud, port_id)
    except NotFoundError:
        return None


def expect_own(scope: ServerScope, role: str, found: Body) -> None:
    """Require the object's own stamp, or none on a port of its server that another provider created.

    Raises:
        ForeignResourceError: neither proves that the port is the object's.
    """
    stamp = names.stamp_in(Port(found).description)
    is_adopted = stamp is None and scope.known_server_id is not None and Port(found).device_id == scope.known_server_id
    if stamp != scope.stamp(role) and not is_adopted:
        raise ForeignResourceError(
            f"{role} carries no stamp of this object: it is not changed",
            resource=f"port {found['id']}",
        )


def _settle(scope: ServerScope, record: Record) -> None:
    """Record which edits are applied; if the machine was edited since, the watch event of that requeues the object."""
    metadata = scope.context.obj["metadata"]
    uid, name = {"uid": metadata["uid"]}, names.ADDRESS_PAIRS_ANNOTATION
    operations = patches.precise(
        {"metadata": {**uid, "annotations": {name: metadata["annotations"][name]}}},
        {"metadata": {**uid, "annotations": {name: record.encoded()}}},
    )
    try:
        changed = scope.context.deps.kube.json_patch(
            OPENSTACK_SERVER, metadata["namespace"], metadata["name"], operations
        )
    except Conflict:
        return
    # Not as a write of ours: edits of other clients that the answer contains get a reconcile of their own.
    scope.context.deps.store.apply(OPENSTACK_SERVER, "MODIFIED", changed)
