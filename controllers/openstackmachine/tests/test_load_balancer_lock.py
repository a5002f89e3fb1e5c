"""Octavia accepts one change of a load balancer at a time: machines wait for each other, and join together (W-28)."""

from __future__ import annotations

from typing import Any

import pytest

from capo.engine.metrics import AMBIGUOUS_CREATES
from capo.engine.tests.fake_kube import FakeClock
from capo.kube.kinds import OPENSTACK_MACHINE
from controllers.openstackmachine import members
from controllers.openstackmachine.tests.control_plane_environment import LBAAS, ControlPlaneEnvironment
from controllers.openstackmachine.turns import TURN_S, Turns

NAMES = ("one", "two", "three")


def come_up(site: ControlPlaneEnvironment, *, beside: int = 0) -> None:
    """Create the machines and wait until they are members, beside so many of others."""
    for name in NAMES:
        site.add(name)
    site.stage.settle(for_s=300)
    assert len(site.addresses()) == len(NAMES) + beside


def writes(site: ControlPlaneEnvironment) -> list[str]:
    """Return method and last part of the path of every change of members."""
    found = [r for r in site.stage.requests() if "/members" in r and not r.startswith("GET")]
    return [r.partition(" ")[0] for r in found]


def set_state(site: ControlPlaneEnvironment, state: str) -> None:
    """Set the load balancer's state, as Octavia itself would."""
    (balancer,) = site.all("loadbalancers")
    table = site.stage.cloud.table("load-balancer", "loadbalancers")
    site.stage.simulator.call(lambda: table[balancer["id"]].update(provisioning_status=state))


def test_machines_that_are_ready_at_once_join_all_pools_without_a_conflict_w_28(site: ControlPlaneEnvironment) -> None:
    site.balance(9345)

    come_up(site)

    wanted = sorted(site.address_of(name) for name in NAMES)
    assert site.addresses(6443) == site.addresses(9345) == wanted
    assert all(site.ingress(name) == ("True", "Ready") for name in NAMES)
    assert not [r for r in site.stage.events.reasons() if r.startswith("FailedCreate")]


def remove_members(site: ControlPlaneEnvironment) -> None:
    """Delete the members of all machines as an operator does; the manager restarts without knowing of it."""
    (pool,) = site.all("pools")
    for member in site.all("members"):
        if member["name"] == "theirs":
            continue
        site.stage.clock.advance(30)
        site.stage.member.ask("DELETE", f"{LBAAS}/pools/{pool['id']}/members/{member['id']}")
    site.stage.clock.advance(30)
    site.stage.cloud.counter.reset()
    site.stage.start()


def test_machines_join_one_by_one_where_the_provider_has_no_common_change(site: ControlPlaneEnvironment) -> None:
    site.balance()
    come_up(site)
    remove_members(site)
    site.stage.add_fault(
        match={"service": "load-balancer", "method": "PUT", "path": "/v2.0/lbaas/pools/*/members"},
        effect={"status": 501, "message": "Provider 'other' does not support a requested action."},
    )

    site.stage.settle(for_s=300)

    assert site.addresses() == sorted(site.address_of(name) for name in NAMES)
    assert all(site.ingress(name) == ("True", "Ready") for name in NAMES)


def test_machines_that_are_missing_in_a_pool_join_in_one_change(site: ControlPlaneEnvironment) -> None:
    site.balance()
    come_up(site)
    remove_members(site)

    site.stage.settle(for_s=300)

    assert site.addresses() == sorted(site.address_of(name) for name in NAMES)
    assert writes(site) == ["PUT"]
    for name in NAMES:
        (record,) = site.stage.get(OPENSTACK_MACHINE, name)["status"]["resources"]["records"]
        assert record["id"] in {m["id"] for m in site.all("members") if m["address"] == site.address_of(name)}


@pytest.mark.parametrize(
    "answer", [{"status": 503}, {"status": 200, "body": {"members": []}}], ids=["no list", "a list that lags"]
)
def test_a_member_that_was_added_and_is_not_listed_stays_recorded_as_unanswered(
    site: ControlPlaneEnvironment, answer: dict[str, Any]
) -> None:
    site.balance()
    come_up(site)
    remove_members(site)
    members_path = {"service": "load-balancer", "method": "GET", "path": "/v2.0/lbaas/pools/*/members"}
    site.stage.add_fault(match={**members_path, "nth": 2}, effect=answer)
    before = AMBIGUOUS_CREATES.labels("member")._value.get()

    site.stage.settle(for_s=300)

    assert AMBIGUOUS_CREATES.labels("member")._value.get() == before + 1
    assert site.addresses() == sorted(site.address_of(name) for name in NAMES)
    assert writes(site) == ["PUT"]


def test_members_of_others_stay_when_machines_join_together(site: ControlPlaneEnvironment) -> None:
    site.balance()
    (pool,) = site.all("pools")
    theirs = {"address": "192.0.2.200", "protocol_port": 6443, "name": "theirs"}
    site.stage.member.ask("POST", f"{LBAAS}/pools/{pool['id']}/members", {"member": theirs})
    site.stage.clock.advance(30)

    for name in NAMES:
        site.add(name)
    site.stage.settle(for_s=300)

    assert "192.0.2.200" in site.addresses()
    assert len(site.addresses()) == len(NAMES) + 1
    assert {m["name"] for m in site.all("members") if m["address"] == "192.0.2.200"} == {"theirs"}


def test_settings_of_other_members_stay_when_machines_join_together(site: ControlPlaneEnvironment) -> None:
    site.balance()
    (pool,) = site.all("pools")
    drained = {"weight": 0, "backup": True, "admin_state_up": False}
    theirs = {"address": "192.0.2.200", "protocol_port": 6443, "name": "theirs", **drained}
    site.stage.member.ask("POST", f"{LBAAS}/pools/{pool['id']}/members", {"member": theirs})
    site.stage.clock.advance(30)
    come_up(site, beside=1)
    remove_members(site)

    site.stage.settle(for_s=300)

    assert writes(site) == ["PUT"]
    assert len(site.addresses()) == len(NAMES) + 1
    (found,) = (m for m in site.all("members") if m["name"] == "theirs")
    assert {name: found[name] for name in drained} == drained


def test_a_load_balancer_in_error_is_named_and_asked_rarely_w_28(site: ControlPlaneEnvironment) -> None:
    site.balance()
    come_up(site)
    set_state(site, "ERROR")
    site.stage.start()
    site.stage.cloud.counter.reset()
    site.delete("one")

    site.stage.settle(for_s=600)

    message = site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["message"]
    assert "is in state ERROR" in message
    assert "fail it over" in message
    assert len([r for r in site.stage.requests() if "lbaas" in r]) <= 60
    set_state(site, "ACTIVE")
    site.stage.settle(for_s=300)
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert len(site.addresses()) == len(NAMES) - 1


def test_a_busy_load_balancer_is_waited_for_without_asking_its_pools_w_28(site: ControlPlaneEnvironment) -> None:
    site.balance()
    come_up(site)
    set_state(site, "PENDING_UPDATE")
    site.stage.start()
    site.stage.cloud.counter.reset()
    site.delete("one")

    site.stage.settle(for_s=60)

    assert "PENDING_UPDATE" in site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["message"]
    assert len(site.all("servers")) == len(NAMES)
    assert not [r for r in site.stage.requests() if "/members" in r]
    set_state(site, "ACTIVE")
    site.stage.settle(for_s=300)
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def test_a_ready_machine_stays_ready_when_octavia_cannot_be_asked(site: ControlPlaneEnvironment) -> None:
    site.balance()
    come_up(site)
    site.stage.start()
    site.stage.add_fault(match={"service": "load-balancer"}, effect={"status": 503, "message": "down"})

    site.stage.settle(for_s=600)

    for name in NAMES:
        assert site.stage.condition(OPENSTACK_MACHINE, name, "Ready")["status"] == "True"
    assert site.ingress("one")[0] == "False"
    site.stage.clear_faults()
    site.stage.settle(for_s=600)
    assert site.ingress("one") == ("True", "Ready")


def test_a_machine_that_never_joined_is_not_ready(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.stage.add_fault(match={"service": "load-balancer"}, effect={"status": 503, "message": "down"})
    site.add("one")

    site.stage.settle(for_s=600)

    assert site.stage.condition(OPENSTACK_MACHINE, "one", "Ready")["status"] == "False"


def test_the_member_of_a_machine_that_is_no_more_leaves_with_the_next_one_that_joins(
    site: ControlPlaneEnvironment,
) -> None:
    site.balance()
    come_up(site)
    lost = site.address_of("one")
    site.vanish(OPENSTACK_MACHINE, "one")
    site.add("four")

    site.stage.settle(for_s=300)

    assert lost not in site.addresses()
    assert len(site.addresses()) == len(NAMES)


def tagged(*owners: str) -> list[dict[str, Any]]:
    return [{"id": owner, "address": f"at {owner}", "tags": [f"capo:{owner}:member-6443"]} for owner in owners]


ME, OTHER, DEAD, HOME = "a" * 13, "b" * 13, "c" * 13, "d" * 13


@pytest.mark.parametrize(
    ("listed", "owners", "dead"),
    [
        pytest.param(tagged(ME, OTHER), {ME, OTHER}, None, id="all live"),
        pytest.param(tagged(ME, DEAD), {ME, OTHER}, DEAD, id="one whose machine is gone"),
        pytest.param(tagged(ME, DEAD), None, None, id="an owner id is not known, so nobody can tell"),
        pytest.param([{"id": "x", "tags": []}], {ME}, None, id="no stamp: not ours"),
        pytest.param(tagged(HOME), {ME, OTHER}, None, id="at the address of a living machine"),
        pytest.param([{"id": "x", "tags": [f"capo:{DEAD}:member-1"]}], {ME}, None, id="of another port"),
    ],
)
def test_a_member_is_dead_when_its_stamp_belongs_to_no_machine(listed: Any, owners: Any, dead: str | None) -> None:
    found = members.dead_member(listed, "member-6443", lambda: owners, living_at={f"at {HOME}"})

    assert (found["id"] if found else None) == dead


def turns_of(site: ControlPlaneEnvironment) -> Turns:
    """Return the turns of the machines' controller."""
    reconciler: Any = next(each for each in site.stage.controllers if each.kind == OPENSTACK_MACHINE)
    turns: Turns = reconciler.controller._memory.turns
    return turns


def test_a_machine_waits_for_another_that_is_about_to_change_the_load_balancer(site: ControlPlaneEnvironment) -> None:
    site.balance()
    come_up(site)
    remove_members(site)
    (balancer,) = site.all("loadbalancers")
    turns_of(site).take(balancer["id"], "another")

    site.stage.settle(for_s=5)
    assert not [r for r in site.stage.requests() if "/members" in r]

    site.stage.settle(for_s=300)
    assert len(site.addresses()) == len(NAMES)


def test_a_machine_whose_member_may_still_come_keeps_no_turn(site: ControlPlaneEnvironment) -> None:
    site.balance()
    create = {"service": "load-balancer", "method": "POST", "route": "*/members", "nth": 1}
    site.stage.add_fault(match=create, effect={"cut": "before"})
    site.add("one")
    site.stage.settle(until=lambda: any(r.startswith("POST /v2.0/lbaas/pools") for r in site.stage.requests()))
    (balancer,) = site.all("loadbalancers")

    site.stage.settle(for_s=30)  # it is reconciled again while its window lasts

    assert not site.addresses()
    assert turns_of(site).take(balancer["id"], "another")


def test_the_turn_of_a_machine_ends_with_its_change_or_after_a_few_seconds() -> None:
    clock = FakeClock()
    turns = Turns(clock)
    assert turns.take("lb", "one")
    assert turns.take("lb", "one")
    assert not turns.take("lb", "two")
    assert turns.take("other", "two")

    turns.end("lb", "two")
    assert not turns.take("lb", "two")
    turns.end("lb", "one")
    assert turns.take("lb", "two")

    clock.advance(TURN_S)
    assert turns.take("lb", "one")
