"""What a manager asks of OpenStack while nothing changes depends on its projects, not on what is in them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, SECRET
from controllers.openstackcluster.controller import ClusterController
from controllers.openstackmachine.controller import MachineController
from controllers.openstackserver.controller import ServerController
from environments import objects
from environments.in_memory import InMemoryEnvironment

Requests = collections.Counter[str]
PAGE: Final = 12
FEW: Final = (10, 10)
MANY: Final = (101, 30)
"""Clusters and machines: few fit into one page of servers, many need three."""
IDLE_S: Final = 600.0


class Fleet(InMemoryEnvironment):
    """Ready clusters and machines in one project."""

    def __init__(self, clusters: int, machines: int) -> None:
        super().__init__(ClusterController, MachineController, ServerController)
        self.cloud.config = dataclasses.replace(self.cloud.config, max_limit=PAGE)
        self.apply_secret()
        self.apply(SECRET, objects.bootstrap())
        network_id = self.network()["id"]
        for number in range(clusters):
            self._cluster(f"cluster-{number}", network_id)
        for number in range(machines):
            self._machine(f"machine-{number}", f"cluster-{number % clusters}")
        self.settle(for_s=60.0)

    def _cluster(self, name: str, network_id: str) -> None:
        provisioned = {"status": {"initialization": {"infrastructureProvisioned": True}}}
        owner = self.apply(CLUSTER, {**objects.cluster(name), **provisioned})
        api_server = {"enableFloatingIP": False, "fixedIP": "10.9.0.10"}
        spec = {"network": {"id": network_id}, "enableExternalNetwork": False, "apiServer": api_server}
        self.apply(OPENSTACK_CLUSTER, objects.openstack_cluster(name, owner=owner, **spec))

    def _machine(self, name: str, cluster: str) -> None:
        owner = self.apply(MACHINE, objects.machine(name, cluster))
        self.apply(OPENSTACK_MACHINE, objects.openstack_machine(name, cluster, owner=owner))

    def cold_start(self) -> tuple[Requests, int]:
        """Return what a restarted manager requests until it has nothing left to do."""
        return self._requested(self.start)

    def resync(self) -> tuple[Requests, int]:
        """Return what it requests when it reconciles every object, and in the idle time until the next resync."""
        return self._requested(self.wake_all)

    def _requested(self, act: Callable[[], None]) -> tuple[Requests, int]:
        """Return the requests, pages after the first one apart, and the number of those pages."""
        self.cloud.counter.reset()
        act()
        self.settle(for_s=IDLE_S)
        calls = self.cloud.counter.log()
        first = [call for call in calls if "marker=" not in call["query"]]
        return Requests(f"{call['method']} {call['route']}" for call in first), len(calls) - len(first)


@pytest.fixture(scope="module")
def fleets() -> Iterator[tuple[Fleet, Fleet]]:
    with Fleet(*FEW) as few, Fleet(*MANY) as many:
        yield few, many


def test_the_fleets_are_ready(fleets: tuple[Fleet, Fleet]) -> None:
    for fleet, (clusters, machines) in zip(fleets, (FEW, MANY), strict=True):
        ready = {
            kind: sum(fleet.condition(kind, obj["metadata"]["name"], "Ready")["status"] == "True" for obj in found)
            for kind in (OPENSTACK_CLUSTER, OPENSTACK_MACHINE)
            if (found := fleet.store.list(kind))
        }
        assert ready == {OPENSTACK_CLUSTER: clusters, OPENSTACK_MACHINE: machines}


@pytest.mark.parametrize("act", [Fleet.cold_start, Fleet.resync])
def test_requests_do_not_grow_with_clusters_and_servers(
    fleets: tuple[Fleet, Fleet], act: Callable[[Fleet], tuple[Requests, int]]
) -> None:
    (of_few, no_pages), (of_many, pages) = (act(fleet) for fleet in fleets)

    assert of_few == of_many
    assert no_pages == 0
    assert 0 < pages <= 2 * 2, "two full lists of servers at most, each with two pages after the first one"
    assert set(of_many) <= READS


READS: Final = {
    "POST /v3/auth/tokens",
    "GET /v2.1/servers/detail",
    "GET /v2.1/os-availability-zone",
    "GET /v2.0/ports",
    "GET /v2.0/networks",
    "GET /v2.0/floatingips",
}
"""Lists alone: no resource is read by itself."""
