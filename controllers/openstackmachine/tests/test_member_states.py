"""A machine is ready when its members took effect, not when they are listed: Octavia may fail or lag with one alone."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_MACHINE
from controllers.openstackmachine import member_states
from controllers.openstackmachine.tests.control_plane_environment import LBAAS, ControlPlaneEnvironment
from controllers.openstackmachine.tests.test_given_pools import balancer, given_to_others
from controllers.openstackmachine.tests.test_member_drift import later

FOR_EVER = 1_000_000


def fail(site: ControlPlaneEnvironment, **order: Any) -> None:
    """Order the next changes of members to end in another state than ACTIVE."""
    site.stage.member.ask("POST", "/_simulator/tweaks/load-balancer/fail_parts", {"kind": "members", **order})


def set_state(site: ControlPlaneEnvironment, state: str, *names: str) -> None:
    """Set the state of the members of machines, all of them without a name, as Octavia itself would."""
    addresses = {site.address_of(name) for name in names}
    members = site.stage.cloud.table("load-balancer", "members")
    for pool in site.all("pools"):  # a failed change updates the pool, too
        site.stage.member.ask("PUT", f"{LBAAS}/pools/{pool['id']}", {"pool": {"name": pool["name"]}})
        site.stage.clock.advance(30)

    def change() -> None:
        for member in members.values():
            if not addresses or member["address"] in addresses:
                member["provisioning_status"] = state

    site.stage.simulator.call(change)


def states(site: ControlPlaneEnvironment) -> set[str]:
    return {member["provisioning_status"] for member in site.all("members")}


def changes(site: ControlPlaneEnvironment) -> list[str]:
    """Return the method of each change of members."""
    return [r.partition(" ")[0] for r in site.stage.requests() if "/members" in r and not r.startswith("GET")]


def is_ready(site: ControlPlaneEnvironment, name: str) -> bool:
    return site.stage.condition(OPENSTACK_MACHINE, name, "Ready").get("status") == "True"


def up(site: ControlPlaneEnvironment, *names: str) -> None:
    for name in names:
        site.add(name)
    site.stage.settle(for_s=200)
    assert all(is_ready(site, name) for name in names)
    site.stage.cloud.counter.reset()


def test_a_machine_is_ready_once_its_pending_member_is_active_w_48(site: ControlPlaneEnvironment) -> None:
    site.balance()
    up(site, "one")
    fail(site, status="PENDING_CREATE", for_s=600)

    site.add("two")
    site.stage.settle(for_s=400)

    (member,) = (m for m in site.all("members") if m["address"] == site.address_of("two"))
    assert site.ingress("two") == ("False", "Building")
    assert f"member {member['id']} of pool " in site.message("two")
    assert "is PENDING_CREATE" in site.message("two")
    assert not is_ready(site, "two")
    assert is_ready(site, "one")

    site.stage.settle(for_s=600)
    assert site.ingress("two") == ("True", "Ready")
    assert is_ready(site, "two")


def test_a_pending_member_is_listed_again_at_bounded_intervals(site: ControlPlaneEnvironment) -> None:
    site.balance()
    fail(site, status="PENDING_CREATE", times=FOR_EVER)
    site.add("one")
    site.stage.settle(for_s=100)
    site.stage.cloud.counter.reset()

    site.stage.settle(for_s=600)

    lists = [r for r in site.stage.requests() if r.endswith("/members")]
    assert 30 <= len(lists) <= 600 / member_states.RECHECK_S + 1
    assert changes(site) == []


@pytest.mark.parametrize("ports", [(), (9345,)], ids=["one pool", "the second pool"])
def test_a_member_in_error_is_repaired_without_leaving_the_pool(
    site: ControlPlaneEnvironment, ports: tuple[int, ...]
) -> None:
    site.balance(*ports)
    fail(site, name=f"-{[6443, *ports][-1]}-")

    site.add("one")
    site.stage.settle(for_s=100)

    assert is_ready(site, "one")
    assert states(site) == {"ACTIVE"}
    assert changes(site) == [*["POST"] * (1 + len(ports)), "PUT"]
    assert {m["name"] for m in site.all("members")} == {
        f"k8s-clusterapi-cluster-default-demo-kubeapi-{port}-one" for port in (6443, *ports)
    }


def test_a_member_that_octavia_cannot_repair_is_named_and_its_machine_is_not_ready(
    site: ControlPlaneEnvironment,
) -> None:
    site.balance()
    up(site, "one")
    fail(site, name="-two$", times=FOR_EVER)

    site.add("two")
    site.stage.settle(for_s=1800)

    (member,) = (m for m in site.all("members") if m["address"] == site.address_of("two"))
    assert site.ingress("two") == ("False", "LoadBalancerMemberError")
    assert f"member {member['id']} of pool {site.all('pools')[0]['id']} is in state ERROR" in site.message("two")
    assert not is_ready(site, "two")
    assert "DELETE" not in changes(site)
    assert len(changes(site)) <= 1800 / 100 + 6
    assert is_ready(site, "one")


@pytest.mark.parametrize("kind", ["external pools", "a provider without a common change"])
def test_a_member_in_error_is_updated_alone_where_all_cannot_be(site: ControlPlaneEnvironment, kind: str) -> None:
    if kind == "external pools":
        given_to_others(site, balancer_id=balancer(site)["id"])
    else:
        site.balance()
        site.stage.add_fault(
            match={"service": "load-balancer", "method": "PUT", "path": "/v2.0/lbaas/pools/*/members"},
            effect={"status": 501, "message": "Provider 'other' does not support a requested action."},
        )
    fail(site)

    site.add("one")
    site.stage.settle(for_s=200)

    assert is_ready(site, "one")
    assert states(site) == {"ACTIVE"}
    assert "DELETE" not in changes(site)
    assert any(r.startswith("PUT") and "/members/" in r for r in site.stage.requests())


def test_members_that_are_all_in_error_are_repaired_and_none_is_removed_w_48(site: ControlPlaneEnvironment) -> None:
    site.balance()
    up(site, "one", "two", "three")
    set_state(site, "ERROR")
    site.stage.cloud.counter.reset()

    later(site)
    site.stage.settle(for_s=300)

    assert states(site) == {"ACTIVE"}
    assert "DELETE" not in changes(site)
    assert "POST" not in changes(site)
    assert all(is_ready(site, name) and site.ingress(name) == ("True", "Ready") for name in ("one", "two", "three"))


@pytest.mark.parametrize("state", ["ERROR", "PENDING_CREATE"])
def test_a_machine_that_was_reported_as_joined_too_early_is_corrected_after_a_restart(
    site: ControlPlaneEnvironment, state: str
) -> None:
    site.balance()
    up(site, "one", "two")
    set_state(site, state, "two")
    if state == "ERROR":
        fail(site, name="-two$", times=FOR_EVER)
    site.stage.start()

    site.stage.settle(for_s=120)

    assert site.ingress("two")[0] == "False"
    assert site.ingress("one") == ("True", "Ready")
    # Cluster API replaces nothing because of it.
    assert is_ready(site, "two")


def test_a_restart_while_octavia_is_busy_doubts_no_member(site: ControlPlaneEnvironment) -> None:
    site.balance()
    up(site, "one", "two")
    (found,) = site.all("loadbalancers")
    table = site.stage.cloud.table("load-balancer", "loadbalancers")
    site.stage.simulator.call(lambda: table[found["id"]].update(provisioning_status="PENDING_UPDATE"))
    site.stage.start()

    site.stage.settle(for_s=60)

    assert [site.ingress(name) for name in ("one", "two")] == [("True", "Ready")] * 2
    assert not [r for r in site.stage.requests() if "/members" in r]


def test_a_restart_lists_the_members_of_a_pool_once_for_all_machines(site: ControlPlaneEnvironment) -> None:
    site.balance()
    up(site, "one", "two", "three")
    site.stage.start()

    site.stage.settle(for_s=60)

    assert len([r for r in site.stage.requests() if r.endswith("/members")]) == 1


def test_a_member_whose_deletion_fails_is_named_and_asked_rarely(site: ControlPlaneEnvironment) -> None:
    site.balance()
    up(site, "one", "two")
    set_state(site, "ERROR", "two")
    gone = {"service": "load-balancer", "method": "DELETE", "path": "/v2.0/lbaas/pools/*/members/*"}
    site.stage.add_fault(match=gone, effect={"status": 204})
    site.stage.cloud.counter.reset()

    site.delete("two")
    site.stage.settle(for_s=900)

    message = site.stage.condition(OPENSTACK_MACHINE, "two", "Ready")["message"]
    assert "is in state ERROR; its deletion was requested again" in message
    assert len(changes(site)) <= 16

    site.stage.clear_faults()
    site.stage.settle(for_s=300)
    assert not site.stage.exists(OPENSTACK_MACHINE, "two")
    assert len(site.addresses()) == 1
