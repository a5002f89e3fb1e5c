"""Rules as Neutron stores them; each case was tried on Neutron (W-62)."""

from typing import Any

import pytest

from capo.errors import InvalidSpecError
from capo.openstack import security_group
from capo.openstack.security_group import Rule


def stored(**fields: Any) -> dict[str, Any]:
    return {
        "id": "r1",
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": None,
        "port_range_min": None,
        "port_range_max": None,
        "remote_group_id": None,
        "remote_ip_prefix": None,
        "description": "whatever",
        **fields,
    }


def rule(**fields: Any) -> Rule:
    return Rule("ingress", **fields)


SAME = [
    pytest.param(rule(protocol="TCP", port_range_min=22, port_range_max=22), {"protocol": "tcp"}, id="upper case"),
    pytest.param(rule(protocol="6", port_range_min=22, port_range_max=22), {"protocol": "tcp"}, id="number"),
    pytest.param(rule(protocol="tcp", port_range_min=22, port_range_max=22), {"protocol": "6"}, id="stored number"),
]
PORT_22 = {"port_range_min": 22, "port_range_max": 22}


@pytest.mark.parametrize(("wanted", "found"), SAME)
def test_protocols_are_equal_however_they_are_spelt(wanted: Rule, found: dict[str, Any]) -> None:
    assert security_group.rule_difference([wanted], [stored(**found, **PORT_22)]) == ((), ())


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param(rule(protocol="any"), {}, id="any protocol"),
        pytest.param(rule(protocol=""), {}, id="empty protocol"),
        pytest.param(rule(ethertype=None), {}, id="IPv4 is the default"),
        pytest.param(rule(ethertype="ipv4"), {}, id="lower case ethertype"),
        pytest.param(
            rule(protocol="udp", port_range_min=1, port_range_max=65535), {"protocol": "udp"}, id="full range"
        ),
        pytest.param(rule(remote_ip_prefix="192.0.2.7"), {"remote_ip_prefix": "192.0.2.7/32"}, id="bare address"),
        pytest.param(rule(remote_ip_prefix="10.0.0.5/8"), {"remote_ip_prefix": "10.0.0.5/8"}, id="host bits"),
        pytest.param(rule(remote_ip_prefix="0.0.0.0/0"), {}, id="everywhere"),
        pytest.param(rule(ethertype="IPv6", remote_ip_prefix="::/0"), {"ethertype": "IPv6"}, id="everywhere, IPv6"),
        pytest.param(
            rule(ethertype="IPv6", remote_ip_prefix="FD00:0::1"),
            {"ethertype": "IPv6", "remote_ip_prefix": "fd00::1/128"},
            id="bare IPv6 address",
        ),
        pytest.param(
            rule(ethertype="IPv6", protocol="icmp"), {"ethertype": "IPv6", "protocol": "ipv6-icmp"}, id="ICMP for IPv6"
        ),
        pytest.param(rule(ethertype="IPv6", protocol="1"), {"ethertype": "IPv6", "protocol": "58"}, id="its numbers"),
        pytest.param(
            rule(protocol="icmp", port_range_min=0, port_range_max=0),
            {"protocol": "icmp", "port_range_min": 0, "port_range_max": 0},
            id="ICMP type 0",
        ),
        pytest.param(rule(description="mine"), {"description": "theirs"}, id="descriptions do not count"),
    ],
)
def test_rules_are_compared_as_neutron_stores_them(wanted: Rule, found: dict[str, Any]) -> None:
    assert security_group.rule_difference([wanted], [stored(**found)]) == ((), ())


@pytest.mark.parametrize(
    "found",
    [
        {"direction": "egress"},
        {"ethertype": "IPv6"},
        {"protocol": "tcp"},
        {"remote_group_id": "g"},
        {"remote_ip_prefix": "10.0.0.0/8"},
        {"remote_address_group_id": "a"},
    ],
)
def test_what_differs_is_made_and_the_other_deleted(found: dict[str, Any]) -> None:
    wanted = rule()

    assert security_group.rule_difference([wanted], [stored(**found)]) == ((wanted,), ("r1",))


def test_rules_that_neutron_would_refuse_as_duplicates_are_made_once() -> None:
    first, second = rule(protocol="TCP", description="first"), rule(protocol="tcp", description="second")

    assert security_group.rule_difference([first, second], []) == ((first,), ())


def test_missing_rules_come_in_the_order_of_the_wish() -> None:
    wishes = [rule(protocol=protocol) for protocol in ("tcp", "udp", "icmp")]

    assert security_group.rule_difference(wishes, []).missing == tuple(wishes)


def test_wanting_nothing_deletes_everything() -> None:
    assert security_group.rule_difference([], [stored(), stored(id="r2", direction="egress")]) == ((), ("r1", "r2"))


def test_a_rule_is_sent_as_it_will_be_stored() -> None:
    wanted = rule(protocol="TCP", port_range_min=1, port_range_max=65535, remote_ip_prefix="192.0.2.7", description="d")

    assert security_group.rule_request("g", wanted) == {
        "security_group_id": "g",
        "description": "d",
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": "tcp",
        "remote_ip_prefix": "192.0.2.7/32",
    }


def test_a_prefix_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="security group rule"):
        security_group.rule_difference([rule(remote_ip_prefix="10.0.0.0/99")], [])
