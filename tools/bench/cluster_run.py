"""One cluster of three control plane machines and many workers: created, upgraded one after another, and deleted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from capo.contract import clusters
from capo.json_types import Json
from environments.manager_process import wait_until
from tools.bench.measure import Reading, Span
from tools.bench.player import CLUSTER, Watch, are_ready, is_ready
from tools.bench.size_run import FLEET_LIMIT_S, LIMIT_S, SizeRun

CONTROL_PLANE: Final = 3
SURGE: Final = 0.1
"""Share of the workers that may be there in addition during an upgrade; of the control plane one machine."""
SPEC: Final[Json] = {
    "managedSubnets": [{"cidr": "10.6.0.0/20"}],  # 4,000 machines
    "apiServer": {"managedLoadBalancer": {"enabled": True}},
    "managedSecurityGroups": {"allowAllInClusterTraffic": True},
}


@dataclass
class Rollout:
    """The replacement of machines of one role by newer ones, in the order in which Cluster API does it.

    Args:
        old: names of the machines that are replaced.
        new: names of those in their place, as many.
        surge: how many may be there in addition.
    """

    old: list[str]
    new: list[str]
    surge: int

    def __post_init__(self) -> None:
        self._names, self._size = {*self.old, *self.new}, len(self.old)
        self._to_create, self._to_delete = list(self.new), list(self.old)

    def next_step(self, seen: Sequence[Json]) -> tuple[list[str], list[str]]:
        """Return the machines to create and to delete now."""
        ours = [obj for obj in seen if obj["metadata"]["name"] in self._names]
        leaving = set(self.old) - set(self._to_delete)
        ready = sum(is_ready(obj) and obj["metadata"]["name"] not in leaving for obj in ours)
        room = max(self._size + self.surge - len(ours), 0)
        return self._to_create[:room], self._to_delete[: max(ready - self._size, 0)]

    def take(self, create: list[str], delete: list[str]) -> None:
        """Note that a step was taken."""
        del self._to_create[: len(create)], self._to_delete[: len(delete)]

    def is_done(self, seen: Sequence[Json]) -> bool:
        """Return whether all are replaced."""
        ours = [obj for obj in seen if obj["metadata"]["name"] in self._names]
        return {obj["metadata"]["name"] for obj in ours} == set(self.new) and all(map(is_ready, ours))


@dataclass
class ClusterRun(SizeRun):
    """One cluster with its own network and load balancer; ``count`` is the number of its workers."""

    roles: dict[bool, list[str]] = field(default_factory=dict)
    """Names of the control plane machines (True), and of the workers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._numbers = itertools.count()

    def create(self) -> None:
        """Measure the creation of the cluster and its upgrade."""
        self.site.open(self.latencies)
        self._gauge = self.site.start()
        empty = self.gauge.read()
        self._player.cluster_of(SPEC)
        wait_until("the cluster is there", lambda: clusters.is_provisioned(self._player.infrastructure()))
        self._player.provisioned()
        self._watch = Watch(self.rig, self._player.machines_path)
        self.roles = {True: self._fresh(CONTROL_PLANE), False: self._fresh(self.count)}
        for is_control_plane, machines in self.roles.items():
            self._add(machines, is_control_plane=is_control_plane)
        ready_s = self._watch.until("all are ready", are_ready(CONTROL_PLANE + self.count), limit_s=FLEET_LIMIT_S)
        self._measured("create", empty, ready_s)
        self._upgrade()

    def _upgrade(self) -> None:
        """Replace the control plane machines one by one, then the workers."""
        before = self.gauge.read()
        for is_control_plane, old in self.roles.items():
            surge = 1 if is_control_plane else max(1, int(self.count * SURGE))
            replaced_s = self._roll(Rollout(old, self._fresh(len(old)), surge), is_control_plane=is_control_plane)
        self._measured("upgrade", before, replaced_s)

    def _roll(self, rollout: Rollout, *, is_control_plane: bool) -> float:
        """Replace machines; return the monotonic second in which the last one was."""

        def can_go_on(seen: Sequence[Json]) -> bool:
            return rollout.is_done(seen) or any(rollout.next_step(seen))

        while True:
            reached_s = self._watch.until("the next step of the upgrade", can_go_on, limit_s=FLEET_LIMIT_S)
            create, delete = rollout.next_step(self._watch.known())
            if not create and not delete and rollout.is_done(self._watch.known()):
                return reached_s
            rollout.take(create, delete)
            if create:
                self._add(create, is_control_plane=is_control_plane)
            for name in delete:
                self.rig.api.request("DELETE", f"{self._player.machines_path}/{name}")

    def delete(self) -> None:
        """Measure the deletion of the machines and of the cluster, and require that nothing is left in the cloud."""
        before = self.gauge.read()
        self._player.delete_machines()
        self._watch.until("all machines are gone", lambda seen: not seen, limit_s=FLEET_LIMIT_S)
        self._player.delete_core_machines()  # the cluster waits for them
        of_cluster = Watch(self.rig, self._player.clusters_path)
        self._player.delete_cluster()
        gone_s = of_cluster.until("the cluster is gone", lambda seen: not seen, limit_s=LIMIT_S)
        self._measured("delete", before, gone_s)
        self._look_for_leftovers()

    def _fresh(self, count: int) -> list[str]:
        return [f"machine-{next(self._numbers):04d}" for _ in range(count)]

    def _add(self, machines: list[str], *, is_control_plane: bool) -> None:
        self._player.add_machines(dict.fromkeys(machines, CLUSTER), is_control_plane=is_control_plane)

    def _measured(self, name: str, before: Reading, at_s: float) -> None:
        span = Span.between(before, self.gauge.read(at_s=at_s))
        self.phases.append(self.gauge.phase(name, CONTROL_PLANE + self.count, span))
