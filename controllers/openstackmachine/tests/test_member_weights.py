"""Weights of members that were changed externally: reported or set again, as the policy of the cluster says."""

from __future__ import annotations

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers.openstackmachine.tests.control_plane_environment import LBAAS, ControlPlaneEnvironment
from controllers.openstackmachine.tests.test_member_drift import events, later


def up(site: ControlPlaneEnvironment, policy: str | None) -> None:
    site.balance()
    if policy:
        spec = {"driftPolicy": {"memberWeights": policy}}
        site.stage.patch(OPENSTACK_CLUSTER, "infra", {"spec": spec})
    site.add("one")
    site.add("two")
    site.stage.settle(for_s=120)
    assert len(site.addresses()) == 2
    later(site)


def drain(site: ControlPlaneEnvironment, name: str) -> str:
    """Set the weight of a machine's member to 0; return the id of its pool."""
    (member,) = (m for m in site.all("members") if m["address"] == site.address_of(name))
    (pool,) = site.all("pools")
    site.stage.member.ask("PUT", f"{LBAAS}/pools/{pool['id']}/members/{member['id']}", {"member": {"weight": 0}})
    site.stage.settle(for_s=30)
    return str(pool["id"])


def weights(site: ControlPlaneEnvironment) -> dict[str, int]:
    return {member["address"]: member["weight"] for member in site.all("members")}


@pytest.mark.parametrize("policy", [None, "Report", "Repair", "Off"])
def test_a_weight_that_others_changed(site: ControlPlaneEnvironment, policy: str | None) -> None:
    up(site, policy)
    pool_id = drain(site, "one")

    later(site)

    text = f"the weight of the member in pool {pool_id} was changed externally to 0"
    assert weights(site)[site.address_of("one")] == (1 if policy == "Repair" else 0)
    assert site.message("one") == (text if policy in (None, "Report") else "")
    assert events(site) == ([f"{text}; set to 1 again"] if policy == "Repair" else [])
    assert site.ingress("one") == ("True", "Ready")
    assert site.message("two") == ""


def test_the_report_ends_when_the_weight_is_back(site: ControlPlaneEnvironment) -> None:
    up(site, None)
    drain(site, "one")
    later(site)
    assert site.message("one")
    (member,) = (m for m in site.all("members") if m["weight"] == 0)
    path = f"{LBAAS}/pools/{site.all('pools')[0]['id']}/members/{member['id']}"
    site.stage.member.ask("PUT", path, {"member": {"weight": 1}})
    site.stage.settle(for_s=30)

    later(site)

    assert site.message("one") == ""


def test_a_pool_that_did_not_change_is_not_listed_again(site: ControlPlaneEnvironment) -> None:
    up(site, None)
    later(site)
    site.stage.cloud.counter.reset()

    for _ in range(3):
        later(site)

    assert [each for each in site.stage.requests() if each.endswith("/members")] == []


def test_a_repair_that_is_refused_is_quoted_and_the_member_stays_ready(site: ControlPlaneEnvironment) -> None:
    up(site, "Repair")
    drain(site, "one")
    site.stage.add_fault(match={"method": "PUT", "path": "*/members/*"}, effect={"status": 403})

    later(site)

    assert "(not repaired, retried within 10 minutes: " in site.message("one")
    assert site.ingress("one") == ("True", "Ready")
    assert events(site) == []


BUSY = {"status": 409, "message": "Pool x is immutable and cannot be updated."}


def repairs(site: ControlPlaneEnvironment) -> int:
    """Return how many changes of members were sent."""
    return sum(each.startswith("PUT") and "/members/" in each for each in site.stage.requests())


def test_a_repair_that_meets_another_change_follows_it(site: ControlPlaneEnvironment) -> None:
    up(site, "Repair")
    pool_id = drain(site, "one")
    site.stage.add_fault(match={"method": "PUT", "path": "*/members/*", "nth": 1}, effect=BUSY)
    site.stage.cloud.counter.reset()
    while not repairs(site):
        site.stage.wake_all()
        site.stage.settle(for_s=10)

    site.stage.settle(for_s=20)

    assert weights(site)[site.address_of("one")] == 1
    assert site.message("one") == ""
    assert events(site) == [f"the weight of the member in pool {pool_id} was changed externally to 0; set to 1 again"]


def test_a_repair_that_never_finds_the_pool_free_is_not_repeated_without_end(site: ControlPlaneEnvironment) -> None:
    up(site, "Repair")
    drain(site, "one")
    site.stage.add_fault(match={"method": "PUT", "path": "*/members/*"}, effect=BUSY)
    site.stage.cloud.counter.reset()

    later(site)

    assert "(not repaired, retried within 10 minutes: Conflict: " in site.message("one")
    assert 3 <= repairs(site) <= 12
