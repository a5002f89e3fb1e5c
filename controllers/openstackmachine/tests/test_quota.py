"""Control plane machines whose project has no quota for all their members: they wait, and join by themselves."""

from __future__ import annotations

from capo.kube.kinds import OPENSTACK_MACHINE
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment


def allow(site: ControlPlaneEnvironment, members: int) -> None:
    stage = site.stage
    stage.simulator.call(
        lambda: stage.cloud.set_quota("load-balancer", stage.member.project_id, "member", members),
    )


def refused(site: ControlPlaneEnvironment) -> int:
    log = site.stage.cloud.counter.log()
    return sum("/members" in call["path"] and call["status"] == 403 for call in log)


def test_members_beyond_the_quota_wait_after_one_refusal_and_join_when_there_is_room(
    site: ControlPlaneEnvironment,
) -> None:
    site.balance()
    allow(site, 1)
    for name in ("one", "two", "three"):
        site.add(name)

    site.stage.settle(for_s=600)

    assert refused(site) <= 4  # of the change for all, then of the first that is alone beyond the quota
    assert len(site.addresses()) == 1
    waiting = [name for name in ("one", "two", "three") if site.ingress(name) == ("False", "QuotaExceeded")]
    assert len(waiting) == 2
    assert all("quota of pool members exhausted: needs " in site.message(name) for name in waiting)

    site.stage.cloud.counter.reset()
    site.stage.settle(for_s=1200)
    assert refused(site) <= 4

    allow(site, -1)
    site.stage.settle(for_s=600)
    assert len(site.addresses()) == 3
    assert all(site.ingress(name) == ("True", "Ready") for name in ("one", "two", "three"))


def test_a_member_that_is_replaced_gets_its_quota_again_although_others_wait_for_it(
    site: ControlPlaneEnvironment,
) -> None:
    site.balance()
    allow(site, 1)
    site.add("one")
    site.stage.settle(for_s=120)
    site.add("two")
    site.stage.settle(for_s=900)
    assert site.ingress("two") == ("False", "QuotaExceeded")

    (member,) = (each for each in site.all("members"))
    site.stage.simulator.call(
        lambda: site.stage.cloud.table("load-balancer", "members")[member["id"]].update(address="10.9.0.250")
    )
    site.stage.patch(OPENSTACK_MACHINE, "one", {"status": {"resources": None}})  # so that its pool is listed
    site.stage.settle(for_s=900)

    assert site.addresses() == [site.address_of("one")]
    assert site.ingress("one") == ("True", "Ready")
