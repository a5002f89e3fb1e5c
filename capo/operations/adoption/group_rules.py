"""The field ``managedSecurityGroups`` of groups that exist; pure.

Options where they explain rules, single rules for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2 import OpenStackClusterSpec
from api.v1beta2.securitygroups import ManagedSecurityGroups
from capo.json_types import Body, Json
from capo.openstack import security_group
from capo.openstack.security_group import SecurityGroup, in_words
from capo.operations.adoption.search import FoundCluster
from controllers import roles
from controllers.openstackcluster import endpoint_policy, rules
from controllers.openstackcluster.rules import RuleContext
from controllers.roles import BASTION, CONTROL_PLANE, WORKER

_FIELDS: Final = {
    CONTROL_PLANE: "controlPlaneNodesSecurityGroupRules",
    WORKER: "workerNodesSecurityGroupRules",
}
_COPIED: Final = {
    "direction": "direction",
    "etherType": "ethertype",
    "protocol": "protocol",
    "portRangeMin": "port_range_min",
    "portRangeMax": "port_range_max",
    "remoteIPPrefix": "remote_ip_prefix",
    "description": "description",
}


@dataclass(frozen=True)
class Groups:
    """The field, empty without managed groups, and what the controller will change in them."""

    spec: Json
    findings: Sequence[str] = ()


def managed_security_groups(found: FoundCluster, spec: OpenStackClusterSpec) -> Groups:
    """Return the field for the groups of a cluster.

    Args:
        spec: all other fields.
    """
    bodies = {each: body for each in (CONTROL_PLANE, WORKER, BASTION) if (body := found.body(roles.group(each)))}
    if not {CONTROL_PLANE, WORKER} <= bodies.keys():
        return Groups({})
    options = _options(bodies)
    wanted = rules.wanted(ManagedSecurityGroups.model_validate(options), _context(found, spec, bodies)).rules
    own = {suffix: _users(suffix, body, bodies, wanted[suffix]) for suffix, body in bodies.items() if suffix in _FIELDS}
    field = {**options, **{_FIELDS[suffix]: entries for suffix, entries in own.items() if entries}}
    findings = [text for suffix, body in bodies.items() for text in _findings(suffix, body, wanted[suffix])]
    return Groups({"managedSecurityGroups": field}, findings)


def _options(bodies: Mapping[str, Body]) -> Json:
    found = SecurityGroup(bodies[CONTROL_PLANE]).rules
    is_open_within = any(
        _is_any(each) and each["direction"] == "ingress" and each.get("remote_group_id") for each in found
    )
    is_open_outside = any(_is_any(each) and each["direction"] == "egress" and not _remote(each) for each in found)
    return {
        **({"allowAllInClusterTraffic": True} if is_open_within else {}),
        **({} if is_open_outside else {"allowAllOutboundTraffic": False}),
    }


def _is_any(rule: Body) -> bool:
    return not rule.get("protocol") and rule.get("port_range_min") is None


def _remote(rule: Body) -> Any:
    return rule.get("remote_group_id") or rule.get("remote_ip_prefix") or rule.get("remote_address_group_id")


def _context(found: FoundCluster, spec: OpenStackClusterSpec, bodies: Mapping[str, Body]) -> RuleContext:
    subnets = (found.body(roles.SUBNET), found.body(roles.ADDITIONAL_SUBNET), *found.subnets)
    return RuleContext(
        group_ids={suffix: body["id"] for suffix, body in bodies.items() if suffix != BASTION or found.bastion},
        api_ports=endpoint_policy.open_ports(spec, is_inherited=False),
        additional_ports=endpoint_policy.ports(spec)[1:],
        subnet_cidrs=[body["cidr"] for body in subnets if body],
    )


def _users(suffix: str, body: Body, bodies: Mapping[str, Body], wanted: Sequence[security_group.Rule]) -> list[Json]:
    """Return the rules of a group that the options do not explain, as a user would have written them."""
    found = SecurityGroup(body).rules
    surplus = set(security_group.rule_difference(wanted, found).surplus_ids)
    of_group = {each["id"]: name for name, each in bodies.items()}
    ours = [each for each in found if str(each["id"]) in surplus and not each.get("remote_address_group_id")]
    return [_entry(f"{suffix}-{index}", rule, of_group) for index, rule in enumerate(ours, start=1)]


def _entry(name: str, rule: Body, of_group: Mapping[str, str]) -> Json:
    remote = rule.get("remote_group_id")
    managed = of_group.get(str(remote))
    copied = {field: rule.get(key) for field, key in _COPIED.items()}
    return {
        "name": name,
        **{field: value for field, value in copied.items() if value not in (None, "")},
        **({"remoteManagedGroups": [managed]} if managed else {"remoteGroupID": remote} if remote else {}),
    }


def _findings(suffix: str, body: Body, wanted: Sequence[security_group.Rule]) -> Iterator[str]:
    """Yield what the controller will create in a group, and delete from it."""
    found = SecurityGroup(body).rules
    difference = security_group.rule_difference(wanted, found)
    group = f"security group {body['id']} ({suffix})"
    for rule in difference.missing:
        yield f"{group} lacks the rule {in_words(rule)}: the provider creates it"
    for each in found:
        is_surplus = str(each["id"]) in difference.surplus_ids
        if is_surplus and (each.get("remote_address_group_id") or suffix not in _FIELDS):
            yield f"{group} has the rule {in_words(each)}, which no field can name: the provider deletes it"
