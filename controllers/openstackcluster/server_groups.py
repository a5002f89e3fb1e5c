"""The server groups of the cluster's machines with ``antiAffinity``: one for each template and policy.

A group is created for its first machine; machines read its id from the records. ``server_group_removal.py`` deletes
those that nothing needs. A cluster without the annotation ``server-groups``, a record and an intent never lists groups.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Final

from capo import names
from capo.contract import references
from capo.engine import conditions, refused_writes
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.engine.store import Index
from capo.json_types import Object
from capo.kube.errors import KubeError
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from capo.openstack import server_group
from capo.openstack.resource_cache import with_ids
from capo.openstack.server import Server
from capo.openstack.server_group import WantedServerGroup
from controllers import anti_affinity, attempts
from controllers.anti_affinity import Group
from controllers.openstackcluster import server_group_removal
from controllers.openstackcluster.scope import ClusterScope, GroupsFound
from controllers.openstackcluster.server_group_removal import KIND

CONDITION: Final = "ServerGroupsReady"
MAX_CREATES: Final = 10
"""Groups that one reconcile creates at most."""
MAX_TOLD: Final = 5


def ensure_server_groups(scope: ClusterScope) -> Outcome:
    """Create the groups that machines need, delete those that nothing needs, and report servers that share a host."""
    machines = _machines(scope)
    if not machines and not _may_exist(scope):
        return NotNeeded()
    wanted = {group.role: group for obj, group in machines if not obj["metadata"].get("deletionTimestamp")}
    found = scope.found.server_groups
    if found is None:
        missing = wanted.keys() - {record.role for record in scope.context.ledger.records_of_kind(KIND)}
        found = scope.found.server_groups = GroupsFound(missing=len(missing))
        # Before any create: a quota that old groups use up would never have room for a new one.
        server_group_removal.remove_unneeded(scope, found, {group.role for _, group in machines})
    for role, group in sorted(wanted.items()):
        if scope.find(KIND, role) is None:
            return _creation(scope, found, group)
    if found.failure:
        raise found.failure
    return Done(_report_shared_hosts(scope, machines))


def remove_server_groups(scope: ClusterScope) -> Outcome:
    """Delete all groups of the cluster.

    Raises:
        BlockedError: a group has servers.
    """
    if not _may_exist(scope):
        return NotNeeded()
    attempts.try_each(scope.owned(KIND), partial(server_group_removal.delete, scope))
    return NotNeeded()


def _may_exist(scope: ClusterScope) -> bool:
    """Return whether a group was ever created, or is being created: only then the project's groups are listed."""
    ledger = scope.context.ledger
    pending = {each.kind for each in ledger.pending.values()}
    return bool(ledger.records_of_kind(KIND)) or KIND in pending or _is_marked(scope)


def _machines(scope: ClusterScope) -> list[tuple[Object, Group]]:
    """Return the machines of the cluster that need a group, with it."""
    found = scope.context.deps.store.find(_IN_GROUPS, (scope.namespace, scope.cluster_name))
    return [(obj, group) for obj in found if (group := anti_affinity.of_machine(obj))]


def _clusters(obj: Object) -> list[tuple[str, str]]:
    """Return the cluster of a machine that needs a group, nothing for any other machine."""
    name = references.cluster_name(obj)
    return [(obj["metadata"]["namespace"], name)] if name and anti_affinity.of_machine(obj) else []


_IN_GROUPS: Final = Index(OPENSTACK_MACHINE, _clusters)


# -- create -----------------------------------------------------------------------------------------------------------


def _creation(scope: ClusterScope, found: GroupsFound, group: Group) -> Outcome:
    if found.created >= MAX_CREATES:
        return Wait("Building", "creating the server groups of more templates", after_s=0.0)
    found.created += 1
    _mark(scope)
    name = names.server_group(scope.resource_name, group.template, scope.stamp(group.role))
    wanted = WantedServerGroup(name, group.policy)
    return Create("server_group", (group.role,), lambda: {group.role: server_group.create(scope.cloud, wanted)})


def _is_marked(scope: ClusterScope) -> bool:
    return names.SERVER_GROUPS_ANNOTATION in (scope.context.obj["metadata"].get("annotations") or {})


def _mark(scope: ClusterScope) -> None:
    """Write the annotation before the first create: unlike the status, it survives a move.

    Raises:
        WriteRefusedError: the API server refuses it.
    """
    if _is_marked(scope):
        return
    key, uid = scope.context.key, scope.context.obj["metadata"]["uid"]
    body = {"metadata": {"uid": uid, "annotations": {names.SERVER_GROUPS_ANNOTATION: "true"}}}
    try:
        scope.context.deps.kube.patch(OPENSTACK_CLUSTER, key.namespace, key.name, body)
    except KubeError as error:
        if not refused_writes.is_one(error):
            raise
        raise refused_writes.failure(error, f"the annotation {names.SERVER_GROUPS_ANNOTATION}").error from error


# -- hosts ------------------------------------------------------------------------------------------------------------


def _report_shared_hosts(scope: ClusterScope, machines: Iterable[tuple[Object, Group]]) -> str:
    """Return which servers of a template are on the same host, as Nova's list shows them; emit an Event if that is new.

    A soft group does not prevent it, nor does a hard one what an administrator migrates or evacuates.
    """
    by_id = {id_: (group, str(obj["metadata"]["name"])) for obj, group in machines if (id_ := _server_id(obj))}
    if not by_id:
        return ""
    # Any age is enough: the servers of the machines are listed once a minute.
    servers = scope.cloud_view.list_matching("server", max_age_s=math.inf, among=with_ids(by_id))
    by_host: dict[tuple[str, str], list[str]] = defaultdict(list)
    for found in map(Server, servers):
        group, name = by_id[found.id]
        if found.host_id and found.status != "DELETED":
            by_host[group.members, found.host_id].append(name)
    shared = [f"{who}: {', '.join(sorted(names_))}" for (who, _), names_ in by_host.items() if len(names_) > 1]
    if not shared:
        return ""
    told = sorted(shared)[:MAX_TOLD]
    more = [f"and on {len(shared) - len(told)} more hosts"] if len(shared) > len(told) else []
    text = "; ".join(["servers share a host: " + told[0], *told[1:], *more])
    if text != (conditions.find(_conditions(scope), CONDITION) or {}).get("message"):
        scope.emit("ServersShareHost", text, severity="Warning")
    return text


def _server_id(obj: Object) -> str:
    """Return the id of a machine's server, empty before it ran."""
    return str((obj.get("status") or {}).get("instanceID") or "")


def _conditions(scope: ClusterScope) -> list[Object]:
    return (scope.context.obj.get("status") or {}).get("conditions") or []
