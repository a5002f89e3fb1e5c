"""A lost load balancer is whole again soon; the cluster is ready only while listener, pool and members are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BALANCER_PATH,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackcluster.tests.test_load_balancer_rebuild import ask, fail, join

DAY_S = 90_000.0
WHOLE_S = 170.0
"""Within this time a load balancer is whole again: a create with a lost answer takes 60 s more, and others wait too."""
PARTS = ("loadbalancers", "listeners", "pools", "healthmonitors", "members")
LEFT_OUT: dict[str, Any] = {"driftPolicy": {"poolMembers": "Report"}}


def up(fleet: ClusterEnvironment, **spec: Any) -> None:
    fleet.up(**MANAGED, **BALANCER, **GROUPS, **spec)
    join(fleet)


def whole(fleet: ClusterEnvironment) -> bool:
    found = fleet.created()
    return all(len(found.get(kind, ())) == 1 for kind in PARTS)


def settle_until_whole(fleet: ClusterEnvironment, lost_id: str, *, within_s: float) -> None:
    """Run until the load balancer is whole and the cluster is ready, which it never is before.

    Raises:
        AssertionError: it took longer, or the cluster was ready while a part was missing.
    """

    def is_over() -> bool:
        is_new = bool(fleet.created().get("loadbalancers", {}).keys() - {lost_id})
        assert not (is_new and fleet.is_ready() and not whole(fleet)), f"ready with {fleet.counts()}"
        return is_new and fleet.is_ready()

    began_s = fleet.clock.now()
    fleet.settle(for_s=within_s, until=is_over)
    assert is_over(), f"{fleet.counts()}: {fleet.message('Ready')}"
    assert fleet.clock.now() - began_s <= within_s


def a_day_passes(fleet: ClusterEnvironment) -> None:
    fleet.clock.advance(DAY_S)
    fleet.resync()
    fleet.settle(for_s=60)


def restart(fleet: ClusterEnvironment) -> None:
    fleet.start()
    fleet.settle(for_s=60)


def nothing_happens(_fleet: ClusterEnvironment) -> None:
    """Do nothing."""


@pytest.mark.parametrize("happens", [a_day_passes, restart, nothing_happens])
def test_load_balancer_where_ovn_is_the_default_is_rebuilt_whole(
    fleet: ClusterEnvironment, happens: Callable[[ClusterEnvironment], None]
) -> None:
    fleet.use_ovn(release="2026.2")
    up(fleet)
    vip = fleet.one("loadbalancers")["vip_address"]

    happens(fleet)
    id_ = fail(fleet)
    ask(fleet, id_)
    settle_until_whole(fleet, id_, within_s=WHOLE_S)

    assert fleet.one("loadbalancers")["vip_address"] == vip
    creates = [each for each in fleet.requests() if each == "POST /v2.0/lbaas/loadbalancers"]
    assert len(creates) == 3  # the first one of the cluster was refused with its children; no later one is


def test_rebuild_whose_create_is_not_answered_ends_with_a_whole_load_balancer(fleet: ClusterEnvironment) -> None:
    up(fleet)
    id_ = fail(fleet)
    fleet.add_fault(match={"service": "load-balancer", "method": "POST", "nth": 1}, effect={"cut": "after"})

    ask(fleet, id_)
    settle_until_whole(fleet, id_, within_s=WHOLE_S)


@pytest.mark.parametrize("provider", ["amphora", "ovn"])
def test_load_balancer_that_was_deleted_externally_is_whole_again_after_a_restart(
    fleet: ClusterEnvironment, provider: str
) -> None:
    if provider == "ovn":
        fleet.use_ovn(release="2026.2")
    up(fleet)
    id_ = fleet.one("loadbalancers")["id"]
    fleet.member.ask("DELETE", f"{BALANCER_PATH}/loadbalancers/{id_}?cascade=true")
    fleet.settle(for_s=30)

    fleet.start()
    settle_until_whole(fleet, id_, within_s=WHOLE_S)


@pytest.mark.parametrize("kind", ["listeners", "pools"])
def test_child_that_was_deleted_externally_keeps_the_cluster_from_being_ready(
    fleet: ClusterEnvironment, kind: str
) -> None:
    up(fleet)
    lost = fleet.one(kind)["id"]
    fleet.member.ask("DELETE", f"{BALANCER_PATH}/{kind}/{lost}")
    fleet.settle(for_s=30)
    fleet.clock.advance(fleet.settings.sync_period_s)
    fleet.resync()

    def is_over() -> bool:
        is_known = fleet.shown("LoadBalancerReady") == ("False", "Building")
        return is_known or whole(fleet)

    fleet.settle(for_s=60, until=is_over)
    assert not fleet.is_ready()
    fleet.settle(for_s=120)

    assert whole(fleet)
    assert fleet.is_ready(), fleet.message("Ready")


def leave(fleet: ClusterEnvironment) -> None:
    """Remove the member externally, while its machine is paused and does not join again."""
    paused = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
    fleet.patch(OPENSTACK_MACHINE, "one", paused)
    member = fleet.one("members")
    fleet.member.ask("DELETE", f"{BALANCER_PATH}/pools/{fleet.one('pools')['id']}/members/{member['id']}")
    fleet.settle(for_s=30)
    fleet.clock.advance(fleet.settings.sync_period_s)
    fleet.resync()
    fleet.settle(for_s=60)
    assert "members" not in fleet.created()


def test_machine_that_is_no_member_any_more_is_named_until_it_joins_again(fleet: ClusterEnvironment) -> None:
    up(fleet)

    leave(fleet)

    assert fleet.shown("Ready") == ("False", "Building")
    assert "have yet to join the load balancer: one" in fleet.message("LoadBalancerReady")
    assert fleet.is_provisioned()
    fleet.patch(OPENSTACK_MACHINE, "one", {"metadata": {"annotations": {"cluster.x-k8s.io/paused": None}}})
    fleet.settle(for_s=60)
    assert whole(fleet)
    assert fleet.is_ready(), fleet.message("Ready")


def test_member_whose_removal_the_policy_reports_keeps_no_cluster_from_being_ready(fleet: ClusterEnvironment) -> None:
    up(fleet, **LEFT_OUT)

    leave(fleet)

    assert fleet.is_ready(), fleet.message("Ready")


def test_machine_that_is_being_created_keeps_no_cluster_from_being_ready(fleet: ClusterEnvironment) -> None:
    fleet.up(**MANAGED, **BALANCER, **GROUPS)
    shown = set()
    watched = fleet.settle

    def settle(**options: Any) -> None:
        watched(**options, until=lambda: shown.add(fleet.is_ready()))

    fleet.settle = settle  # type: ignore[method-assign]
    join(fleet)

    assert shown == {True}


def test_records_of_children_that_no_load_balancer_has_are_not_trusted(fleet: ClusterEnvironment) -> None:
    up(fleet)
    records = fleet.status()["resources"]["records"]
    strange = [{**each, "id": fleet.one("networks")["id"]} if each["kind"] == "listener" else each for each in records]
    fleet.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"resources": {"records": strange}}})

    fleet.start()
    fleet.settle(for_s=120)

    assert whole(fleet)
    assert fleet.record("listener-6443") == fleet.one("listeners")["id"]
