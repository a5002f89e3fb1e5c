"""External changes of the resources of a cluster: repaired, reported or ignored, as ``spec.driftPolicy`` says.

An edit of the spec is always applied. A difference is an external change if the wanted state was in place before: this
process saw it, or the status shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from capo.errors import CapoError
from capo.openstack import security_group
from capo.openstack.security_group import Rule, SecurityGroup
from controllers import drift
from controllers.drift import Policy
from controllers.openstackcluster.scope import ClusterScope


def policy_of(scope: ClusterScope, field: str, *, default: Policy = Policy.REPAIR) -> Policy:
    """Return what the spec says about a kind."""
    return drift.of_spec(scope.cluster.spec.drift_policy, field, default=default)


@dataclass(frozen=True)
class Change:
    """A resource that is not as the spec wants it.

    Args:
        field: of the policy.
        wanted: the wanted state; compared with the one that this process saw in place.
        text: what differs, in a few words.
        was_in_place: whether the status shows that the wanted state was in place.
        default: what is done about it where the spec does not say.
    """

    field: str
    resource_id: str
    wanted: Any
    text: str
    was_in_place: bool
    default: Policy = Policy.REPAIR


def held(scope: ClusterScope, found: Change) -> str | None:
    """Return the message of a change that is not repaired now, empty if it is ignored; None if it is to be repaired."""
    policy = policy_of(scope, found.field, default=found.default)
    if not is_drift(scope, found):
        return None
    sentence = f"{found.text} changed externally"
    if policy is Policy.REPAIR:
        reason = scope.repairs.postponed(found.field, found.resource_id)
        return drift.with_reason(sentence, reason) if reason else None
    return sentence if policy is Policy.REPORT else ""


def is_drift(scope: ClusterScope, found: Change) -> bool:
    """Return whether a difference is an external change, as opposed to an edit of the spec or a new resource."""
    seen = scope.repairs.confirmed(found.field, found.resource_id)
    return found.was_in_place if seen is None else seen == drift.digest(found.wanted)


def confirm(scope: ClusterScope, field: str, resource_id: str, wanted: Any) -> None:
    """Record that the wanted state of a resource is in place."""
    scope.repairs.confirm(field, resource_id, drift.digest(wanted))


def repaired(scope: ClusterScope, field: str, resource_id: str, text: str) -> None:
    """Record a repair and emit its Event.

    Args:
        text: what was there before and what is there now.
    """
    scope.repairs.note(field, resource_id)
    scope.emit(drift.EVENT, text)


def failed(scope: ClusterScope, field: str, resource_id: str, error: CapoError) -> None:
    """Record a repair that was refused; the next one follows later."""
    scope.repairs.note(field, resource_id, error=error)


def is_shown(scope: ClusterScope, resource_id: str) -> bool:
    """Return whether the status shows a network, subnet, router or group: its step was done with it at least once.

    What another provider reported may never have had what this one adds.
    """
    if scope.context.is_taken_over:
        return False
    status = scope.cluster.status
    groups = (status.control_plane_security_group, status.worker_security_group, status.bastion_security_group)
    subnets = status.network.subnets if status.network else ()
    return any(
        each is not None and each.id == resource_id for each in (status.network, status.router, *subnets, *groups)
    )


def is_address_shown(scope: ClusterScope, address: str) -> bool:
    """Return whether the status shows a floating IP: its step was done with it at least once."""
    if scope.context.is_taken_over:
        return False
    balancer, bastion = scope.cluster.status.api_server_managed_load_balancer, scope.cluster.status.bastion
    return address in (balancer.ip if balancer else None, bastion.floating_ip if bastion else None)


def of_rules(
    scope: ClusterScope, body: Mapping[str, Any], wanted: Iterable[Rule], *, was_in_place: bool
) -> tuple[security_group.Difference, str]:
    """Return the changes to make to the rules of a group, and the message about those that are not made.

    Args:
        was_in_place: whether the status shows that the rules of the present spec were in place.
    """
    wanted, found = tuple(wanted), SecurityGroup(dict(body)).rules
    group_id, policy = str(body["id"]), policy_of(scope, drift.RULES)
    full = security_group.rule_difference(wanted, found)
    if policy is not Policy.REPAIR:
        applied = {each.id: each.rules for each in scope.cluster.status.applied_rules}
        merged = security_group.merge(wanted, body, applied.get(group_id))
        text = _of_group(group_id, _rules(merged.removed), _rules(merged.added))
        return merged.edits, text if policy is Policy.REPORT and (merged.removed or merged.added) else ""
    if not (full.missing or full.surplus_ids):
        return full, ""
    text = _of_group(group_id, _rules(full.missing), _rules(_surplus(found, full)))
    digests = security_group.digests(wanted)
    is_external = is_drift(scope, Change(drift.RULES, group_id, digests, text, was_in_place))
    if is_external and (reason := scope.repairs.postponed(drift.RULES, group_id)):
        return security_group.Difference((), ()), drift.with_reason(text, reason)
    return full, ""


def applied_rules(scope: ClusterScope, groups: Mapping[str, Iterable[Rule]]) -> list[dict[str, Any]] | None:
    """Return ``status.appliedRules`` after the rules of these groups, by id, were applied; None if not needed."""
    if policy_of(scope, drift.RULES) is Policy.REPAIR:
        return None
    return [{"id": id_, "rules": list(security_group.digests(rules))} for id_, rules in sorted(groups.items())]


def rules_repaired(
    scope: ClusterScope,
    body: Mapping[str, Any],
    wanted: Iterable[Rule],
    change: security_group.Difference,
    *,
    was_in_place: bool,
) -> None:
    """Emit the Event of rules that were changed, unless it was an edit of the spec or a new group."""
    digests, group_id = security_group.digests(wanted), str(body["id"])
    before = _of_group(group_id, _rules(change.missing), _rules(_surplus(SecurityGroup(dict(body)).rules, change)))
    is_repairing = policy_of(scope, drift.RULES) is Policy.REPAIR
    if is_repairing and is_drift(scope, Change(drift.RULES, group_id, digests, before, was_in_place)):
        done = "; ".join(
            text
            for text, is_done in (
                ("created what was removed", change.missing),
                ("deleted what was added", change.surplus_ids),
            )
            if is_done
        )
        repaired(scope, drift.RULES, group_id, f"{before}; {done}")


def _of_group(group_id: str, removed: list[str], added: list[str]) -> str:
    parts = [f"removed: {drift.listing(removed)}" if removed else "", f"added: {drift.listing(added)}" if added else ""]
    return f"rules of security group {group_id} changed externally: {'; '.join(filter(None, parts))}"


def _rules(rules: Iterable[Rule | Mapping[str, Any]]) -> list[str]:
    return [security_group.in_words(rule) for rule in rules]


def _surplus(found: Iterable[Mapping[str, Any]], change: security_group.Difference) -> list[Mapping[str, Any]]:
    return [rule for rule in found if str(rule["id"]) in change.surplus_ids]
