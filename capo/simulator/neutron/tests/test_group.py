from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import NOWHERE, V2, refusal
from capo.simulator.testing import Client

RULES = f"{V2}/security-group-rules"
TCP = {"direction": "ingress", "protocol": "tcp"}


def test_a_new_group_lets_everything_out(member: Client) -> None:
    rules = build.group(member, name="g")["security_group_rules"]

    assert sorted((rule["direction"], rule["ethertype"]) for rule in rules) == [("egress", "IPv4"), ("egress", "IPv6")]


def test_a_project_has_a_default_group_that_lets_its_own_in(member: Client) -> None:
    groups = member.ask("GET", f"{V2}/security-groups")["security_groups"]

    inwards = [rule for rule in groups[0]["security_group_rules"] if rule["direction"] == "ingress"]
    assert [group["name"] for group in groups] == ["default"]
    assert [rule["remote_group_id"] for rule in inwards] == [groups[0]["id"]] * 2


def test_there_is_one_default_group(member: Client) -> None:
    answer = member.request("POST", f"{V2}/security-groups", {"security_group": {"name": "default"}})

    assert refusal(answer) == (409, "SecurityGroupDefaultAlreadyExists", "Default security group already exists.")


def test_the_default_group_is_not_deleted(member: Client) -> None:
    group_id = member.ask("GET", f"{V2}/security-groups")["security_groups"][0]["id"]

    answer = member.request("DELETE", f"{V2}/security-groups/{group_id}")

    assert refusal(answer)[:2] == (409, "SecurityGroupCannotRemoveDefault")


def test_a_group_on_a_port_is_not_deleted(member: Client) -> None:
    group_id, network_id = build.group(member)["id"], build.network(member)["id"]
    build.subnet(member, network_id)
    build.port(member, network_id, security_groups=[group_id])

    answer = member.request("DELETE", f"{V2}/security-groups/{group_id}")

    assert refusal(answer) == (409, "SecurityGroupInUse", f"Security Group {group_id} in use.")


def test_a_group_goes_with_its_rules_and_those_that_name_it(member: Client) -> None:
    kept, gone = build.group(member)["id"], build.group(member)["id"]
    build.rule(member, kept, remote_group_id=gone)
    build.rule(member, gone, protocol="tcp")

    member.request("DELETE", f"{V2}/security-groups/{gone}")

    assert member.ask("GET", f"{RULES}?remote_group_id={gone}") == {"security_group_rules": []}
    assert member.ask("GET", f"{RULES}?security_group_id={gone}") == {"security_group_rules": []}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        pytest.param({"protocol": "TCP"}, {"protocol": "tcp"}, id="protocol in capitals"),
        pytest.param({"protocol": 6}, {"protocol": "6"}, id="protocol by number"),
        pytest.param({"protocol": "any"}, {"protocol": None}, id="any protocol"),
        pytest.param({"ethertype": "ipv4"}, {"ethertype": "IPv4"}, id="ethertype"),
        pytest.param(
            {"protocol": "icmpv6", "ethertype": "IPv6"}, {"protocol": "ipv6-icmp"}, id="old name of ICMP version 6"
        ),
        pytest.param({"protocol": "icmp", "ethertype": "IPv6"}, {"protocol": "ipv6-icmp"}, id="ICMP on version 6"),
        pytest.param(
            {"remote_ip_prefix": "10.0.0.5/24"},
            {"remote_ip_prefix": "10.0.0.5/24", "normalized_cidr": "10.0.0.0/24"},
            id="prefix with host bits",
        ),
        pytest.param(
            {"remote_ip_prefix": "10.0.0.5"},
            {"remote_ip_prefix": "10.0.0.5/32", "normalized_cidr": "10.0.0.5/32"},
            id="address",
        ),
        pytest.param(
            {"protocol": "udp", "port_range_min": 1, "port_range_max": 65535},
            {"port_range_min": None, "port_range_max": None},
            id="all ports",
        ),
        pytest.param(
            {"protocol": "tcp", "port_range_min": "22", "port_range_max": 22}, {"port_range_min": 22}, id="text"
        ),
    ],
)
def test_a_rule_is_normalised(member: Client, given: dict[str, Any], stored: dict[str, Any]) -> None:
    made = build.rule(member, build.group(member)["id"], **given)

    assert {key: made[key] for key in stored} == stored


PORT_RANGE = "For TCP/UDP protocols, port_range_min must be <= port_range_max"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            {"protocol": "tcp", "port_range_min": 9, "port_range_max": 8},
            (400, "SecurityGroupInvalidPortRange", PORT_RANGE),
            id="range backwards",
        ),
        pytest.param(
            {"protocol": "tcp", "port_range_min": 9},
            (400, "SecurityGroupInvalidPortRange", PORT_RANGE),
            id="half range",
        ),
        pytest.param(
            {"port_range_min": 1, "port_range_max": 2},
            (400, "SecurityGroupProtocolRequiredWithPorts", "Must also specify protocol if port range is given."),
            id="no protocol",
        ),
        pytest.param(
            {"protocol": "tcp", "port_range_min": 1, "port_range_max": 70000},
            (400, "SecurityGroupInvalidPortValue", "Invalid value for port 70000"),
            id="port",
        ),
        pytest.param(
            {"protocol": "gre", "port_range_min": 1, "port_range_max": 1},
            (
                400,
                "SecurityGroupInvalidProtocolForPort",
                "Ports cannot be specified for protocol 47. "
                "Ports are only supported for DCCP, SCTP, TCP, UDP, UDPLITE.",
            ),
            id="protocol without ports",
        ),
        pytest.param(
            {"protocol": "icmp", "port_range_max": 0},
            (
                400,
                "SecurityGroupMissingIcmpType",
                "ICMP code (port-range-max) 0 is provided but ICMP type (port-range-min) is missing.",
            ),
            id="code without type",
        ),
        pytest.param(
            {"direction": "in"},
            (400, "HTTPBadRequest", "Invalid input for direction. Reason: in is not in valid_values."),
            id="direction",
        ),
        pytest.param(
            {"ethertype": "x"},
            (
                400,
                "SecurityGroupRuleInvalidEtherType",
                "Security group rule for ethertype 'x' not supported. Allowed values are ['IPv4', 'IPv6'].",
            ),
            id="ethertype",
        ),
        pytest.param(
            {"remote_ip_prefix": "::/0"},
            (400, "SecurityGroupRuleParameterConflict", "Conflicting value ethertype IPv4 for CIDR ::/0"),
            id="prefix of another version",
        ),
        pytest.param(
            {"remote_ip_prefix": "nope"}, (400, "InvalidCIDR", "Invalid CIDR nope given as IP prefix."), id="prefix"
        ),
        pytest.param(
            {"remote_group_id": NOWHERE},
            (404, "SecurityGroupNotFound", f"Security group {NOWHERE} does not exist"),
            id="remote group",
        ),
        pytest.param(
            {"protocol": "ipv6-icmp"},
            (400, "SecurityGroupEthertypeConflictWithProtocol", "Invalid ethertype IPv4 for protocol ipv6-icmp."),
            id="version 6 protocol",
        ),
    ],
)
def test_a_bad_rule_is_refused(member: Client, values: dict[str, Any], expected: tuple[int, str, str]) -> None:
    body = {"security_group_id": build.group(member)["id"], "direction": "ingress", **values}

    assert refusal(member.request("POST", RULES, {"security_group_rule": body})) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            {"protocol": "tcp", "description": "a"}, {"protocol": "tcp", "description": "b"}, id="description"
        ),
        pytest.param({"remote_ip_prefix": "0.0.0.0/0"}, {}, id="everywhere and nowhere said"),
        pytest.param({"protocol": "vrrp"}, {"protocol": "112"}, id="name and number"),
    ],
)
def test_the_same_rule_twice_is_refused(member: Client, first: dict[str, Any], second: dict[str, Any]) -> None:
    group_id = build.group(member)["id"]
    made = build.rule(member, group_id, **first)

    again = {"security_group_id": group_id, "direction": "ingress", **second}
    answer = member.request("POST", RULES, {"security_group_rule": again})

    message = f"Security group rule already exists. Rule id is {made['id']}."
    assert refusal(answer) == (409, "SecurityGroupRuleExists", message)


def test_many_rules_are_made_in_one_request(member: Client) -> None:
    group_id = build.group(member)["id"]
    rules = [{"security_group_id": group_id, **TCP, "port_range_min": n, "port_range_max": n} for n in (1, 2)]

    made = member.ask("POST", RULES, {"security_group_rules": rules})["security_group_rules"]

    assert [rule["port_range_min"] for rule in made] == [1, 2]


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        pytest.param((3, 1), (409, "SecurityGroupRuleExists"), id="one that exists"),
        pytest.param((3, 3), (409, "DuplicateSecurityGroupRuleInPost"), id="twice in the request"),
        pytest.param((3, 70000), (400, "SecurityGroupInvalidPortValue"), id="one malformed"),
    ],
)
def test_one_bad_rule_of_many_refuses_all(member: Client, ports: tuple[int, int], expected: tuple[int, str]) -> None:
    group_id = build.group(member)["id"]
    build.rule(member, group_id, protocol="tcp", port_range_min=1, port_range_max=1)
    rules = [{"security_group_id": group_id, **TCP, "port_range_min": n, "port_range_max": n} for n in ports]

    answer = member.request("POST", RULES, {"security_group_rules": rules})

    assert refusal(answer)[:2] == expected
    assert member.ask("GET", f"{RULES}?port_range_min=3") == {"security_group_rules": []}


def test_rules_of_two_groups_are_not_made_at_once(member: Client) -> None:
    rules = [{"security_group_id": build.group(member)["id"], **TCP} for _ in range(2)]

    answer = member.request("POST", RULES, {"security_group_rules": rules})

    message = "Only allowed to update rules for one security profile at a time"
    assert refusal(answer) == (400, "SecurityGroupNotSingleGroupRules", message)


def test_a_rule_is_deleted_once(member: Client) -> None:
    made = build.rule(member, build.group(member)["id"])

    first = member.request("DELETE", f"{RULES}/{made['id']}")
    second = member.request("DELETE", f"{RULES}/{made['id']}")

    assert first.status_code == 204
    assert refusal(second) == (404, "SecurityGroupRuleNotFound", f"Security group rule {made['id']} does not exist")
