"""Security groups and their rules: what Neutron adds, stores, compares and refuses."""

from __future__ import annotations

import datetime

import pytest

from api.v1beta2.network import SecurityGroupFilter, SecurityGroupParam
from capo.errors import (
    ConflictError,
    InvalidSpecError,
    NotFoundError,
    SecurityGroupNotFoundError,
)
from capo.json_types import Body
from capo.openstack import port, security_group
from capo.openstack.security_group import Rule, WantedSecurityGroup
from e2e.contract.environment import UNKNOWN, ContractEnvironment

SSH = Rule("ingress", protocol="tcp", port_range_min=22, port_range_max=22, description="SSH")


def show(world: ContractEnvironment, group_id: str) -> Body:
    found: Body = world.cloud.get("network", f"/security-groups/{group_id}")["security_group"]
    return found


def groups(world: ContractEnvironment, **params: str) -> list[Body]:
    return world.cloud.list_all("network", "/security-groups", "security_groups", params=params)


def raw_rule(world: ContractEnvironment, group_id: str, **fields: object) -> Body:
    """Create a rule with a body that the provider's own module does not send."""
    wanted = {"security_group_id": group_id, "direction": "ingress", **fields}
    path = "/security-group-rules"
    made: Body = world.cloud.post("network", path, json={"security_group_rule": wanted})["security_group_rule"]
    return made


# -- groups ----------------------------------------------------------------------------------------------------------


def test_new_group_has_two_egress_rules(world: ContractEnvironment) -> None:
    stamp = world.stamp("group-worker")

    made = world.security_group(stamp=stamp)

    assert made["description"].endswith(f"[{stamp}]")
    assert (made["stateful"], made["shared"], made["tags"]) == (True, False, [])
    rules = made["security_group_rules"]
    assert sorted((rule["direction"], rule["ethertype"]) for rule in rules) == [("egress", "IPv4"), ("egress", "IPv6")]
    for rule in rules:
        assert rule["protocol"] is rule["port_range_min"] is rule["remote_ip_prefix"] is rule["remote_group_id"] is None
    shown = show(world, made["id"])
    assert {rule["id"] for rule in shown["security_group_rules"]} == {rule["id"] for rule in rules}
    born, *of_rules = (
        datetime.datetime.fromisoformat(each["created_at"]) for each in (shown, *shown["security_group_rules"])
    )
    assert all(abs(each - born).total_seconds() <= 2 for each in of_rules)


def test_groups_are_made_in_one_call_in_the_order_of_the_wishes(world: ContractEnvironment) -> None:
    wanted = [WantedSecurityGroup(world.stamp(f"group-{role}"), world.name()) for role in ("bastion", "worker")]

    made = security_group.create_all(world.cloud, wanted)

    assert [each["name"] for each in made] == [each.name for each in wanted]
    assert {len(each["security_group_rules"]) for each in made} == {2}
    assert {each["id"] for each in made} <= {each["id"] for each in groups(world)}


def test_of_groups_in_one_call_all_or_none_are_made(world: ContractEnvironment) -> None:
    wanted = [WantedSecurityGroup(world.stamp(), world.name()), WantedSecurityGroup(world.stamp(), "default")]

    refusal = world.refused(lambda: security_group.create_all(world.cloud, wanted))

    assert isinstance(refusal.error, ConflictError)
    assert groups(world, name=wanted[0].name) == []


def test_two_groups_may_have_one_name(world: ContractEnvironment) -> None:
    first = world.security_group()
    second = world.security_group(name=first["name"])

    assert {each["id"] for each in groups(world, name=first["name"])} == {first["id"], second["id"]}


def test_each_project_has_a_default_group_that_is_not_to_be_made(world: ContractEnvironment) -> None:
    found = groups(world, name="default")

    assert len(found) == 1
    assert found[0]["description"] == "Default security group"
    ingress = [rule for rule in found[0]["security_group_rules"] if rule["direction"] == "ingress"]
    assert {rule["remote_group_id"] for rule in ingress} == {found[0]["id"]}
    refusal = world.refused(lambda: world.security_group(name="default"))
    assert isinstance(refusal.error, ConflictError)


def test_default_group_refuses_to_go(world: ContractEnvironment) -> None:
    used, unused = (
        each.list_all("network", "/security-groups", "security_groups", params={"name": "default"})[0]
        for each in (world.cloud, world.stranger)
    )
    world.port()

    refusals = [
        world.refused(lambda: security_group.delete(world.cloud, used["id"])),
        world.refused(lambda: security_group.delete(world.stranger, unused["id"])),
    ]

    assert all(isinstance(each.error, ConflictError) for each in refusals)


def test_groups_are_found_by_name_description_and_tags(world: ContractEnvironment) -> None:
    tag = world.name()
    made = security_group.replace_tags(world.cloud, world.security_group(description="one of a kind"), [tag])

    for found in (
        SecurityGroupFilter(name=made["name"]),
        SecurityGroupFilter(description=made["description"]),
        SecurityGroupFilter(tags=[tag]),
    ):
        assert security_group.resolve(world.cloud, [SecurityGroupParam(filter=found)]) == [made["id"]]


def test_group_that_a_port_uses_refuses_to_go(world: ContractEnvironment) -> None:
    made = world.security_group()
    user = world.port(security_group_ids=[made["id"]])

    refusal = world.refused(lambda: security_group.delete(world.cloud, made["id"]))

    assert isinstance(refusal.error, ConflictError)
    port.delete(world.cloud, user["id"])
    security_group.delete(world.cloud, made["id"])
    assert world.is_gone(lambda: show(world, made["id"]))


def test_group_that_a_rule_of_another_names_goes_with_that_rule(world: ContractEnvironment) -> None:
    named, other = world.security_group(), world.security_group()
    security_group.create_rules(world.cloud, other["id"], [Rule("ingress", remote_group_id=named["id"])])

    security_group.delete(world.cloud, named["id"])

    assert len(show(world, other["id"])["security_group_rules"]) == 2


def test_unknown_group_is_not_found(world: ContractEnvironment) -> None:
    shown = world.refused(lambda: show(world, UNKNOWN))
    deleted = world.refused(lambda: world.cloud.delete("network", f"/security-groups/{UNKNOWN}"))

    assert isinstance(shown.error, SecurityGroupNotFoundError)
    assert isinstance(deleted.error, SecurityGroupNotFoundError)


def test_group_of_another_project_is_not_seen(world: ContractEnvironment) -> None:
    made = world.security_group()

    refusal = world.refused(lambda: world.stranger.get("network", f"/security-groups/{made['id']}"))

    assert isinstance(refusal.error, SecurityGroupNotFoundError)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"security_group": {"colour": "red"}}, id="unknown field"),
        pytest.param({"security_group": {"name": "x" * 256}}, id="long name"),
        pytest.param({"security_group": {"tags": ["a"]}}, id="tags"),
        pytest.param({}, id="nothing"),
    ],
)
def test_malformed_group_is_refused(world: ContractEnvironment, body: Body) -> None:
    refusal = world.refused(lambda: world.cloud.post("network", "/security-groups", json=body))

    assert isinstance(refusal.error, InvalidSpecError)


# -- rules -----------------------------------------------------------------------------------------------------------


def test_rules_are_made_in_one_call_and_stored_as_they_were_sent(world: ContractEnvironment) -> None:
    made = world.security_group()
    wishes = [
        SSH,
        Rule("ingress", protocol="tcp", port_range_min=2379, port_range_max=2380, remote_group_id=made["id"]),
        Rule("ingress", protocol="udp", port_range_min=30000, port_range_max=32767, remote_ip_prefix="10.6.0.0/20"),
        Rule("ingress", ethertype="IPv6", protocol="icmp"),
        Rule("ingress", protocol="any"),
    ]

    rules = security_group.create_rules(world.cloud, made["id"], wishes)

    assert [(rule["protocol"], rule["port_range_min"], rule["port_range_max"]) for rule in rules] == [
        ("tcp", 22, 22),
        ("tcp", 2379, 2380),
        ("udp", 30000, 32767),
        ("ipv6-icmp", None, None),
        (None, None, None),
    ]
    assert rules[0]["description"] == "SSH"
    assert rules[1]["remote_group_id"] == made["id"]
    assert rules[2]["remote_ip_prefix"] == "10.6.0.0/20"
    assert {rule["ethertype"] for rule in rules} == {"IPv4", "IPv6"}


def test_rules_that_are_as_wanted_need_no_change(world: ContractEnvironment) -> None:
    made = world.security_group()
    egress = [Rule("egress"), Rule("egress", ethertype="IPv6")]
    wishes = [
        *egress,
        SSH,
        Rule("ingress", protocol="tcp", port_range_min=1, port_range_max=65535),
        Rule("ingress", protocol="6", port_range_min=80, port_range_max=80),
        Rule("ingress", remote_ip_prefix="10.6.1.7/20"),
        Rule("ingress", ethertype="IPv6", protocol="ipv6-icmp", remote_ip_prefix="::/0"),
    ]

    security_group.update_rules(world.cloud, made, wishes)

    stored = show(world, made["id"])["security_group_rules"]
    assert security_group.rule_difference(wishes, stored) == ((), ())
    assert len(stored) == len(wishes)


def test_surplus_rules_go_and_missing_ones_come(world: ContractEnvironment) -> None:
    made = world.security_group()
    first = security_group.update_rules(world.cloud, made, [SSH])

    second = security_group.update_rules(world.cloud, first, [Rule("ingress", protocol="icmp")])

    stored = show(world, made["id"])["security_group_rules"]
    assert [rule["protocol"] for rule in stored] == ["icmp"]
    assert [rule["id"] for rule in second["security_group_rules"]] == [rule["id"] for rule in stored]


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param({"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}, id="the same"),
        pytest.param({"protocol": "6", "port_range_min": 22, "port_range_max": 22}, id="protocol by number"),
        pytest.param({"protocol": "TCP", "port_range_min": 22, "port_range_max": 22}, id="capitals"),
        pytest.param(
            {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "description": "other"}, id="description"
        ),
        pytest.param(
            {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "0.0.0.0/0"},
            id="from everywhere",
        ),
    ],
)
def test_rule_that_is_there_already_is_a_conflict(world: ContractEnvironment, spelling: Body) -> None:
    made = world.security_group()
    security_group.create_rules(world.cloud, made["id"], [SSH])

    refusal = world.refused(lambda: raw_rule(world, made["id"], **spelling))

    assert isinstance(refusal.error, ConflictError)


def test_rule_twice_in_one_call_is_a_conflict(world: ContractEnvironment) -> None:
    made = world.security_group()

    refusal = world.refused(lambda: security_group.create_rules(world.cloud, made["id"], [SSH, SSH]))

    assert isinstance(refusal.error, ConflictError)
    assert len(show(world, made["id"])["security_group_rules"]) == 2


def test_of_rules_in_one_call_all_or_none_are_made(world: ContractEnvironment) -> None:
    made = world.security_group()
    security_group.create_rules(world.cloud, made["id"], [SSH])
    wishes = [Rule("ingress", protocol="icmp"), SSH]

    refusal = world.refused(lambda: security_group.create_rules(world.cloud, made["id"], wishes))

    assert isinstance(refusal.error, ConflictError)
    assert len(show(world, made["id"])["security_group_rules"]) == 3


def test_rules_of_two_groups_in_one_call_are_refused(world: ContractEnvironment) -> None:
    groups = [world.security_group(), world.security_group()]
    rules = [security_group.rule_request(each["id"], SSH) for each in groups]

    refusal = world.refused(
        lambda: world.cloud.post("network", "/security-group-rules", json={"security_group_rules": rules})
    )

    assert isinstance(refusal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"direction": "sideways"}, id="direction"),
        pytest.param({"ethertype": "IPv5"}, id="ethertype"),
        pytest.param({"protocol": "carrier-pigeon"}, id="protocol"),
        pytest.param({"protocol": "300"}, id="protocol by number"),
        pytest.param({"port_range_min": 22, "port_range_max": 22}, id="ports without a protocol"),
        pytest.param({"protocol": "tcp", "port_range_min": 23, "port_range_max": 22}, id="ports backwards"),
        pytest.param({"protocol": "tcp", "port_range_min": 1, "port_range_max": 70000}, id="port"),
        pytest.param({"protocol": "tcp", "port_range_min": 22}, id="half a range"),
        pytest.param({"protocol": "icmp", "port_range_min": 300}, id="ICMP type"),
        pytest.param({"protocol": "icmp", "port_range_max": 3}, id="ICMP code without type"),
        pytest.param({"remote_ip_prefix": "everywhere"}, id="prefix"),
        pytest.param({"remote_ip_prefix": "fd00::/64"}, id="prefix of the other family"),
        pytest.param({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": UNKNOWN}, id="prefix and group"),
        pytest.param({"ethertype": "IPv4", "protocol": "ipv6-icmp"}, id="protocol of the other family"),
        pytest.param({"colour": "red"}, id="unknown field"),
    ],
)
def test_malformed_rule_is_refused(world: ContractEnvironment, fields: Body) -> None:
    made = world.security_group()

    refusal = world.refused(lambda: raw_rule(world, made["id"], **fields))

    assert isinstance(refusal.error, InvalidSpecError)


def test_rule_that_names_unknown_groups_is_refused(world: ContractEnvironment) -> None:
    made = world.security_group()

    remote = world.refused(lambda: raw_rule(world, made["id"], remote_group_id=UNKNOWN))
    own = world.refused(lambda: raw_rule(world, UNKNOWN))

    assert isinstance(remote.error, SecurityGroupNotFoundError)
    assert isinstance(own.error, SecurityGroupNotFoundError)


def test_rule_that_is_gone_is_not_found(world: ContractEnvironment) -> None:
    made = world.security_group()
    rule = security_group.create_rules(world.cloud, made["id"], [SSH])[0]
    security_group.delete_rule(world.cloud, rule["id"])

    path = f"/security-group-rules/{rule['id']}"

    deleted = world.refused(lambda: world.cloud.delete("network", path))
    shown = world.refused(lambda: world.cloud.get("network", path))

    assert isinstance(deleted.error, NotFoundError)
    assert isinstance(shown.error, NotFoundError)
    assert len(show(world, made["id"])["security_group_rules"]) == 2


def test_rule_is_shown_as_it_is_in_its_group(world: ContractEnvironment) -> None:
    made = world.security_group()
    rule = security_group.create_rules(world.cloud, made["id"], [SSH])[0]

    shown = world.cloud.get("network", f"/security-group-rules/{rule['id']}")["security_group_rule"]

    (inside,) = (each for each in show(world, made["id"])["security_group_rules"] if each["id"] == rule["id"])
    assert shown == rule
    assert {name: inside[name] for name in shown} == shown
    assert set(inside) - set(shown) == {"standard_attr_id", "tags"}


def test_rules_are_listed_by_group(world: ContractEnvironment) -> None:
    made = world.security_group()
    params = {"security_group_id": made["id"], "direction": "egress"}

    found = world.cloud.list_all("network", "/security-group-rules", "security_group_rules", params=params)

    assert {rule["security_group_id"] for rule in found} == {made["id"]}
    assert len(found) == 2


# -- restricted egress -----------------------------------------------------------------------------------------------


def test_egress_is_restricted_and_opened_again(world: ContractEnvironment) -> None:
    made, peer = world.security_group(), world.security_group()
    narrow = [
        Rule("egress", remote_group_id=peer["id"], description="In-cluster Egress"),
        Rule("egress", remote_group_id=made["id"], description="In-cluster Egress"),
        Rule("egress", "IPv6", remote_group_id=made["id"], description="In-cluster Egress"),
        Rule("egress", protocol="tcp", port_range_min=80, port_range_max=80, remote_ip_prefix="169.254.169.254"),
        Rule(
            "egress", "IPv6", protocol="tcp", port_range_min=80, port_range_max=80, remote_ip_prefix="fe80::a9fe:a9fe"
        ),
        Rule("egress", protocol="udp", port_range_min=53, port_range_max=53, remote_ip_prefix="10.6.0.0/24"),
    ]
    full = [Rule("egress", version, description="Full open") for version in ("IPv4", "IPv6")]

    security_group.update_rules(world.cloud, made, narrow)

    closed = show(world, made["id"])
    assert {rule["direction"] for rule in closed["security_group_rules"]} == {"egress"}
    assert len(closed["security_group_rules"]) == len(narrow)
    assert security_group.rule_difference(narrow, closed["security_group_rules"]) == ((), ())
    prefixes = {rule["remote_ip_prefix"] for rule in closed["security_group_rules"]}
    assert prefixes == {None, "169.254.169.254/32", "fe80::a9fe:a9fe/128", "10.6.0.0/24"}

    security_group.update_rules(world.cloud, closed, full)

    opened = show(world, made["id"])
    assert security_group.rule_difference(full, opened["security_group_rules"]) == ((), ())
    assert {rule["description"] for rule in opened["security_group_rules"]} == {"Full open"}


def test_group_without_any_rule_stays_without(world: ContractEnvironment) -> None:
    made = security_group.update_rules(world.cloud, world.security_group(), [])

    assert show(world, made["id"])["security_group_rules"] == []
    port = world.port(security_group_ids=[made["id"]])
    assert port["security_groups"] == [made["id"]]
