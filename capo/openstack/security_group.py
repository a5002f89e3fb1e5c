"""Neutron security groups and their rules.

Rules are compared in the form in which Neutron stores them, not in the user's spelling: otherwise they would be deleted
and recreated in each reconcile (W-62). New rules are created before old ones are deleted, so that
no traffic is interrupted (W-65). Source: Networking API, "Security groups"; neutron/db/securitygroups_db.py for what is
stored and what counts as equal.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from api.v1beta2.network import SecurityGroupParam
from capo import names
from capo.errors import InvalidSpecError, SecurityGroupNotFoundError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import kinds, tags, view
from capo.openstack.cloud import Cloud
from capo.openstack.references import Reference

_REFERENCE: Final = Reference(kinds.SECURITY_GROUP, SecurityGroupNotFoundError)

_FULL_RANGE: Final = (1, 65535)
OPEN_EGRESS: Final = "Full open"
"""Description of the rules that permit all egress."""
_TOGETHER: Final = datetime.timedelta(seconds=2)
_EVERYWHERE: Final = ("0.0.0.0/0", "::/0")
_ICMP_V6: Final = ("icmp", "icmpv6", "1", "58")
_NAMES: Final[Mapping[str, str]] = {
    "1": "icmp",
    "2": "igmp",
    "4": "ipip",
    "6": "tcp",
    "17": "udp",
    "33": "dccp",
    "46": "rsvp",
    "47": "gre",
    "50": "esp",
    "51": "ah",
    "58": "ipv6-icmp",
    "89": "ospf",
    "112": "vrrp",
    "132": "sctp",
    "136": "udplite",
}


class SecurityGroup(view.View):
    """A security group as Neutron shows it. Source: Networking API, "Show security group"."""

    id = view.text("id")
    name = view.text("name")
    description = view.text("description")
    rules = view.objects("security_group_rules")


@dataclass(frozen=True)
class WantedSecurityGroup:
    """A security group to create; Neutron adds its two egress rules."""

    stamp: Stamp
    name: str
    description: str = names.SECURITY_GROUP_DESCRIPTION


@dataclass(frozen=True)
class Rule:
    """One rule, in any spelling.

    Args:
        direction: ``ingress`` or ``egress``.
        ethertype: ``IPv4`` or ``IPv6``; None or empty means IPv4.
        protocol: name or number; None, empty or ``any`` means all.
        port_range_min: first port, or ICMP type; None means all.
        port_range_max: last port, or ICMP code.
    """

    direction: str
    ethertype: str | None = "IPv4"
    description: str | None = None
    protocol: str | None = None
    port_range_min: int | None = None
    port_range_max: int | None = None
    remote_group_id: str | None = None
    remote_ip_prefix: str | None = None


class _Stored(NamedTuple):
    """The fields by which Neutron distinguishes rules; descriptions do not count."""

    direction: str
    ethertype: str
    protocol: str | None
    port_range_min: int | None
    port_range_max: int | None
    remote_group_id: str | None
    remote_ip_prefix: str | None
    remote_address_group_id: str | None


class Difference(NamedTuple):
    """Changes that turn the rules of a group into the wanted ones.

    Args:
        missing: to create first, each once.
        surplus_ids: to delete then.
    """

    missing: tuple[Rule, ...]
    surplus_ids: tuple[str, ...]


def create(cloud: Cloud, wanted: WantedSecurityGroup) -> Body:
    """Create a group; its body has its rules as ``security_group_rules``."""
    body: Body = cloud.post("network", "/security-groups", json=request(wanted))["security_group"]
    return body


def create_all(cloud: Cloud, wanted: Sequence[WantedSecurityGroup]) -> list[Body]:
    """Create groups in one call, all or none; return them in the same order."""
    bodies = [request(each)["security_group"] for each in wanted]
    made = cloud.post("network", "/security-groups", json={"security_groups": bodies})["security_groups"]
    by_stamp = {body["description"]: body for body in made}
    return [by_stamp[body["description"]] for body in bodies]


def get(cloud: Cloud, group_id: str) -> Body:
    """Return a group, read from Neutron.

    Raises:
        NotFoundError: it does not exist.
    """
    body: Body = cloud.get("network", f"/security-groups/{group_id}")["security_group"]
    return body


def delete(cloud: Cloud, group_id: str) -> None:
    """Delete a group with its rules; succeed if it does not exist.

    Raises:
        ConflictError: a port uses it, or a rule of another group refers to it.
    """
    cloud.remove("network", f"/security-groups/{group_id}")


def replace_tags(cloud: Cloud, body: Mapping[str, Any], wanted: Sequence[str]) -> Body:
    """Replace the tags of a group; return its body with them."""
    return tags.replace(cloud, "security-groups", body, wanted)


def create_rules(cloud: Cloud, group_id: str, rules: Sequence[Rule]) -> list[Body]:
    """Create rules of one group in one call, all or none; return them as Neutron stored them."""
    if not rules:
        return []
    bodies = [rule_request(group_id, rule) for rule in rules]
    made: list[Body] = cloud.post("network", "/security-group-rules", json={"security_group_rules": bodies})[
        "security_group_rules"
    ]
    return made


def delete_rule(cloud: Cloud, rule_id: str) -> None:
    """Delete a rule; succeed if it does not exist."""
    cloud.remove("network", f"/security-group-rules/{rule_id}")


def update_rules(cloud: Cloud, body: Mapping[str, Any], wanted: Iterable[Rule]) -> Body:
    """Replace the rules of a group; return the updated group.

    Args:
        body: the group with its current rules.
    """
    return change_rules(cloud, body, rule_difference(wanted, body["security_group_rules"]))


def change_rules(cloud: Cloud, body: Mapping[str, Any], change: Difference) -> Body:
    """Change the rules of a group, creating new ones before deleting old ones; return the updated group.

    Args:
        body: the group with its current rules.
    """
    made = create_rules(cloud, body["id"], change.missing)
    for rule_id in change.surplus_ids:
        delete_rule(cloud, rule_id)
    kept = [rule for rule in body["security_group_rules"] if rule["id"] not in change.surplus_ids]
    return {**body, "security_group_rules": [*kept, *made]}


def request(wanted: WantedSecurityGroup) -> Body:
    """Return the body of the create."""
    description = names.stamped(wanted.description, wanted.stamp)
    return {"security_group": {"name": wanted.name, "description": description}}


def rule_request(group_id: str, rule: Rule) -> Body:
    """Return one rule as the create sends it: as Neutron would store it, with its description.

    Raises:
        InvalidSpecError: the prefix is not an address or CIDR.
    """
    stored = _of_wanted(rule)._asdict()
    return {
        "security_group_id": group_id,
        **({"description": rule.description} if rule.description else {}),
        **{name: value for name, value in stored.items() if value is not None},
    }


def rule_difference(wanted: Iterable[Rule], found: Iterable[Mapping[str, Any]]) -> Difference:
    """Return the missing and the surplus rules; rules that Neutron stores alike are one.

    Args:
        found: rules as returned by Neutron.

    Raises:
        InvalidSpecError: a prefix is not an address or CIDR.
    """
    wants = {_of_wanted(rule): rule for rule in reversed(list(wanted))}
    has = {_of_found(rule): str(rule["id"]) for rule in found}
    missing = [rule for stored, rule in reversed(wants.items()) if stored not in has]
    surplus = [rule_id for stored, rule_id in has.items() if stored not in wants]
    return Difference(tuple(missing), tuple(surplus))


class Merge(NamedTuple):
    """What is left of the difference from wanted rules when external changes are kept.

    Args:
        edits: of the spec since the rules were applied last.
        removed: rules that were applied and are missing.
        added: rules of the group that were never applied.
    """

    edits: Difference
    removed: tuple[Rule, ...]
    added: tuple[Mapping[str, Any], ...]


def merge(wanted: Iterable[Rule], group: Mapping[str, Any], applied: Collection[str] | None) -> Merge:
    """Separate edits from external changes.

    Args:
        group: the group with its current rules.
        applied: digests of the rules that were applied last. None: unknown, then nothing is deleted but open egress
            that no other program permitted.
    """
    wanted, found = tuple(wanted), SecurityGroup(dict(group)).rules
    difference = rule_difference(wanted, found)
    known = frozenset(applied or ())
    surplus = [rule for rule in found if str(rule["id"]) in difference.surplus_ids]
    is_new = applied is None and all(map(_is_open_egress, found))
    outdated = [
        rule for rule in surplus if is_new or _digest(_of_found(rule)) in known or _is_open_by_default(rule, group)
    ]
    missing = tuple(rule for rule in difference.missing if _digest(_of_wanted(rule)) not in known)
    edits = Difference(missing, tuple(str(rule["id"]) for rule in outdated))
    removed = tuple(rule for rule in difference.missing if rule not in missing)
    return Merge(edits, removed, tuple(rule for rule in surplus if rule not in outdated))


def _is_open_egress(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule permits all egress of an IP version, as the two do that Neutron adds to new groups."""
    return _of_found(rule)[2:] == (None,) * 6 and rule["direction"] == "egress"


def _is_open_by_default(rule: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Return whether a rule permits all egress, and Neutron or the provider created it rather than another user.

    The run that replaces these rules may have been interrupted, and rules of others beside them prove nothing.
    """
    if not _is_open_egress(rule):
        return False
    return rule.get("description") == OPEN_EGRESS or _came_with(rule, group)


def _came_with(rule: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Return whether Neutron created a rule together with its group, which it does within a second or two."""
    moments = (rule.get("created_at"), group.get("created_at"))
    try:
        of_rule, of_group = (datetime.datetime.fromisoformat(str(each)) for each in moments)
        return abs(of_rule - of_group) <= _TOGETHER
    except (ValueError, TypeError):  # a Neutron without times, or with different kinds of them
        return False


def digests(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return a short text for each rule, sorted; rules that Neutron stores alike have the same."""
    return tuple(sorted({_digest(_of_wanted(rule)) for rule in rules}))


def _digest(rule: _Stored) -> str:
    return hashlib.sha256("\0".join(map(str, rule)).encode()).hexdigest()[:12]


def in_words(rule: Rule | Mapping[str, Any]) -> str:
    """Return a rule in a few words, such as ``ingress IPv4 tcp 22 192.0.2.0/24``."""
    stored = _of_wanted(rule) if isinstance(rule, Rule) else _of_found(rule)
    low, high = stored.port_range_min, stored.port_range_max
    ports = f"{low}" if low == high else f"{low}-{high}"
    remote = stored.remote_group_id or stored.remote_ip_prefix or stored.remote_address_group_id or "any"
    protocol = stored.protocol or "any"
    parts = (stored.direction, stored.ethertype, protocol, "" if low is None else ports, remote)
    return " ".join(part for part in parts if part)


def _of_wanted(rule: Rule) -> _Stored:
    ethertype = {"ipv4": "IPv4", "ipv6": "IPv6"}.get((rule.ethertype or "IPv4").lower(), rule.ethertype or "IPv4")
    protocol = _protocol(rule.protocol, ethertype)
    first, last = rule.port_range_min, rule.port_range_max
    if (first, last) == _FULL_RANGE:
        first = last = None
    return _Stored(
        rule.direction.lower(),
        ethertype,
        protocol,
        first,
        last,
        rule.remote_group_id or None,
        _prefix(rule.remote_ip_prefix),
        None,
    )


def _of_found(rule: Mapping[str, Any]) -> _Stored:
    return _Stored(
        rule["direction"],
        rule["ethertype"],
        _protocol(rule.get("protocol"), rule["ethertype"]),
        rule.get("port_range_min"),
        rule.get("port_range_max"),
        rule.get("remote_group_id"),
        _prefix(rule.get("remote_ip_prefix")),
        rule.get("remote_address_group_id"),
    )


def _protocol(protocol: str | None, ethertype: str) -> str | None:
    """Return a protocol by its name; Neutron treats name and number of a protocol as equal."""
    text = str(protocol or "any").lower()
    if text == "any":
        return None
    if ethertype == "IPv6" and text in _ICMP_V6:
        return "ipv6-icmp"
    return _NAMES.get(text, text)


def _prefix(prefix: str | None) -> str | None:
    """Return a prefix as a CIDR with its host bits cleared; None for all addresses."""
    if not prefix:
        return None
    try:
        cidr = str(ipaddress.ip_network(prefix, strict=False))
    except ValueError as error:
        raise InvalidSpecError(f"security group rule: {error}") from error
    return None if cidr in _EVERYWHERE else cidr


def listed(cloud: Cloud, wanted: SecurityGroupParam) -> list[str]:
    """Return the ids of the named groups, at least one, by lists alone.

    Raises:
        SecurityGroupNotFoundError: the lists have none.
    """
    if wanted.id:
        return [str(group["id"]) for group in _REFERENCE.listed(cloud, wanted.id, None)]
    return [str(group["id"]) for group in _REFERENCE.all(cloud, _query(cloud, wanted))]


def resolve(cloud: Cloud, wanted: Iterable[SecurityGroupParam]) -> list[str]:
    """Return the ids of all named groups, each once, in order; those given by id are not looked up.

    Raises:
        SecurityGroupNotFoundError: a filter matches none.
    """
    ids: list[str] = []
    for param in wanted:
        if param.id:
            ids.append(param.id)
            continue
        ids += [str(group["id"]) for group in _REFERENCE.all(cloud, _query(cloud, param))]
    return list(dict.fromkeys(ids))


def _query(cloud: Cloud, wanted: SecurityGroupParam) -> dict[str, Any]:
    """Return a filter as a query for groups of the project, unless the filter names another project."""
    return {"project_id": cloud.project_id, **_REFERENCE.query(wanted.filter)}
