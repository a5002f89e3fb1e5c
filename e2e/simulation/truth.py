"""The creator of each resource, independent of stamps and records, and the invariants of every write to a cloud.

A resource belongs to the lineage of the object in whose reconcile it was created. A lineage is an object through moves
and restores; resources of users belong to none. Of the provider's own data this module reads only the role in a
stamp at the moment of a create.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from capo import names
from capo.engine.conditions import find
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL, OPENSTACK_SERVER, OURS, Key
from capo.simulator.cloud import Cloud
from capo.simulator.server import Reply
from e2e.simulation.apiclient import Endpoint
from e2e.simulation.network import Sent
from e2e.simulation.replica import Actor

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ENDING: Final = frozenset({"DELETED", "PENDING_DELETE", "deleting", "SOFT_DELETED"})


@dataclass(frozen=True)
class Violation:
    """An invariant that was broken.

    Args:
        invariant: its name; known defects are listed by it.
        text: what happened.
    """

    invariant: str
    text: str


@dataclass(eq=False)
class Lineage:
    """One object of ours, through moves and restores.

    Args:
        family: the cluster's name, or the object's own without a cluster.
        lent: ids of users' resources that the object's spec names.
        left: ids of what workloads left, which its deletion is to delete.
    """

    key: Key
    endpoint: Endpoint
    uid: str
    family: str
    is_edited: bool = False
    is_deleted: bool = False
    is_gone: bool = False
    is_evil: bool = False
    """A malicious tenant applied it: it need not become ready."""
    is_keeping: bool = False
    """Its policy is to leave its resources behind."""
    is_lost: bool = False
    """A restore separated the object from its resources, or restored it without them."""
    lent: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        """Return it as logs name it."""
        return f"{self.key.kind.kind} {self.key.name}"


@dataclass(eq=False)
class Resource:
    """A resource of a cloud.

    Args:
        lineage: its owner; None: a user's, or the cloud's own.
        role: the role in its stamp when it was created; None without a stamp.
        is_repeat: the network created it by sending a request twice.
        is_orphan: that happened after the deletion of the object whose create had been answered (ADR 0001, non-goals).
    """

    id: str
    cloud: Cloud
    service: str
    kind: str
    lineage: Lineage | None
    role: str | None
    made_s: float
    sent_s: float
    is_repeat: bool = False
    is_orphan: bool = False

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.kind} {self.role or ''} {self.id[:8]} of {self.lineage or 'a user'}"

    def body(self) -> dict[str, Any] | None:
        """Return it as the cloud has it; None if it does not exist."""
        return self.cloud.table(self.service, self.kind).get(self.id)

    def is_there(self) -> bool:
        """Return whether it exists in the cloud and is not being deleted."""
        body = self.body()
        if body is None:
            return False
        states = (body.get("status"), body.get("provisioning_status"), body.get("OS-EXT-STS:task_state"))
        return not _ENDING.intersection(map(str, states))


class Truth:
    """All lineages and resources; the first violation is kept."""

    def __init__(self) -> None:
        self.lineages: dict[str, Lineage] = {}
        self.resources: dict[str, Resource] = {}
        self.violation: Violation | None = None
        self.holder_of: Callable[[dict[str, Any]], str | None] = lambda _floating_ip: None
        """Returns the claim that has a floating IP."""
        self.floating_ips: dict[str, dict[str, Any]] = {}
        """All that were ever created, by id."""
        self.quiet: set[tuple[str, str]] = set()
        """External changes that are not to be reverted: ids of resources to which the provider writes nothing, or
        nothing with a word in it."""
        self.revertible: set[str] = set()
        """What users added to a resource of ours; the provider may remove it."""
        self.inherited: dict[tuple[str, Key], Lineage] = {}
        """Lineages of objects that are about to be created under another uid."""

    def broken(self, invariant: str, text: str) -> None:
        """Record a violation, if it is the first."""
        if self.violation is None:
            self.violation = Violation(invariant, text)

    # -- objects ----------------------------------------------------------------------------------------------------

    def changed(self, endpoint: Endpoint, event: Any) -> None:
        """Record a change of an object."""
        if event.kind not in OURS:
            return
        metadata = event.obj["metadata"]
        key = Key(event.kind, metadata.get("namespace") or "", metadata["name"])
        lineage = self.lineages.get(metadata["uid"])
        if lineage is None:
            lineage = self._begin(endpoint, key, event.obj)
        if lineage.uid != metadata["uid"]:
            return  # a copy that a move left behind
        is_moved = names.DELETE_FOR_MOVE_ANNOTATION in (metadata.get("annotations") or {})
        if metadata.get("deletionTimestamp") and not is_moved:
            lineage.is_deleted = True
        if event.type == "DELETED" and not is_moved:
            lineage.is_gone = True

    def _begin(self, endpoint: Endpoint, key: Key, obj: dict[str, Any]) -> Lineage:
        uid = obj["metadata"]["uid"]
        lineage = self.inherited.pop((endpoint.name, key), None)
        if lineage is not None:
            lineage.endpoint, lineage.uid = endpoint, uid
        else:
            lineage = Lineage(key, endpoint, uid, _family(key, obj))
        self.lineages[uid] = lineage
        return lineage

    def of(self, endpoint: Endpoint, key: Key) -> Lineage | None:
        """Return the lineage of an object that exists."""
        obj = endpoint.server.get(*key)
        return self.lineages.get(obj["metadata"]["uid"]) if obj else None

    def living(self) -> Iterator[Lineage]:
        """Yield all lineages whose object exists, each once."""
        for uid, lineage in self.lineages.items():
            if lineage.uid == uid and not lineage.is_gone:
                yield lineage

    # -- resources --------------------------------------------------------------------------------------------------

    def register_all(self, cloud: Cloud, now_s: float) -> None:
        """Register everything in a new cloud as its own."""
        for (service, _), table in cloud._tables.items():
            if service != "identity":
                self.register(cloud, list(table), now_s)

    def register(self, cloud: Cloud, ids: Iterable[str], now_s: float) -> None:
        """Register these as a user's."""
        for id_ in ids:
            if found := _located(cloud, id_):
                service, kind, _ = found
                self.resources[id_] = Resource(id_, cloud, service, kind, None, None, now_s, now_s)

    def observe(self, cloud: Cloud, sent: Sent, reply: Reply, now_s: float, *, is_repeat: bool) -> None:
        """Record an executed request, and check the invariants."""
        if not sent.is_write or reply.status >= 400:
            return
        lineage = self._lineage(sent.actor)
        if sent.actor is not None:
            self._check_targets(sent, lineage)
        for id_ in reply.call.created:
            found = _located(cloud, id_)
            if found:
                service, kind, body = found
                # One write adds the members of several machines; Octavia itself refuses two of one address.
                role = None if kind == "members" else _role(body)
                self._made(Resource(id_, cloud, service, kind, lineage, role, now_s, sent.sent_s, is_repeat))

    def _lineage(self, actor: Any) -> Lineage | None:
        return self.lineages.get(actor.uid) if isinstance(actor, Actor) else None

    def _made(self, made: Resource) -> None:
        twins = [r for r in self.twins(made) if r.is_there()]
        self.resources[made.id] = made
        if made.kind == "floatingips":
            self.floating_ips[made.id] = dict(made.body() or {})
        made.is_orphan = made.is_repeat and made.lineage is not None and made.lineage.is_gone
        if twins and not made.is_repeat and not any(twin.is_repeat for twin in twins):
            self.broken("made-twice", f"{made} was made while there is {twins[0]}")

    def twins(self, resource: Resource) -> list[Resource]:
        """Return other resources of the same lineage and role, deleted ones included."""
        if resource.role is None or resource.lineage is None:
            return []
        return [
            r
            for r in self.resources.values()
            if r is not resource
            and r.lineage is resource.lineage
            and (r.kind, r.role) == (resource.kind, resource.role)
        ]

    def _check_targets(self, sent: Sent, lineage: Lineage | None) -> None:
        ids = _ID.findall(sent.path)
        text = f"{sent.path} {sent.body.decode(errors='replace')}"
        if ids and any(id_ == ids[-1] and word in text for id_, word in self.quiet):
            self.broken("reported-changed", f"{sent}: an external change of {ids[-1]} is reported or ignored")
        for id_ in ids:
            target = self.resources.get(id_)
            if target is None or id_ in self.revertible:
                continue
            if lineage is None:
                self.broken("write-for-nobody", f"{sent} for {sent.actor}, which is no object of ours")
            elif not _may_touch(sent, lineage, target):
                self.broken("foreign-changed", f"{sent}: {target} is not {lineage}'s")
            elif sent.method == "DELETE" and target.lineage is lineage:
                self._check_cause(sent, lineage, target)
                self._check_unclaimed(sent, target)

    def _check_cause(self, sent: Sent, lineage: Lineage, target: Resource) -> None:
        """Require a cause for a deletion: the deletion of its object, an edit, or an older resource of its role.

        Any of the resources of a repeated request may stay: a late one may be older than the recorded one.
        """
        if target.kind == "server_groups":
            self._check_group_unused(sent, lineage, target)
            return
        if lineage.is_deleted or lineage.is_edited or target.role is None:
            return
        others = [r for r in self.twins(target) if r.is_there()]
        if not any(target.is_repeat or other.made_s <= target.made_s for other in others):
            self.broken(
                "deleted-without-cause", f"{sent}: {target} was deleted, {lineage} was neither deleted nor edited"
            )
        if isinstance(sent.actor, Actor) and sent.actor.uid != lineage.uid:
            self.broken("foreign-changed", f"{sent}: {lineage} lives in {lineage.endpoint.name} by now")

    def _check_group_unused(self, sent: Sent, lineage: Lineage, target: Resource) -> None:
        """Require that no OpenStackServer names a server group that is deleted: its server would never be created."""
        for server in lineage.endpoint.server.list(OPENSTACK_SERVER):
            if (server["spec"].get("serverGroup") or {}).get("id") == target.id:
                self.broken("group-in-use", f"{sent}: OpenStackServer {server['metadata']['name']} names {target}")

    def _check_unclaimed(self, sent: Sent, target: Resource) -> None:
        if claim := self.holder_of(self.floating_ips.get(target.id, {})):
            self.broken("claimed-deleted", f"{sent}: {target} was deleted, claim {claim} has it")

    # -- at rest ----------------------------------------------------------------------------------------------------

    def check_roles(self) -> None:
        """Require one resource per role, unless the object reports both: only a person can decide which is in use."""
        seen: dict[tuple[int, str, str], Resource] = {}
        for resource in self.resources.values():
            if resource.lineage is None or resource.role is None or not resource.is_there():
                continue
            place = (id(resource.lineage), resource.kind, resource.role)
            is_excused = _is_spare(resource, seen.get(place)) or _are_reported(
                resource.lineage, resource, seen.get(place)
            )
            if place in seen and not is_excused:
                self.broken("two-of-a-role", f"{seen[place]} and {resource}")
            seen[place] = resource

    def has_duplicates(self) -> bool:
        """Return whether a role has two resources at present."""
        return any(r.is_there() and any(twin.is_there() for twin in self.twins(r)) for r in self.resources.values())

    def has_repeats(self, kind: str) -> bool:
        """Return whether the network created a resource of a kind by sending a request twice."""
        return any(r.is_repeat for r in self.resources.values() if r.kind == kind)

    def orphans(self, kind: str) -> list[Resource]:
        """Return the resources that the network created after the deletion of the object."""
        return [r for r in self.resources.values() if r.is_orphan and r.kind == kind and r.is_there()]

    def check_nothing_left(self) -> None:
        """Require that a lineage without object has no resources."""
        judged = [each for each in self.lineages.values() if not each.is_lost and not each.is_keeping]
        gone = {id(lineage) for lineage in judged if lineage.is_gone}
        left = [r for r in self.resources.values() if id(r.lineage) in gone and r.is_there() and not r.is_orphan]
        if left:
            self.broken("left-behind", ", ".join(map(str, left[:8])))

    def check_users(self) -> None:
        """Require that users' resources exist, unchanged unless a spec names them."""
        lent = {id_ for lineage in self.lineages.values() for id_ in (lineage.lent | lineage.left)}
        for resource in self.resources.values():
            is_users = resource.lineage is None and resource.kind in _LASTING and resource.id not in lent
            if is_users and resource.body() is None:
                self.broken("foreign-changed", f"{resource} is gone")


_LASTING: Final = frozenset(
    {"networks", "subnets", "routers", "servers", "volumes", "floatingips", "security_groups", "loadbalancers"}
)


def _may_touch(sent: Sent, lineage: Lineage, target: Resource) -> bool:
    if target.lineage is lineage:
        return True
    if target.lineage is None and sent.method == "DELETE":
        return target.id in lineage.left and lineage.is_deleted
    if target.lineage is None:
        return target.id in lineage.lent
    is_family = target.lineage.family == lineage.family
    is_member = "/pools/" in sent.path and target.kind in ("pools", "members")
    return is_family and (sent.method != "DELETE" or is_member)


def _located(cloud: Cloud, id_: str) -> tuple[str, str, dict[str, Any]] | None:
    for (service, kind), table in cloud._tables.items():
        if id_ in table:
            return service, kind, table[id_]
    return None


def _role(body: dict[str, Any]) -> str | None:
    texts = [
        body.get("description"),
        body.get("name"),
        *(body.get("tags") or ()),
        (body.get("metadata") or {}).get(names.VOLUME_STAMP_KEY),
    ]
    stamps = (names.stamp_in(str(text)) for text in texts if text)
    return next((stamp.role for stamp in stamps if stamp), None)


def _family(key: Key, obj: dict[str, Any]) -> str:
    labels = obj["metadata"].get("labels") or {}
    return str(labels.get(names.CLUSTER_NAME_LABEL, key.name))


def _is_spare(*resources: Resource | None) -> bool:
    """Return whether the network created a floating IP of a pool twice: a later claim gets the second one."""
    is_of_pool = all(
        r is not None and r.lineage and r.lineage.key.kind == OPENSTACK_FLOATING_IP_POOL for r in resources
    )
    return is_of_pool and any(r is not None and r.is_repeat for r in resources)


def _are_reported(lineage: Lineage, *resources: Resource | None) -> bool:
    """Return whether a condition of the object names resources as duplicates."""
    obj = lineage.endpoint.server.get(*lineage.key) or {}
    shown = find((obj.get("status") or {}).get("conditions") or (), "NamesUnique") or {}
    is_told = all(each is not None and each.id in shown.get("message", "") for each in resources)
    return shown.get("reason") == "DuplicateResource" and is_told
