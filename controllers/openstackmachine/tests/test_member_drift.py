"""Members that were removed externally: created again, or left out, as the policy of the cluster says."""

from __future__ import annotations

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from controllers import drift
from controllers.openstackmachine.tests.control_plane_environment import LBAAS, ControlPlaneEnvironment


def choose(site: ControlPlaneEnvironment, policy: str | None) -> None:
    spec = {"driftPolicy": {"poolMembers": policy} if policy else None}
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"spec": spec})


def up(site: ControlPlaneEnvironment, policy: str | None) -> None:
    site.balance()
    choose(site, policy)
    site.add("one")
    site.add("two")
    site.stage.settle(for_s=120)
    assert len(site.addresses()) == 2


def later(site: ControlPlaneEnvironment) -> None:
    """Expire what is remembered of members and pools, then reconcile."""
    site.stage.settle(for_s=3700)
    site.stage.wake_all()
    site.stage.settle(for_s=60)


def take_out(site: ControlPlaneEnvironment, name: str) -> str:
    """Delete the member of a machine; return the id of its pool."""
    (member,) = (m for m in site.all("members") if m["address"] == site.address_of(name))
    (pool,) = site.all("pools")
    site.stage.member.ask("DELETE", f"{LBAAS}/pools/{pool['id']}/members/{member['id']}")
    site.stage.settle(for_s=30)
    return str(pool["id"])


def events(site: ControlPlaneEnvironment) -> list[str]:
    return [text for _, reason, text in site.stage.events.seen if reason == drift.EVENT]


@pytest.mark.parametrize("policy", [None, "Repair"])
def test_a_member_that_was_removed_comes_back_with_an_event(site: ControlPlaneEnvironment, policy: str | None) -> None:
    up(site, policy)
    assert events(site) == []
    pool_id = take_out(site, "one")

    later(site)

    assert site.address_of("one") in site.addresses()
    (text,) = events(site)
    assert f"of pool {pool_id} was removed externally; created it again as " in text
    assert "joinedPools" not in site.stage.get(OPENSTACK_MACHINE, "one")["status"]


@pytest.mark.parametrize("policy", ["Report", "Off"])
def test_a_member_that_was_taken_out_stays_out(site: ControlPlaneEnvironment, policy: str) -> None:
    up(site, policy)
    pool_id = take_out(site, "one")

    later(site)
    later(site)

    assert site.addresses() == [site.address_of("two")]
    text = f"the member in pool {pool_id} was removed externally"
    assert site.message("one") == (text if policy == "Report" else "")
    assert site.ingress("one") == ("True", "Ready")
    assert site.message("two") == ""
    assert events(site) == []


def test_a_new_machine_does_not_bring_back_the_member_of_another(site: ControlPlaneEnvironment) -> None:
    up(site, "Report")
    take_out(site, "one")

    site.add("three")
    site.stage.settle(for_s=120)

    assert site.addresses() == sorted([site.address_of("two"), site.address_of("three")])


def test_a_member_comes_back_with_the_policy(site: ControlPlaneEnvironment) -> None:
    up(site, "Report")
    take_out(site, "one")
    later(site)

    choose(site, None)
    later(site)

    assert len(site.addresses()) == 2
    assert site.message("one") == ""
    assert "joinedPools" not in site.stage.get(OPENSTACK_MACHINE, "one")["status"]


def test_a_pool_that_was_created_again_gets_its_members(site: ControlPlaneEnvironment) -> None:
    up(site, "Off")
    (pool,), (balancer,) = site.all("pools"), site.all("loadbalancers")
    site.stage.member.ask("DELETE", f"{LBAAS}/pools/{pool['id']}")
    site.stage.settle(for_s=30)
    listener = site.all("listeners")[0]
    made = site.stage.member.make(
        f"{LBAAS}/pools", "pool", listener_id=listener["id"], protocol="TCP", lb_algorithm="ROUND_ROBIN", name="again"
    )
    site.stage.settle(for_s=30)
    site.record(lb_api=balancer["id"], pool_6443=made["id"])

    later(site)

    assert len(site.addresses()) == 2
