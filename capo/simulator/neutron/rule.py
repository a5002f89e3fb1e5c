"""Security group rules: normalised as Neutron does, without duplicates."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks
from capo.simulator.neutron.kind import REQUIRED, Attribute, Caller, Kind, new, own, touch
from capo.simulator.neutron.service import broken
from capo.simulator.routing import Fault

PROTOCOLS: Final = {
    "ah": 51,
    "dccp": 33,
    "egp": 8,
    "esp": 50,
    "gre": 47,
    "hopopt": 0,
    "icmp": 1,
    "igmp": 2,
    "ip": 0,
    "ipip": 4,
    "ipv6-encap": 41,
    "ipv6-frag": 44,
    "ipv6-icmp": 58,
    "icmpv6": 58,
    "ipv6-nonxt": 59,
    "ipv6-opts": 60,
    "ipv6-route": 43,
    "ospf": 89,
    "pgm": 113,
    "rsvp": 46,
    "sctp": 132,
    "tcp": 6,
    "udp": 17,
    "udplite": 136,
    "vrrp": 112,
}
WITH_PORTS: Final = {6, 17, 33, 132, 136}
ICMP: Final = {1, 58}
V6_ONLY: Final = {41, 43, 44, 58, 59, 60}
EVERYWHERE: Final = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}
ALL_PORTS: Final = (1, 65535)
# The fields that distinguish rules; the description does not.
IDENTITY: Final = (
    "security_group_id",
    "direction",
    "ethertype",
    "port_range_min",
    "port_range_max",
    "remote_group_id",
    "remote_address_group_id",
)


def missing(rule_id: str) -> Fault:
    return Fault(404, f"Security group rule {rule_id} does not exist", "SecurityGroupRuleNotFound")


def _protocol(value: Any) -> str | None:
    if value is None or str(value).lower() == "any":
        return None
    text = str(value).lower()
    if text in PROTOCOLS or (text.isdigit() and int(text) <= 255):
        return text
    names = ", ".join(f"'{name}'" for name in ("any", *PROTOCOLS))
    raise Fault(
        400,
        f"Security group rule protocol {text} not supported. Only protocol values (None, {names}) and integer "
        "representations [0 to 255] are supported.",
        "SecurityGroupRuleInvalidProtocol",
    )


def _port(value: Any) -> int | None:
    if value is None:
        return None
    try:
        port = int(value)
    except (TypeError, ValueError):
        port = -1
    if not 0 <= port <= 65535:
        raise Fault(400, f"Invalid value for port {value}", "SecurityGroupInvalidPortValue")
    return port


def _ethertype(value: Any) -> str:
    for known in EVERYWHERE:
        if str(value).lower() == known.lower():
            return known
    message = f"Security group rule for ethertype '{value}' not supported. Allowed values are ['IPv4', 'IPv6']."
    raise Fault(400, message, "SecurityGroupRuleInvalidEtherType")


def _prefix(value: Any) -> str | None:
    if value is None:
        return None
    try:
        ipaddress.ip_network(value, strict=False)
    except (ValueError, TypeError) as error:
        raise Fault(400, f"Invalid CIDR {value} given as IP prefix.", "InvalidCIDR") from error
    if "/" in str(value):
        return str(value)
    return f"{value}/{ipaddress.ip_address(value).max_prefixlen}"


def number(protocol: str | None) -> int | None:
    """Return a protocol's number, None for any."""
    if protocol is None:
        return None
    return PROTOCOLS[protocol] if protocol in PROTOCOLS else int(protocol)


def add(cloud: Cloud, group: Json, **values: Any) -> Json:
    """Add a rule of Neutron's own to a new group."""
    nothing = dict.fromkeys(("protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"))
    project_id = group["project_id"]
    return _store(
        cloud,
        group,
        {
            "project_id": project_id,
            "tenant_id": project_id,
            "security_group_id": group["id"],
            "description": None,
            "remote_address_group_id": None,
            **nothing,
            **values,
        },
    )


def create(cloud: Cloud, values: Json, caller: Caller) -> Json:
    group = _group(cloud, values, caller)
    _normalise(cloud, values)
    twin = _twin(cloud, values)
    if twin is not None:
        raise Fault(409, f"Security group rule already exists. Rule id is {twin['id']}.", "SecurityGroupRuleExists")
    made = _store(cloud, group, values)
    touch(cloud, group)
    return made


def create_bulk(cloud: Cloud, bodies: list[Json], caller: Caller) -> list[Json]:
    """Create all rules or none; they belong to one group and differ from each other."""
    if len({values["security_group_id"] for values in bodies}) > 1:
        message = "Only allowed to update rules for one security profile at a time"
        raise Fault(400, message, "SecurityGroupNotSingleGroupRules")
    for values in bodies:
        _group(cloud, values, caller)
        _normalise(cloud, values)
    for one, other in itertools.combinations(bodies, 2):
        if _identity(one) == _identity(other):
            raise Fault(409, "Duplicate Security Group Rule in POST.", "DuplicateSecurityGroupRuleInPost")
    for values in bodies:
        twin = _twin(cloud, values)
        if twin is not None:
            raise Fault(409, f"Security group rule already exists. Rule id is {twin['id']}.", "SecurityGroupRuleExists")
    return [create(cloud, values, caller) for values in bodies]


def _group(cloud: Cloud, values: Json, caller: Caller) -> Json:
    group: Json | None = cloud.table("network", "security_groups").get(values["security_group_id"])
    if group is None or not own(cloud, group, caller):
        message = f"Security group {values['security_group_id']} does not exist"
        raise Fault(404, message, "SecurityGroupNotFound")
    return group


def _normalise(cloud: Cloud, values: Json) -> None:
    """Check combinations and normalise what Neutron normalises."""
    _check_ports(values)
    _check_ethertype(values)
    remote = values["remote_group_id"]
    if remote is not None:
        if values["remote_ip_prefix"] is not None:
            message = "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided."
            raise Fault(400, message, "SecurityGroupMultipleRemoteEntites")
        if remote not in cloud.table("network", "security_groups"):
            raise Fault(404, f"Security group {remote} does not exist", "SecurityGroupNotFound")
    is_icmp = number(values["protocol"]) in ICMP
    if not is_icmp and (values["port_range_min"], values["port_range_max"]) == ALL_PORTS:
        values["port_range_min"] = values["port_range_max"] = None
    if is_icmp and values["ethertype"] == "IPv6":
        values["protocol"] = "ipv6-icmp"


def _check_ports(values: Json) -> None:
    low, high, protocol = values["port_range_min"], values["port_range_max"], number(values["protocol"])
    if low is None and high is None:
        return
    if protocol is None:
        message = "Must also specify protocol if port range is given."
        raise Fault(400, message, "SecurityGroupProtocolRequiredWithPorts")
    if protocol in ICMP:
        _check_icmp(low, high)
    elif protocol not in WITH_PORTS:
        raise Fault(
            400,
            f"Ports cannot be specified for protocol {protocol}. Ports are only supported for "
            "DCCP, SCTP, TCP, UDP, UDPLITE.",
            "SecurityGroupInvalidProtocolForPort",
        )
    elif 0 in {low, high}:
        raise Fault(400, "Invalid value for port 0", "SecurityGroupInvalidPortValue")
    elif low is None or high is None or low > high:
        message = "For TCP/UDP protocols, port_range_min must be <= port_range_max"
        raise Fault(400, message, "SecurityGroupInvalidPortRange")


def _check_icmp(low: int | None, high: int | None) -> None:
    for attribute, name, value in (("port_range_min", "type", low), ("port_range_max", "code", high)):
        if value is not None and value > 255:
            message = f"Invalid value for ICMP {name} ({attribute}) {value}. It must be 0 to 255."
            raise Fault(400, message, "SecurityGroupInvalidIcmpValue")
    if low is None:
        message = f"ICMP code (port-range-max) {high} is provided but ICMP type (port-range-min) is missing."
        raise Fault(400, message, "SecurityGroupMissingIcmpType")


def _check_ethertype(values: Json) -> None:
    ethertype, prefix = values["ethertype"], values["remote_ip_prefix"]
    if ethertype == "IPv4" and number(values["protocol"]) in V6_ONLY:
        message = f"Invalid ethertype {ethertype} for protocol {values['protocol']}."
        raise Fault(400, message, "SecurityGroupEthertypeConflictWithProtocol")
    if prefix is not None and f"IPv{ipaddress.ip_network(prefix, strict=False).version}" != ethertype:
        message = f"Conflicting value ethertype {ethertype} for CIDR {prefix}"
        raise Fault(400, message, "SecurityGroupRuleParameterConflict")


def _identity(values: Json) -> tuple[Any, ...]:
    prefix = values["remote_ip_prefix"]
    if prefix == EVERYWHERE[values["ethertype"]]:
        prefix = None
    return (*(values[name] for name in IDENTITY), number(values["protocol"]), prefix)


def _twin(cloud: Cloud, values: Json) -> Json | None:
    wanted = _identity(values)
    return next((found for found in KIND.table(cloud).values() if _identity(found) == wanted), None)


def _store(cloud: Cloud, group: Json, values: Json) -> Json:
    prefix = values["remote_ip_prefix"]
    rule = new(cloud, values, revision=0)
    rule["normalized_cidr"] = str(ipaddress.ip_network(prefix, strict=False)) if prefix else None
    rule["belongs_to_default_sg"] = group["name"] == "default"
    KIND.table(cloud)[rule["id"]] = rule
    return rule


def update(_cloud: Cloud, _rule: Json, _changes: Json, _caller: Caller) -> None:
    """Refuse: this release of Neutron declares the description writable and then fails on it."""
    raise broken()


def delete(cloud: Cloud, rule: Json, _: Caller) -> None:
    KIND.table(cloud).pop(rule["id"])
    group = cloud.table("network", "security_groups").get(rule["security_group_id"])
    if group is not None:
        touch(cloud, group)


def view(_: Cloud, rule: Json) -> Json:
    return {key: value for key, value in rule.items() if key != "tags"}


def nested(rule: Json) -> Json:
    """Return a rule as its group shows it."""
    number_of_attributes = int(rule["id"][:8], 16) % 100_000
    return {**rule, "standard_attr_id": number_of_attributes}


def _is_visible(cloud: Cloud, rule: Json, caller: Caller) -> bool:
    return own(cloud, rule, caller)


KIND: Final = Kind(
    name="security_group_rule",
    plural="security_group_rules",
    path="security-group-rules",
    attributes=(
        Attribute("security_group_id", "PFS", checks.string(36), REQUIRED),
        Attribute("remote_group_id", "PFS", default=None),
        Attribute("remote_address_group_id", "PFS", default=None),
        Attribute("direction", "PFS", checks.one_of(("ingress", "egress")), REQUIRED),
        Attribute("protocol", "PFS", _protocol, None),
        Attribute("port_range_min", "PFS", _port, None),
        Attribute("port_range_max", "PFS", _port, None),
        Attribute("ethertype", "PFS", _ethertype, "IPv4"),
        Attribute("remote_ip_prefix", "PFS", _prefix, None),
        Attribute("normalized_cidr", "FS"),
        Attribute("belongs_to_default_sg", "F", checks.boolean),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=_is_visible,
    is_owner=own,
    unfiltered=frozenset({"belongs_to_default_sg", "normalized_cidr"}),
    filter_values={
        "ethertype": _ethertype,
        "port_range_max": _port,
        "port_range_min": _port,
        "protocol": _protocol,
        "remote_ip_prefix": _prefix,
    },
    has_tags=False,
    create_bulk=create_bulk,
)
