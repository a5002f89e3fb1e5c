"""Cost of a phase of the benchmark, read from outside of the manager: simulator, metrics, process accounting."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import requests

from capo.local.demo import counting

_ACTIVE: Final = "controller_runtime_active_workers"
_WAITED: Final = "workqueue_queue_duration_seconds_bucket"
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True)
class Work:
    """What the manager has done and has left to do, by its metrics.

    Args:
        objects: known objects of the kinds that it reconciles.
        reconciles: those that ended.
        left: keys that are queued, and reconciles that run.
    """

    objects: int = 0
    reconciles: int = 0
    left: int = 0

    @classmethod
    def shown(cls, text: str) -> Work:
        """Return what metrics in Prometheus' text format show; pure."""
        names = ("capo_objects", "controller_runtime_reconcile_total", "workqueue_depth", _ACTIVE)
        objects, reconciles, queued, active = (total(text, name) for name in names)
        return cls(objects, reconciles, queued + active)

    def is_done(self) -> bool:
        """Return whether nothing is queued or runs, and as many reconciles ended as there are objects."""
        return 0 < self.objects <= self.reconciles and not self.left


def total(text: str, name: str) -> int:
    """Return the sum of all samples of a metric in Prometheus' text format; pure."""
    return int(sum(value for _, value in counting.samples(text, name)))


def buckets(text: str, name: str) -> Counter[str]:
    """Return the cumulative counts of a histogram by upper bound, over all labels; pure."""
    found: Counter[str] = Counter()
    for labels, value in counting.samples(text, name):
        found[labels["le"]] += int(value)
    return found


def quantile(counts: Counter[str], share: float) -> float:
    """Return the upper bound of the bucket below which this share of the observations lies; 0 without any; pure.

    Args:
        counts: cumulative, by upper bound, as Prometheus has them.
    """
    wanted = share * counts["+Inf"]
    bounds = sorted((float(bound), count) for bound, count in counts.items())
    return next((bound for bound, count in bounds if count >= wanted), 0.0) if wanted else 0.0


@dataclass(frozen=True)
class Reading:
    """All counters at one moment.

    Args:
        requests: requests that reached the simulator, by service, method and route.
        kubernetes_writes: writes of the manager, by kind of object, without Events.
        cpu_s: CPU time of the manager and its webhook process.
        rest_cpu_s: CPU time of everything on this machine that does not belong to the benchmark.
        waits: how many reconciles began within so many seconds after they were due, by upper bound.
    """

    requests: Counter[str]
    kubernetes_writes: Counter[str]
    cpu_s: float
    rest_cpu_s: float
    at_s: float = field(default_factory=time.monotonic)
    work: Work = Work()
    waits: Counter[str] = field(default_factory=Counter)

    def differs(self, earlier: Reading) -> bool:
        """Return whether the manager did anything since an earlier reading."""
        parts = [(each.requests, each.kubernetes_writes, each.work) for each in (self, earlier)]
        return parts[0] != parts[1]


NOTHING: Final = Reading(Counter(), Counter(), 0.0, 0.0, 0.0)
"""Before the process began: the simulator's counters start at zero."""


@dataclass(frozen=True)
class Phase:
    """Cost of one phase.

    Args:
        name: ``start``, ``create``, ``idle``, ``upgrade`` or ``delete``.
        machines: number of machines.
        floor_s: lower bound by the cloud's latencies; None if they set none.
        resident_mib: memory of the manager's process alone when the phase ended.
        peak_mib: peak of it and its webhook process up to then.
        rest_cpus: average number of processors that other processes kept busy during the phase.
        rounds_s: the seconds of every round; this one was the quickest.
        reconciles: those that ended in the phase.
        left: keys that were queued or being reconciled when it ended.
        waited_p99_s: upper bound of the time after which 99 % of the reconciles that were due began.
        waited_s: that of all of them.
    """

    name: str
    machines: int
    seconds: float
    floor_s: float | None
    requests: dict[str, int]
    openstack_writes: int
    kubernetes_writes: dict[str, int]
    cpu_s: float
    resident_mib: float
    peak_mib: float
    rest_cpus: float
    rounds_s: tuple[float, ...] = ()
    reconciles: int = 0
    left: int = 0
    waited_p99_s: float = 0.0
    waited_s: float = 0.0

    @property
    def request_count(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    @property
    def kubernetes_write_count(self) -> int:
        """All writes to the API server except Events."""
        return sum(self.kubernetes_writes.values())

    def document(self) -> dict[str, Any]:
        """Return the phase as JSON."""
        rounded = {name: round(value, 3) for name, value in asdict(self).items() if isinstance(value, float)}
        return {**asdict(self), **rounded}


def quickest(rounds: Sequence[Sequence[tuple[str, Phase]]]) -> list[tuple[str, Phase]]:
    """Return the quickest round of each phase, since other load on the machine only adds to it; pure."""
    found: dict[tuple[str, int, str], list[Phase]] = {}
    for shape, phase in itertools.chain.from_iterable(rounds):
        found.setdefault((shape, phase.machines, phase.name), []).append(phase)
    best = {key: min(phases, key=lambda phase: phase.seconds) for key, phases in found.items()}
    return [
        (key[0], replace(phase, rounds_s=tuple(round(each.seconds, 3) for each in found[key])))
        for key, phase in sorted(best.items(), key=lambda entry: _rank(*entry[0]))
    ]


def _rank(shape: str, machines: int, name: str) -> tuple[str, int, int]:
    return shape, machines, ("start", "create", "idle", "upgrade", "delete").index(name)


@dataclass(frozen=True)
class Span:
    """The readings that delimit a phase.

    Args:
        before: when its time began.
        since: writes and CPU time count from here; None is the begin of the time.
        requests_since: OpenStack requests count from here; None is ``since``.
    """

    before: Reading
    after: Reading
    since: Reading
    requests_since: Reading

    @classmethod
    def between(
        cls, before: Reading, after: Reading, *, since: Reading | None = None, requests_since: Reading | None = None
    ) -> Span:
        """Return a span; readings that are not given default to the begin of its time."""
        since = since or before
        return cls(before, after, since, requests_since or since)

    @classmethod
    def from_start(cls, began_s: float, after: Reading) -> Span:
        """Return the span of a manager from the start of its process, at monotonic seconds; it counts everything."""
        return cls.between(replace(NOTHING, at_s=began_s, rest_cpu_s=after.rest_cpu_s), after, since=NOTHING)


@dataclass
class Gauge:
    """Reads the counters of one manager and one simulator.

    Args:
        pid: process id of the manager.
        metrics_url: URL of the manager's metrics.
        simulator_url: root of the simulator.
        family: process ids of everything else that belongs to the benchmark.
    """

    pid: int
    metrics_url: str
    simulator_url: str
    family: Iterable[int]

    def read(self, *, at_s: float | None = None) -> Reading:
        """Return the values of all counters.

        Args:
            at_s: monotonic seconds at which the measured phase ended; None is now.
        """
        cpu_s = counting.cpu_s(self.pid)
        rest_s = _busy_s() - cpu_s - sum(counting.cpu_s(pid) for pid in self.family)
        moment_s = time.monotonic() if at_s is None else at_s
        metrics = counting.scrape(self.metrics_url)
        writes = _kubernetes_writes(metrics)
        waits = buckets(metrics, _WAITED)
        return Reading(self._requests(), writes, cpu_s, rest_s, moment_s, Work.shown(metrics), waits)

    def phase(self, name: str, machines: int, span: Span, floor_s: float | None = None) -> Phase:
        """Return the cost of a span."""
        before, after = span.before, span.after
        asked = after.requests - span.requests_since.requests
        waits = after.waits - span.since.waits
        seconds = after.at_s - before.at_s
        return Phase(
            name=name,
            machines=machines,
            seconds=seconds,
            floor_s=floor_s,
            requests=dict(asked.most_common()),
            openstack_writes=sum(count for request, count in asked.items() if _is_write(request)),
            kubernetes_writes=dict(sorted((after.kubernetes_writes - span.since.kubernetes_writes).items())),
            cpu_s=after.cpu_s - span.since.cpu_s,
            resident_mib=resident_mib(self.pid),
            peak_mib=counting.peak_mib(self.pid),
            rest_cpus=max(0.0, after.rest_cpu_s - before.rest_cpu_s) / max(seconds, 0.001),
            reconciles=after.work.reconciles - span.since.work.reconciles,
            left=after.work.left,
            waited_p99_s=quantile(waits, 0.99),
            waited_s=quantile(waits, 1.0),
        )

    def _requests(self) -> Counter[str]:
        answer = requests.get(f"{self.simulator_url}/_simulator/counts", timeout=_TIMEOUT_S)
        found: Counter[str] = Counter()
        for row in answer.json()["counts"]:
            found[f"{row['service']} {row['method']} {row['route']}"] += row["count"]
        return found


def _is_write(request: str) -> bool:
    service, method, _ = request.split(" ", 2)
    return counting.is_write(service, method)


def _kubernetes_writes(text: str) -> Counter[str]:
    """Return the successful writes; those of a manager in Go, by method, have Events among them."""
    found = counting.kubernetes_writes(text)
    for labels, value in counting.samples(text, "rest_client_requests_total"):
        if labels["method"] in counting.WRITES and labels["code"].startswith("2"):
            found[labels["method"]] += int(value)
    return found


def resident_mib(pid: int) -> float:
    """Return the memory of a process in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _busy_s() -> float:
    """Return the time that all processors of this machine were busy."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK")
