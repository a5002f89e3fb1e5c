"""Inventories of a whole cloud in tests."""

from __future__ import annotations

from capo.simulator.cloud import Cloud
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client, Clock, everything, inventory, member, more_than, simulator

__all__ = ["member", "simulator"]

GROUPS, RULES = "network/security_groups", "network/security_group_rules"


def test_everything_is_there_by_service_kind_and_id_but_identities(simulator: Simulator, member: Client) -> None:
    made = member.make("/network/v2.0/networks", "network", name="own")

    found = everything(simulator)

    assert found["network/networks"][made["id"]]["name"] == "own"
    assert {"compute/flavors", "load-balancer/flavors"} <= found.keys()
    assert not [kind for kind in found if kind.startswith("identity/")]


def test_a_default_group_is_left_out_with_its_rules_and_no_other_is(simulator: Simulator, member: Client) -> None:
    group = member.make("/network/v2.0/security-groups", "security_group", name="own")
    values = {"direction": "ingress", "protocol": "tcp", "security_group_id": group["id"]}
    rule = member.make("/network/v2.0/security-group-rules", "security_group_rule", **values)

    found = inventory(simulator)

    assert "default" in {each["name"] for each in everything(simulator)[GROUPS].values()}
    assert found[GROUPS].keys() == {group["id"]}
    assert rule["id"] in found[RULES]
    assert {each["security_group_id"] for each in found[RULES].values()} == {group["id"]}


def test_what_is_due_has_happened_before_the_look() -> None:
    clock = Clock()
    with Simulator.start(Cloud(clock=clock)) as simulator:
        table = simulator.cloud.table("compute", "servers")
        simulator.call(lambda: simulator.cloud.after(600.0, lambda: table.update({"one": {"id": "one"}})))
        clock.move(600)

        assert "one" in everything(simulator)["compute/servers"]


def test_what_is_new_is_told_by_kind_and_kinds_without_any_are_left_out() -> None:
    now = {"a/old": {"1": "x"}, "a/more": {"1": "x", "2": "y"}, "a/new": {"3": "z"}, "a/none": {}}

    assert more_than({"a/old": {"1": "w"}, "a/more": {"1": "w"}}, now) == {"a/more": {"2": "y"}, "a/new": {"3": "z"}}
