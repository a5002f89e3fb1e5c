"""The request cost of an idle cluster; the budget is that of docs/measurements.md."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import BALANCER, BASTION, FULL, GROUPS, ClusterEnvironment

WINDOW_S = 600.0
BUDGET = 18


def given_network(world: ClusterEnvironment) -> dict[str, Any]:
    """Return the spec of a cluster with everything except a network and a router of its own."""
    network, router = world.network(), given.router(world)
    (subnet_id,) = (i for i, s in world.inventory()["subnets"].items() if s["network_id"] == network["id"])
    given.connect(world, router["id"], subnet_id)
    where = {"network": {"id": network["id"]}, "router": {"filter": {"name": "mine"}}}
    return {**where, **BALANCER, **GROUPS, **BASTION}


@pytest.mark.parametrize("has_open_egress", [True, False], ids=["open egress", "restricted egress"])
@pytest.mark.parametrize("has_own_network", [True, False], ids=["own network", "existing network"])
def test_a_full_cluster_at_rest_takes_at_most_eighteen_requests_in_ten_minutes_w_79(
    world: ClusterEnvironment, has_own_network: bool, has_open_egress: bool
) -> None:
    # The name servers of an existing network are read with each resync.
    budget = BUDGET if has_own_network or has_open_egress else BUDGET + 1
    groups = {} if has_open_egress else {"managedSecurityGroups": {"allowAllOutboundTraffic": False}}
    world.up(**{**(FULL if has_own_network else given_network(world)), **groups})
    world.settle(for_s=WINDOW_S)
    costs = []

    for _ in range(12):
        world.cloud.counter.reset()
        world.kube.writes.clear()
        world.resync()
        world.settle(for_s=WINDOW_S)
        costs.append(len(world.requests()))
        assert world.kube.writes == []

    assert max(costs) <= budget, costs
