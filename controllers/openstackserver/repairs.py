"""Repairs of external changes of a server and its ports, where the policy of its cluster asks for them.

Only what is missing is brought back; what others added is kept. A repair that is refused is a part of the message: the
server works as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from api.v1beta2.driftpolicy import DriftPolicy
from api.v1beta2.port import ResolvedPortSpec
from capo import names
from capo.contract import references
from capo.errors import CapoError, NotFoundError
from capo.json_types import Body, Json
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER
from capo.openstack import port, server
from capo.openstack.port import Port
from capo.openstack.server import Server
from controllers.address_pairs import Pairs
from controllers.drift import EVENT, GROUPS, METADATA, PAIRS, TAGS, Policy, listing, of_spec, with_reason
from controllers.openstackserver import address_pairs, drift
from controllers.openstackserver.scope import ServerScope

_OF_PORTS: Final = (GROUPS, PAIRS)
_OF_SERVERS: Final = (METADATA, TAGS)


def policy_of(scope: ServerScope) -> DriftPolicy | None:
    """Return the policy of the cluster that the object belongs to; None without a cluster, or without a policy."""
    store, labels = scope.context.deps.store, scope.context.obj["metadata"].get("labels") or {}
    cluster_name = labels.get(names.CLUSTER_NAME_LABEL)
    cluster = store.get(CLUSTER, scope.namespace, cluster_name) if cluster_name else None
    infra_name = references.infrastructure_name(cluster, OPENSTACK_CLUSTER.kind) if cluster else None
    infra = store.get(OPENSTACK_CLUSTER, scope.namespace, infra_name) if infra_name else None
    policy = ((infra or {}).get("spec") or {}).get("driftPolicy")
    return DriftPolicy.model_validate(policy) if policy else None


def port_message(scope: ServerScope, role: str, wanted: ResolvedPortSpec, found: Port, *, edited: Pairs | None) -> str:
    """Repair a port as the policy says; return the message about what is left.

    Args:
        edited: the address pairs that it is to have after an edit of the machine; None: it was not edited.
    """
    changes = drift.port_changes(wanted, found, server_id=scope.known_server_id, edited=edited)
    kinds = [kind for kind in _OF_PORTS if kind in changes]
    policy = policy_of(scope) if kinds else None
    for kind in kinds:
        chosen = of_spec(policy, kind, default=Policy.REPORT)
        one = _PortRepair(scope, role, kind, wanted, edited)
        if chosen is Policy.OFF:
            del changes[kind]
        elif chosen is Policy.REPAIR and one.fields(found):
            reason = _attempt(scope, kind, found.id, lambda one=one: one.send(found.id))  # type: ignore[misc]
            if reason or one.is_left:
                changes[kind] = with_reason(changes[kind], reason)
            else:
                del changes[kind]
    return drift.sentence(role, changes.values())


def server_messages(scope: ServerScope, found: Server, volume_ids: set[str]) -> Iterator[str]:
    """Repair metadata and tags of a server as the policy says; yield the messages about what is left."""
    changes = drift.server_drift(scope.server.spec, volume_ids, found)
    policy = policy_of(scope) if changes.keys() & set(_OF_SERVERS) else None
    calls: dict[str, Callable[[], str]] = {
        METADATA: lambda: _repair_metadata(scope, found),
        TAGS: lambda: _repair_tags(scope, found),
    }
    for kind, text in changes.items():
        chosen = of_spec(policy, kind, default=Policy.REPORT) if kind in calls else Policy.REPORT
        if chosen is Policy.REPORT:
            yield text
        elif chosen is Policy.REPAIR and (reason := _attempt(scope, kind, found.id, calls[kind])):
            yield with_reason(text, reason)


def _attempt(scope: ServerScope, kind: str, resource_id: str, call: Callable[[], str]) -> str:
    """Repair a resource unless it was repaired too often; return why it is not repaired, empty if it is.

    Args:
        call: sends the repair and returns the text of its Event, empty if nothing was to do.
    """
    repairs = scope.repairs
    if reason := repairs.postponed(kind, resource_id):
        return reason
    try:
        text = call()
    except CapoError as error:
        repairs.note(kind, resource_id, error=error)
        return repairs.failure(kind, resource_id)
    if text:
        repairs.note(kind, resource_id)
        scope.context.deps.events.emit(scope.context.obj, "Normal", EVENT, text)
    return ""


@dataclass
class _PortRepair:
    """The repair of groups or pairs of a port.

    Args:
        edited: as of :func:`port_message`.
        is_left: whether the port has more than the spec names after the repair.
    """

    scope: ServerScope
    role: str
    kind: str
    wanted: ResolvedPortSpec
    edited: Pairs | None
    is_left: bool = False

    def fields(self, found: Port) -> Json:
        """Return the fields of the port that bring back what is missing; empty if nothing is."""
        return drift.port_repair(self.kind, self.wanted, found, edited=self.edited)

    def send(self, port_id: str) -> str:
        """Add what is missing to the port, as it is now: an update replaces the whole list. Return the Event's text.

        Raises:
            ForeignResourceError: the port carries no stamp of this object.
        """
        view = self.scope.cloud_view
        try:
            body = port.get(self.scope.cloud, port_id)
        except NotFoundError:
            view.invalidate("port", port_id)
            return ""
        address_pairs.expect_own(self.scope, self.role, body)
        fields, changed = self.fields(Port(body)), body
        if fields:
            try:
                changed = port.update(self.scope.cloud, body, fields)
            except CapoError as error:
                view.failed("port", port_id, error)
                raise
        view.upsert("port", changed)
        left = drift.port_changes(self.wanted, Port(changed), server_id=None, edited=self.edited)
        self.is_left = self.kind in left
        words = "security groups" if self.kind == GROUPS else "allowed address pairs"
        before, after = (_shown(self.kind, each) for each in (body, changed))
        return f"{words} of {self.role} ({port_id}) were changed externally: {before}; now {after}" if fields else ""


def _shown(kind: str, body: Body) -> str:
    if kind == GROUPS:
        return listing(Port(body).security_groups) or "none"
    return listing(pair.ip_address for pair in Port(body).address_pairs) or "none"


def _repair_metadata(scope: ServerScope, found: Server) -> str:
    """Set the metadata of the spec; keys of others are kept."""
    wanted, has = drift.changed_metadata(scope.server.spec, found), dict(found.metadata or {})
    try:
        metadata = server.set_metadata(scope.cloud, found.id, wanted)
    except CapoError as error:
        scope.cloud_view.failed("server", found.id, error)
        raise
    scope.cloud_view.upsert("server", {**found.body, "metadata": metadata})
    before = listing(f"{key}={has[key]}" if key in has else f"no {key}" for key in wanted)
    after = listing(f"{key}={value}" for key, value in wanted.items())
    return f"metadata of server {found.id} was changed externally: {before}; now {after}"


def _repair_tags(scope: ServerScope, found: Server) -> str:
    """Add the tags of the spec that are missing, one by one; tags of others are kept."""
    missing = drift.missing_tags(scope.server.spec, found)
    try:
        for tag in missing:
            server.add_tag(scope.cloud, found.id, tag)
    except CapoError as error:
        scope.cloud_view.failed("server", found.id, error)
        raise
    scope.cloud_view.upsert("server", {**found.body, "tags": [*(found.tags or ()), *missing]})
    return f"tags of server {found.id} were removed externally: {listing(missing)}; added them again"
