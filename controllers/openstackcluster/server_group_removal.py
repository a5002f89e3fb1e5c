"""The deletion of server groups that nothing needs, in two reconciles.

Nova deletes a group that has servers without a complaint, and a machine whose group is gone never gets a server. So
the first reconcile removes the record, from which machines read the id; a later one deletes the group, which it finds
by the stamp, if no OpenStackServer names it and Nova shows no member.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Set
from functools import partial
from typing import Final

from capo import names
from capo.contract import references
from capo.engine.store import Index
from capo.errors import BlockedError, CapoError, CloudUnavailableError, NotFoundError
from capo.json_types import Body, Object
from capo.kube.kinds import (
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    keys_of,
    named_in,
)
from capo.ledger import Ledger
from capo.openstack import quota, server_group
from capo.openstack.kinds import SERVER_GROUP
from capo.openstack.server_group import ServerGroup
from controllers import anti_affinity, attempts
from controllers.openstackcluster.scope import ClusterScope, GroupsFound

log = logging.getLogger(__name__)

KIND: Final = "server_group"
WITHDRAWN_S: Final = 60.0
"""Time between the removal of a record and the deletion of its group: a machine that read the record before has created
its OpenStackServer by then, with one request."""
MAX_NAMED: Final = 5
_REFERRERS: Final = (MACHINE_DEPLOYMENT, MACHINE_SET, KUBEADM_CONTROL_PLANE)


def remove_unneeded(scope: ClusterScope, found: GroupsFound, wanted: Set[str]) -> None:
    """Delete the groups that nothing needs; a failure is noted, so that it keeps no other group from being created.

    Args:
        wanted: roles of the groups of the cluster's machines, also of those that are being deleted.
    """
    needed = wanted | _referred(scope)
    surplus = []
    for body in scope.owned(KIND):
        if _role(scope, body) in needed:
            scope.looks.forget(_withdrawal(scope, body))
        else:
            surplus.append(body)
    try:
        attempts.try_each(surplus, partial(_withdraw, scope, found))
    except CapoError as error:
        found.failure = error


def _referred(scope: ClusterScope) -> set[str]:
    """Return the roles of the groups of templates that the cluster refers to: they may get machines at any time."""
    store, label = scope.context.deps.store, names.CLUSTER_NAME_LABEL
    kinds = ((kind, store.by_label(kind, scope.namespace, label, scope.cluster_name)) for kind in _REFERRERS)
    referrers = [each for kind, objects in kinds for each in objects if not (kind == MACHINE_SET and _is_old(each))]
    named = {references.template_name(each, OPENSTACK_MACHINE_TEMPLATE.kind) for each in referrers}
    templates = [store.get(OPENSTACK_MACHINE_TEMPLATE, scope.namespace, name) for name in named if name]
    groups = (anti_affinity.of_template(template) for template in templates if template)
    return {group.role for group in groups if group}


def _is_old(machine_set: Body) -> bool:
    """Return whether a MachineSet may be of a former rollout: its MachineDeployment names the template in use."""
    return references.owner(machine_set, group=references.CORE_GROUP, kind=MACHINE_DEPLOYMENT.kind) is not None


def _withdraw(scope: ClusterScope, found: GroupsFound, body: Body) -> None:
    """Remove the record of a group; delete the group some time after that."""
    role, ledger = _role(scope, body), scope.context.ledger
    memory, now_s = _withdrawal(scope, body), scope.context.started_s
    was_recorded = Ledger.read(scope.context.obj.get("status")).id_of(role) == body["id"]
    if ledger.id_of(role) == body["id"]:
        ledger.drop(role)
    if was_recorded:
        scope.looks.forget(memory)
        found.again_s = WITHDRAWN_S
    elif not scope.looks.is_fresh(memory, body["id"], now_s=now_s, max_age_s=float("inf")):
        scope.looks.note(memory, body["id"], now_s=now_s)
        found.again_s = WITHDRAWN_S
    elif scope.looks.is_fresh(memory, body["id"], now_s=now_s, max_age_s=WITHDRAWN_S):
        found.again_s = WITHDRAWN_S
    elif not _is_named(scope, body["id"]) and not scope.is_seen(_used(body), body["id"]):
        _delete_if_empty(scope, found, body)


def _delete_if_empty(scope: ClusterScope, found: GroupsFound, body: Body) -> None:
    """Delete a group; one with servers is tried again after the next resync.

    The quota that it frees is kept for a group that is missing.
    """
    key, slot, places = scope.context.key, _used(body), scope.cloud.quota_holds.places
    is_replaced = found.replaced < found.missing
    if is_replaced:
        places.keep(key, slot, quota.of_create(KIND, 1))
    try:
        delete(scope, body)
        found.replaced += is_replaced
    except BlockedError:
        places.release(key, slot)
        scope.note_seen(_used(body), body["id"])


def delete(scope: ClusterScope, body: Body) -> None:
    """Delete a group that has no servers.

    Raises:
        BlockedError: it has servers, or an OpenStackServer names it.
    """
    group_id = str(body["id"])
    if named := _is_named(scope, group_id):
        raise _in_use(group_id, named, "Delete the OpenStackServer.")
    if members := _members(scope, group_id):
        advice = "Delete these servers, or the group if they may leave it."
        count = f"{len(members)} server{'s' if len(members) > 1 else ''}"
        raise _in_use(
            group_id, _listed(members), advice, if_shared=f"server group {group_id} is still in use by {count}"
        )
    server_group.delete(scope.cloud, group_id)
    scope.cloud_view.forget(KIND, group_id)
    scope.emit("SuccessfulDeleteServerGroup", f"Deleted server group {body.get('name')} with id {group_id}")


def _in_use(group_id: str, users: str, next_step: str, *, if_shared: str | None = None) -> BlockedError:
    group = f"server group {group_id}"
    return BlockedError(f"still in use by {users}", resource=group, next_step=next_step, if_shared=if_shared)


def _listed(members: tuple[str, ...]) -> str:
    more = f" and {len(members) - MAX_NAMED} more" if len(members) > MAX_NAMED else ""
    return f"server{'s' if len(members) > 1 else ''} {', '.join(members[:MAX_NAMED])}{more}"


def _members(scope: ClusterScope, group_id: str) -> tuple[str, ...]:
    """Return the servers of a group as Nova shows them now; none if the group does not exist.

    Raises:
        CloudUnavailableError: the answer does not show them.
    """
    try:
        live = ServerGroup(server_group.show(scope.cloud, group_id))
    except NotFoundError:
        return ()
    if live.id != group_id or live.members is None:
        raise CloudUnavailableError(f"Nova does not show the members of server group {group_id}")
    return live.members


def _is_named(scope: ClusterScope, group_id: str) -> str:
    """Return the OpenStackServer that names a group, whether its server exists or not, for a message; empty: none."""
    found = list(scope.context.deps.store.find(_BY_GROUP, group_id))
    if not found:
        return ""
    log.info("A server group is not deleted", extra={"group": group_id, "named_by": keys_of(found)})
    return named_in(scope.namespace, OPENSTACK_SERVER, found)[0]


def _groups(server: Object) -> set[str]:
    resolved = ((server.get("status") or {}).get("resolved") or {}).get("serverGroupID")
    given = ((server.get("spec") or {}).get("serverGroup") or {}).get("id")
    return {group_id for group_id in (given, resolved) if group_id}


_BY_GROUP: Final = Index(OPENSTACK_SERVER, _groups)


def _role(scope: ClusterScope, body: Body) -> str:
    """Return the role of one of the cluster's groups, from its stamp, else from its record; empty without both."""
    if stamp := SERVER_GROUP.stamp_of(body):
        return stamp.role
    records: Iterable[str] = (r.role for r in scope.context.ledger.records_of_kind(KIND) if r.id == body["id"])
    return next(iter(records), "")


def _withdrawal(scope: ClusterScope, body: Body) -> str:
    return f"{scope.uid} withdrawn {body['id']}"


def _used(body: Body) -> str:
    return f"server group {body['id']}"
