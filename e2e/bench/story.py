"""What is measured of one size: a cold start, so many machines made, nothing, and all of them deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import requests

from capo.contract import clusters
from capo.local.rig import Rig
from e2e.bench import floor
from e2e.bench.floor import Latencies
from e2e.bench.measure import NOTHING, Gauge, Phase, Reading, Span
from e2e.bench.player import Player, StuckError, Watch, are_ready, are_waiting
from e2e.bench.site import Site
from e2e.manager import wait_until

SLOTS: Final = 10
"""Passes at once per cloud, by default: ``--cloud-concurrency``."""
LIMIT_S: Final = 300.0
FLEET_LIMIT_S: Final = 1800.0
QUIET_S: Final = 2.0
"""A process that asks nothing for so long has started."""


@dataclass
class Story:
    """One size of the benchmark, from its start to its end.

    Args:
        shape: fields of every OpenStackMachine's spec beside flavor and image.
    """

    rig: Rig
    name: str
    count: int
    latencies: Latencies = field(default_factory=Latencies)
    shape: dict[str, Any] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site = Site(self.rig, self.name, self.rig.install_provider_account())
        self._player = Player(self.rig, self.name)
        self._gauge: Gauge | None = None
        self._idle_since: Reading | None = None

    @property
    def gauge(self) -> Gauge:
        """What reads the counters of the manager that runs."""
        assert self._gauge is not None
        return self._gauge

    def create(self) -> None:
        """Measure the creation, by a process that knows nothing yet."""
        self._prepare()
        began_s = time.monotonic()
        self._gauge = self.site.start()
        started = self.gauge.read(at_s=self._until_quiet())
        start = Span.of(replace(NOTHING, at_s=began_s, rest_cpu_s=started.rest_cpu_s), started, since=NOTHING)
        self.phases.append(self.gauge.phase("start", self.count, start))
        watch = Watch(self.rig, self._player.machines_path)
        self._player.machines(self.count, self.shape)
        watch.until("all machines wait", are_waiting(self.count), limit_s=LIMIT_S)
        before = self.gauge.read()
        self._player.provisioned()
        ready_s = watch.until("all machines are ready", are_ready(self.count), limit_s=LIMIT_S)
        span = Span.of(before, self.gauge.read(at_s=ready_s), since=started, requests_since=NOTHING)
        self.phases.append(self.gauge.phase("create", self.count, span, self._floor_s(floor.creation_s)))

    def begin_idle(self) -> None:
        """Let the idle time begin."""
        self._until_quiet()
        self._idle_since = self.gauge.read()

    def end_idle(self) -> None:
        """Measure what was done since then."""
        assert self._idle_since is not None
        self.phases.append(self.gauge.phase("idle", self.count, Span.of(self._idle_since, self.gauge.read())))

    def delete(self) -> None:
        """Measure the deletion, and see that nothing is left in the cloud."""
        watch = Watch(self.rig, self._player.machines_path)
        watch.until("all machines are known", lambda seen: len(seen) == self.count, limit_s=LIMIT_S)
        before = self.gauge.read()
        self._player.delete_machines()
        gone_s = watch.until("all machines are gone", lambda seen: not seen, limit_s=LIMIT_S)
        span = Span.of(before, self.gauge.read(at_s=gone_s))
        self.phases.append(self.gauge.phase("delete", self.count, span, self._floor_s(floor.deletion_s)))
        self._look_for_leftovers()

    def end(self) -> None:
        """End manager and cloud."""
        self.site.close()

    def _prepare(self) -> None:
        """Have a cloud, and a cluster in it that an earlier process made."""
        self.site.open(self.latencies)
        self._player.cluster(self.site.network_id)
        self.site.start()
        wait_until("the cluster is there", lambda: clusters.is_provisioned(self._player.infrastructure()))
        self.site.stop()

    def _until_quiet(self) -> float:
        """Wait until the manager has asked and written nothing for a while; return when that began."""
        seen, since_s = self.gauge.read(), time.monotonic()
        while time.monotonic() - since_s < QUIET_S:
            time.sleep(0.25)
            now = self.gauge.read()
            if (now.requests, now.kubernetes_writes) != (seen.requests, seen.kubernetes_writes):
                seen, since_s = now, now.at_s
        return since_s

    def _floor_s(self, formula: Callable[..., float]) -> float | None:
        """Return the floor of plain machines; volumes are measured for their writes alone."""
        return None if self.shape else formula(self.latencies, self.count, slots=SLOTS)

    def _look_for_leftovers(self) -> None:
        found = requests.get(f"{self.site.simulator_url}/_simulator/inventory", timeout=30).json()
        # Nova goes on showing a deleted server for a moment.
        servers = [server for server in found["compute"]["servers"] if server["status"] != "DELETED"]
        left = [*servers, *found["network"]["ports"], *found["volume"].get("volumes", ())]
        if left:
            raise StuckError(f"{self.name}: {len(left)} resources are left in the cloud, the first one is {left[0]}")


@dataclass
class Fleet(Story):
    """Many clusters of which nothing is wanted: what it costs to look after them.

    Args:
        clusters: over which the machines are spread.
    """

    clusters: int = 300

    def create(self) -> None:
        """Have all of it made, then measure how a cold process finds its way into it."""
        self.site.open(self.latencies)
        self._gauge = self.site.start()
        empty = self.gauge.read()
        watch = Watch(self.rig, self._player.machines_path)
        self._player.fleet(self.clusters, self.count, self.site.network_id)
        ready_s = watch.until("all machines are ready", are_ready(self.count), limit_s=FLEET_LIMIT_S)
        self.phases.append(self.gauge.phase("create", self.count, Span.of(empty, self.gauge.read(at_s=ready_s))))
        self.site.stop()
        began_s = time.monotonic()
        self._gauge = self.site.start()
        quiet_s = self._until_quiet()
        started = self.gauge.read(at_s=quiet_s)
        span = Span.of(replace(NOTHING, at_s=began_s, rest_cpu_s=started.rest_cpu_s), started, since=NOTHING)
        self.phases.append(self.gauge.phase("start", self.count, span))

    def delete(self) -> None:
        """Leave everything as it is; it goes with the rig."""
