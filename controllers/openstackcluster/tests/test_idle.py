"""What a cluster costs to which nothing happens; the budget is that of design.md, section 5."""

from __future__ import annotations

from capo.controllers.openstackcluster.tests.world import FULL, World

WINDOW_S = 600.0
BUDGET = 15


def test_a_full_cluster_at_rest_takes_at_most_fifteen_requests_in_ten_minutes_w29(world: World) -> None:
    world.up(**FULL)
    world.settle(for_s=WINDOW_S)
    costs = []

    for _ in range(12):
        world.cloud.counter.reset()
        world.kube.writes.clear()
        world.resync()
        world.settle(for_s=WINDOW_S)
        costs.append(len(world.requests()))
        assert world.kube.writes == []

    first, *later = costs
    assert max(later) <= BUDGET, costs
    assert first <= BUDGET + 1, "what was never listed comes on top, once"
