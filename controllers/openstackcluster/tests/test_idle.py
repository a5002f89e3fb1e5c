"""What a cluster costs to which nothing happens; the budget is that of docs/measurements.md."""

from __future__ import annotations

from capo.controllers.openstackcluster.tests.world import FULL, World

WINDOW_S = 600.0
BUDGET = 18


def test_a_full_cluster_at_rest_takes_at_most_eighteen_requests_in_ten_minutes_w29(world: World) -> None:
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

    assert max(costs) <= BUDGET, costs
