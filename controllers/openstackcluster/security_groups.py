"""The managed security groups with their rules.

Source: docs/explanation/go-provider.md, G-11, W-58, W-65. ``rules.py`` decides which rules they have.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import partial
from typing import Final

from api.v1beta2.securitygroups import ManagedSecurityGroups
from capo import names
from capo.engine.steps import Create, Done, NotNeeded, Outcome
from capo.errors import CapoError, ConflictError
from capo.json_types import Body
from capo.openstack import port, security_group
from capo.openstack.resource_cache import found_by
from capo.openstack.security_group import Rule, WantedSecurityGroup
from controllers import attempts, roles
from controllers.drift import RULES
from controllers.openstackcluster import (
    deletion_blockers,
    drift,
    egress,
    endpoint_policy,
    failure_domains,
    rules,
    upcoming,
)
from controllers.openstackcluster.changes import doubting, tagged
from controllers.openstackcluster.rules import RuleContext
from controllers.openstackcluster.scope import ClusterScope
from controllers.roles import BASTION

CONDITION: Final = "SecurityGroupsReady"


def ensure_security_groups(scope: ClusterScope) -> Outcome:
    """Create the managed groups and reconcile their rules; delete the bastion's group after the bastion."""
    spec = scope.cluster.spec.managed_security_groups
    if spec is None:
        return Done()
    suffixes = upcoming.group_suffixes(scope)
    found = {suffix: _find(scope, suffix) for suffix in suffixes}
    missing = [suffix for suffix, body in found.items() if body is None]
    if missing:
        return Create("security_group", tuple(map(roles.group, missing)), lambda: _created(scope, missing))
    groups = {suffix: tagged(scope, "security_group", body) for suffix, body in found.items() if body is not None}
    wanted = rules.wanted(spec, rule_context(scope, groups))
    changes: list[str] = []
    scope.found.groups = {
        suffix: _with_rules(scope, body, wanted.rules[suffix], changes=changes) for suffix, body in groups.items()
    }
    scope.found.applied_rules = drift.applied_rules(
        scope, {body["id"]: wanted.rules[suffix] for suffix, body in groups.items()}
    )
    if BASTION not in suffixes:
        _remove_group_of_bastion(scope)
    external = (*scope.found.changes.get("security_group", ()), *changes)
    return Done("; ".join((*wanted.skipped, *_egress_note(scope, spec), *external)))


def _egress_note(scope: ClusterScope, spec: ManagedSecurityGroups) -> tuple[str, ...]:
    text = egress.note(scope) if rules.is_egress_restricted(spec) else ""
    return (text,) if text else ()


def _find(scope: ClusterScope, suffix: str) -> Body | None:
    return scope.find("security_group", roles.group(suffix))


def _created(scope: ClusterScope, suffixes: Iterable[str]) -> dict[str, Body]:
    wanted = {
        roles.group(suffix): WantedSecurityGroup(
            stamp=scope.stamp(roles.group(suffix)), name=names.security_group(scope.resource_name, suffix)
        )
        for suffix in suffixes
    }
    return dict(zip(wanted, security_group.create_all(scope.cloud, list(wanted.values())), strict=True))


def rule_context(scope: ClusterScope, groups: dict[str, Body]) -> RuleContext:
    """Return the values that the cluster's rules refer to."""
    spec = scope.cluster.spec
    is_restricted = rules.is_egress_restricted(spec.managed_security_groups)
    return RuleContext(
        group_ids={suffix: body["id"] for suffix, body in groups.items()},
        api_ports=endpoint_policy.open_ports(spec, is_inherited=scope.is_inherited),
        additional_ports=endpoint_policy.ports(spec)[1:],
        subnet_cidrs=list(dict.fromkeys((*(each.cidr for each in scope.found.subnets), *failure_domains.cidrs(scope)))),
        api_servers=egress.api_servers(scope) if is_restricted else (),
        name_servers=egress.name_servers(scope) if is_restricted else (),
    )


def _with_rules(scope: ClusterScope, body: Body, wanted: Iterable[Rule], *, changes: list[str]) -> Body:
    """Replace the rules of a group with exactly these; new ones are created before old ones are deleted.

    Args:
        changes: receives the message about external changes that are not reverted.
    """
    wanted = tuple(wanted)
    was_in_place = scope.is_settled(CONDITION) and drift.is_shown(scope, body["id"])
    change, text = drift.of_rules(scope, body, wanted, was_in_place=was_in_place)
    if text:
        changes.append(text)
    if not change.missing and not change.surplus_ids:
        if not text:
            drift.confirm(scope, RULES, body["id"], security_group.digests(wanted))
        return body
    quota = scope.cloud_view.within_quota("security_group_rule", len(change.missing))
    with quota if change.missing else contextlib.nullcontext(), doubting(scope, "security_group", body["id"]):
        changed = security_group.change_rules(scope.cloud, body, change)
    drift.rules_repaired(scope, body, wanted, change, was_in_place=was_in_place)
    drift.confirm(scope, RULES, body["id"], security_group.digests(wanted))
    scope.cloud_view.upsert("security_group", changed)
    return changed


def _remove_group_of_bastion(scope: ClusterScope) -> None:
    """Delete the group of a deleted bastion; a group still in use is kept, which has no other effect."""
    if scope.bastion_object is not None:
        return
    body = _find(scope, BASTION)
    if body is None:
        return
    try:
        security_group.delete(scope.cloud, body["id"])
    except ConflictError as error:
        scope.emit(
            "FailedDeleteSecurityGroup",
            f"Group {body['id']} was not deleted, retrying: {error.message}",
            severity="Warning",
        )
        return
    scope.cloud_view.forget("security_group", body["id"])


def remove_security_groups(scope: ClusterScope) -> Outcome:
    """Delete all groups of the cluster; a failure does not stop the deletion of the others."""
    groups = scope.owned("security_group")
    try:
        attempts.try_each(groups, partial(_delete, scope))
    except CapoError:
        # The list of ports may be incomplete: the next attempt requires a new one.
        scope.cloud_view.mark_written("port")
        raise
    return NotNeeded()


def _delete(scope: ClusterScope, body: Body) -> None:
    try:
        security_group.delete(scope.cloud, body["id"])
    except ConflictError as error:
        group_id = body["id"]
        users = scope.cloud_view.list_matching("port", among=found_by(port.BY_GROUP, group_id))
        raise deletion_blockers.error(
            f"security group {group_id}", users, "port", error, is_own=lambda user: scope.is_on_own_network(user["id"])
        ) from error
    scope.cloud_view.forget("security_group", body["id"])
    scope.emit("SuccessfulDeleteSecurityGroup", f"Deleted group {body.get('name')} with id {body['id']}")
