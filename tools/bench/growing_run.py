"""A fleet that grows piece by piece over many projects, its restart, and machines created before and within it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

from environments.manager_process import wait_until
from tools.bench.measure import Reading, Span
from tools.bench.player import Watch, are_provisioned, are_ready
from tools.bench.size_run import FLEET_LIMIT_S, FleetRun

LOOK_S: Final = 0.5
PIECES: Final = 10
SINGLES: Final = 5
"""Machines that are created one after the other; the median counts."""


@dataclass
class GrowingFleet(FleetRun):
    """Clusters that are spread over projects; each project has a user and a Secret of its own.

    Args:
        projects: their number.
    """

    projects: int = 300

    def create(self) -> None:
        """Create single machines, all pieces, and measure the start of a cold process."""
        self.site.open(self.latencies)
        self._gauge = self.site.start()
        entries = self.site.projects(self.projects)
        self._identities = list(entries)
        self._player.identities(entries)
        self._machines = Watch(self.rig, self._player.machines_path)
        self._clusters = Watch(self.rig, self._player.clusters_path)
        self._known = 0
        self._add_clusters("first", 1)
        self._singles("single", "first-000")
        for number in range(PIECES):
            self._piece(number)
        self._restart()

    def end_idle(self) -> None:
        """Measure the idle time, then single machines in a fleet whose resyncs go on."""
        super().end_idle()
        self._singles("single in the fleet", "cluster-0-000")

    def _piece(self, number: int) -> None:
        """Create a part of the clusters, and then their machines."""
        size = self.count // PIECES
        before = self.gauge.read()
        names = self._add_clusters(f"cluster-{number}", self.clusters // PIECES)
        owners = {f"machine-{number}-{index:04d}": names[index % len(names)] for index in range(size)}
        self._player.add_machines(owners)
        ready_s = self._all_are_ready(size)
        self._until_quiet()
        span = Span.between(before, self.gauge.read(at_s=ready_s))
        self.phases.append(self.gauge.phase(f"create to {self._known}", size, span))

    def _add_clusters(self, prefix: str, count: int) -> list[str]:
        """Create clusters, each in the next project in turn, and wait until they are ready."""
        known = len(self._clusters.known())
        names = [f"{prefix}-{index:03d}" for index in range(count)]
        identities = {name: self._identities[(known + index) % self.projects] for index, name in enumerate(names)}
        self._player.clusters_with(identities, self.site.network_id)
        self._clusters.until("the clusters are ready", are_provisioned(known + count), limit_s=FLEET_LIMIT_S)
        for name in names:
            self._player.provisioned(name)
        return names

    def _all_are_ready(self, added: int) -> float:
        self._known += added
        return self._machines.until("all machines are ready", are_ready(self._known), limit_s=FLEET_LIMIT_S)

    def _singles(self, phase: str, cluster: str) -> None:
        """Create machines one after the other; the phase has the median of their seconds."""
        self._until_quiet()
        before, times = self.gauge.read(), []
        for number in range(SINGLES):
            began_s = time.monotonic()
            self._player.add_machines({f"{phase.replace(' ', '-')}-{number}": cluster})
            times.append(self._all_are_ready(1) - began_s)
        self._until_quiet()
        span = Span.between(before, self.gauge.read())
        rounds_s = tuple(round(each, 3) for each in sorted(times))
        measured = self.gauge.phase(phase, SINGLES, span)
        self.phases.append(replace(measured, seconds=rounds_s[SINGLES // 2], rounds_s=rounds_s))

    def _restart(self) -> None:
        """Start a cold manager; measure until it knows all objects, and until each was reconciled once."""
        self.site.stop()
        began_s = time.monotonic()
        self._gauge = self.site.start()
        for name, is_reached in (("all known", self._knows_all), ("start", self._reconciled_all)):
            wait_until(name, is_reached, limit_s=FLEET_LIMIT_S, every_s=LOOK_S)
            span = Span.from_start(began_s, self.gauge.read())
            self.phases.append(self.gauge.phase(name, self.count, span))

    def _knows_all(self) -> bool:
        return self.gauge.read().work.objects >= 2 * self._known + self.clusters  # a machine has an OpenStackServer

    def _reconciled_all(self) -> bool:
        return self.gauge.read().work.is_done()

    def _is_at_rest(self, _seen: Reading) -> bool:
        return True  # resyncs of a large fleet always go on

    def _has_acted(self, before: Reading, after: Reading) -> bool:
        return after.kubernetes_writes != before.kubernetes_writes  # it always lists
