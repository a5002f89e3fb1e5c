"""Phases of one size: a cold start, the creation of the machines, an idle time, and their deletion."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import requests

from capo.contract import clusters
from capo.local.rig import Rig
from environments.manager_process import wait_until
from tools.bench import floor
from tools.bench.environment import BenchEnvironment
from tools.bench.floor import Latencies
from tools.bench.measure import NOTHING, Gauge, Phase, Reading, Span
from tools.bench.player import Player, StuckError, Watch, are_provisioned, are_ready, are_waiting

SLOTS: Final = 10
"""Default number of concurrent reconciles per cloud: ``--cloud-concurrency``."""
LIMIT_S: Final = 300.0
FLEET_LIMIT_S: Final = 1800.0
QUIET_S: Final = 6.0
"""A manager that has no work left has finished if it did nothing for longer than the slowest poll of a list takes."""


@dataclass
class SizeRun:
    """One size of the benchmark, from its start to its end.

    Args:
        shape: fields of every OpenStackMachine's spec in addition to flavor and image.
    """

    rig: Rig
    name: str
    count: int
    latencies: Latencies = field(default_factory=Latencies)
    shape: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site = BenchEnvironment(self.rig, self.name, self.rig.install_provider_account())
        self._player = Player(self.rig, self.name)
        self._gauge: Gauge | None = None
        self._idle_since: Reading | None = None

    @property
    def gauge(self) -> Gauge:
        """Return the reader of the running manager's counters."""
        assert self._gauge is not None
        return self._gauge

    def create(self) -> None:
        """Measure the creation, by a process with empty caches."""
        self._prepare()
        began_s = time.monotonic()
        self._gauge = self.site.start()
        started = self.gauge.read(at_s=self._until_quiet())
        self.phases.append(self.gauge.phase("start", self.count, Span.from_start(began_s, started)))
        watch = Watch(self.rig, self._player.machines_path)
        self._player.machines(self.count, self.shape)
        watch.until("all machines wait", are_waiting(self.count), limit_s=LIMIT_S)
        before = self.gauge.read()
        self._player.provisioned()
        ready_s = watch.until("all machines are ready", are_ready(self.count), limit_s=LIMIT_S)
        span = Span.between(before, self.gauge.read(at_s=ready_s), since=started, requests_since=NOTHING)
        self.phases.append(self.gauge.phase("create", self.count, span, self._floor_s(floor.creation_s)))

    def begin_idle(self) -> None:
        """Begin the idle time."""
        self._until_quiet()
        self._idle_since = self.gauge.read()

    def end_idle(self) -> None:
        """Measure the idle time."""
        assert self._idle_since is not None
        self.phases.append(self.gauge.phase("idle", self.count, Span.between(self._idle_since, self.gauge.read())))

    def delete(self) -> None:
        """Measure the deletion, and require that nothing is left in the cloud."""
        watch = Watch(self.rig, self._player.machines_path)
        watch.until("all machines are known", lambda seen: len(seen) == self.count, limit_s=LIMIT_S)
        before = self.gauge.read()
        self._player.delete_machines()
        gone_s = watch.until("all machines are gone", lambda seen: not seen, limit_s=LIMIT_S)
        span = Span.between(before, self.gauge.read(at_s=gone_s))
        self.phases.append(self.gauge.phase("delete", self.count, span, self._floor_s(floor.deletion_s)))
        self._look_for_leftovers()

    def end(self) -> None:
        """End manager and cloud."""
        self.site.close()

    def _prepare(self) -> None:
        """Start a cloud, and create a cluster in it by an earlier process."""
        self.site.open(self.latencies)
        self._player.cluster(self.site.network_id)
        self.site.start()
        wait_until("the cluster is there", lambda: clusters.is_provisioned(self._player.infrastructure()))
        self.site.stop()

    def _until_quiet(self) -> float:
        """Wait until the manager has no work left and did nothing for a while; return when that began.

        Raises:
            StuckError: it did not in time.
        """
        seen = self.gauge.read()
        since_s, ends_s = seen.at_s, seen.at_s + FLEET_LIMIT_S
        while time.monotonic() - since_s < QUIET_S or not self._is_at_rest(seen):
            if time.monotonic() > ends_s:
                raise StuckError(f"{self.name}: not at rest within {FLEET_LIMIT_S:.0f} s: {seen.work}")
            time.sleep(0.25)
            now = self.gauge.read()
            if self._has_acted(seen, now):
                seen, since_s = now, now.at_s
        return since_s

    def _is_at_rest(self, seen: Reading) -> bool:
        return seen.work.is_done()

    def _has_acted(self, before: Reading, after: Reading) -> bool:
        return after.differs(before)

    def _floor_s(self, formula: Callable[..., float]) -> float | None:
        """Return the floor of plain machines; for volumes only the writes are measured."""
        return None if self.shape else formula(self.latencies, self.count, slots=SLOTS)

    def _look_for_leftovers(self) -> None:
        found = requests.get(f"{self.site.simulator_url}/_simulator/inventory", timeout=30).json()
        # Nova still lists a deleted server for a moment.
        servers = [server for server in found["compute"]["servers"] if server["status"] != "DELETED"]
        left = [*servers, *found["network"]["ports"], *found["volume"].get("volumes", ())]
        if left:
            raise StuckError(f"{self.name}: {len(left)} resources are left in the cloud, the first one is {left[0]}")


@dataclass
class FleetRun(SizeRun):
    """Many idle clusters: the cost of resyncs.

    Args:
        clusters: number over which the machines are spread.
    """

    clusters: int = 300

    def create(self) -> None:
        """Create all objects, then measure the start of a cold process."""
        self.site.open(self.latencies)
        self._gauge = self.site.start()
        empty = self.gauge.read()
        ready_s = self._all_ready_s()
        self._until_quiet()
        self.phases.append(self.gauge.phase("create", self.count, Span.between(empty, self.gauge.read(at_s=ready_s))))
        self.site.stop()
        began_s = time.monotonic()
        self._gauge = self.site.start()
        quiet_s = self._until_quiet()
        started = self.gauge.read(at_s=quiet_s)
        self.phases.append(self.gauge.phase("start", self.count, Span.from_start(began_s, started)))

    def _all_ready_s(self) -> float:
        """Create the objects and wait until they are ready; return the monotonic second in which they were."""
        watch = Watch(self.rig, self._player.machines_path)
        self._player.fleet(self.clusters, self.count, self.site.network_id)
        return watch.until("all machines are ready", are_ready(self.count), limit_s=FLEET_LIMIT_S)

    def delete(self) -> None:
        """Keep everything; it is removed with the rig."""


class Clouds(FleetRun):
    """As many clusters as ``count``, each with its own project and user, on a shared network."""

    def _all_ready_s(self) -> float:
        entries = self.site.projects(self.count)
        watch = Watch(self.rig, self._player.clusters_path)
        self._player.clouds(entries, self.site.network_id)
        return watch.until("all clusters are ready", are_provisioned(self.count), limit_s=FLEET_LIMIT_S)
