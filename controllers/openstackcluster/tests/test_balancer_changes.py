"""A load balancer whose children change: through the spec while it is in use, and externally."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.openstackcluster.tests.environment import BALANCER_PATH, MANAGED, ClusterEnvironment

MORE: dict[str, Any] = {"managedLoadBalancer": {"enabled": True, "additionalPorts": [9345]}}
RESYNC_S = 600.0


def readiness(world: ClusterEnvironment) -> list[str]:
    """Collect every later status of ``Ready``."""
    seen: list[str] = []

    def look(*_: object) -> None:
        seen.append(world.shown("Ready")[0])

    world.kube.before_write = look
    return seen


def ports_open_to(world: ClusterEnvironment) -> set[tuple[str, ...]]:
    return {tuple(listener["allowed_cidrs"] or ()) for listener in world.created()["listeners"].values()}


def test_the_cluster_stays_ready_while_allowed_cidrs_are_changed(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer=MORE)
    seen = readiness(world)

    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}})
    world.settle(for_s=60)

    (cidrs,) = ports_open_to(world)
    assert "192.0.2.0/24" in cidrs
    assert sorted(world.status()["apiServerManagedLoadBalancer"]["allowedCIDRs"]) == sorted(cidrs)
    assert set(seen) == {"True"}
    assert world.message("LoadBalancerReady") == ""


def test_allowed_cidrs_are_shown_when_every_port_has_them(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer=MORE)

    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}})
    world.settle(for_s=60, until=lambda: len(ports_open_to(world)) == 2)

    assert "allowedCIDRs" not in world.status()["apiServerManagedLoadBalancer"]
    assert world.message("LoadBalancerReady") == "a change is being applied"


@pytest.mark.parametrize(
    ("kind", "drift"),
    [
        pytest.param("listeners", {"allowed_cidrs": ["198.51.100.0/24"]}, id="allowed CIDRs of a listener"),
        pytest.param("healthmonitors", {"delay": 99}, id="numbers of a monitor"),
    ],
)
def test_what_others_change_is_put_right_at_the_next_resync_w_63_w_84(
    world: ClusterEnvironment, kind: str, drift: dict[str, Any]
) -> None:
    world.up(**MANAGED, apiServer=MORE)
    before = {id_: dict(body) for id_, body in world.created()[kind].items()}
    world.set_state(kind, next(iter(before)), **drift)

    world.settle(for_s=RESYNC_S)
    world.resync()
    world.settle(for_s=60)

    field = next(iter(drift))
    assert {id_: body[field] for id_, body in world.created()[kind].items()} == {
        id_: body[field] for id_, body in before.items()
    }
    assert world.is_ready()


def test_a_monitor_that_somebody_deleted_is_made_again_at_the_next_resync(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer=MORE)
    monitor = next(iter(world.created()["healthmonitors"]))
    world.member.ask("DELETE", f"{BALANCER_PATH}/healthmonitors/{monitor}")

    world.settle(for_s=RESYNC_S)
    world.resync()
    world.settle(for_s=60)

    assert len(world.created()["healthmonitors"]) == 2


def test_children_are_listed_once_per_resync_however_often_the_cluster_is_woken(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer=MORE)
    world.settle(for_s=RESYNC_S)
    world.cloud.counter.reset()

    for _ in range(5):
        world.resync()
        world.settle(for_s=60)

    listed = [r for r in world.requests() if r.endswith(("/listeners", "/pools", "/healthmonitors"))]
    assert len(set(listed)) == len(listed) == 3


def test_allowed_cidrs_that_are_taken_back_before_they_are_in_force_do_not_stay(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer=MORE)
    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}})
    world.settle(for_s=30, until=lambda: ports_open_to(world) != {()})

    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": None}})
    world.settle(for_s=120)

    assert ports_open_to(world) == {()}
    assert world.is_ready()


def test_a_change_that_was_refused_while_others_changed_the_load_balancer_follows_soon(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED, apiServer=MORE)
    match = {"service": "load-balancer", "method": "PUT", "path": "/v2.0/lbaas/listeners/*"}
    world.add_fault(match=match, effect={"status": 409, "message": "Load Balancer is immutable and cannot be updated"})
    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}})
    world.settle(for_s=60)
    assert ports_open_to(world) == {()}
    refused = [each for each in world.requests() if each.startswith("PUT") and "/listeners/" in each]

    world.clear_faults()
    world.settle(for_s=30)

    (cidrs,) = ports_open_to(world)
    assert "192.0.2.0/24" in cidrs
    assert 1 <= len(refused) <= 7
