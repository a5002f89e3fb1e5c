"""A listener, pool or health monitor in ERROR while its load balancer is ACTIVE: named, and sent to Octavia again."""

from __future__ import annotations

import pytest

from controllers.openstackcluster.tests.environment import BALANCER, BALANCER_PATH, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.test_balancer_changes import readiness

RESYNC_S = 600.0
KINDS = pytest.mark.parametrize("kind", ["listeners", "pools", "healthmonitors"])


def fail(world: ClusterEnvironment, kind: str, *, times: int = 1) -> str:
    """Order so many changes of a child to end in ERROR, send the first as another program; return the id."""
    ((child, body),) = world.created()[kind].items()
    world.member.ask("POST", "/_simulator/tweaks/load-balancer/fail_parts", {"kind": kind, "times": times})
    key = kind.removesuffix("s")
    world.member.ask("PUT", f"{BALANCER_PATH}/{kind}/{child}", {key: {"name": body["name"]}})
    world.settle(for_s=30)
    return str(child)


def later(world: ClusterEnvironment) -> None:
    for _ in range(2):  # the list that shows a change of others may follow the first resync
        world.settle(for_s=RESYNC_S)
        world.resync()
    world.settle(for_s=60)


@KINDS
def test_a_child_in_error_is_sent_to_octavia_again(world: ClusterEnvironment, kind: str) -> None:
    world.up(**MANAGED, **BALANCER)
    child = fail(world, kind)

    later(world)

    assert world.created()[kind][child]["provisioning_status"] == "ACTIVE"
    assert world.is_ready()


@KINDS
def test_a_child_that_stays_in_error_is_named_and_the_cluster_is_not_ready(
    world: ClusterEnvironment, kind: str
) -> None:
    world.up(**MANAGED, **BALANCER)
    child = fail(world, kind, times=1_000_000)

    later(world)
    later(world)
    seen = readiness(world)
    world.cloud.counter.reset()
    later(world)

    assert f" {child} of load balancer " in world.message("LoadBalancerReady")
    assert "is in state ERROR" in world.message("LoadBalancerReady")
    assert set(seen) <= {"False"}
    assert not world.is_ready()
    assert len([each for each in world.requests() if each.startswith("PUT")]) <= 2 * RESYNC_S / 100 + 6


def test_an_edit_that_ends_in_error_is_named_at_once(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    order = {"kind": "listeners", "times": 1_000_000}
    world.member.ask("POST", "/_simulator/tweaks/load-balancer/fail_parts", order)

    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}})
    world.settle(for_s=60)

    (listener,) = world.created()["listeners"]
    assert f"listener {listener} of load balancer " in world.message("LoadBalancerReady")
    assert "is in state ERROR" in world.message("LoadBalancerReady")
    assert not world.is_ready()
