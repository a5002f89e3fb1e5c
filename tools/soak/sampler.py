"""The size and the work of a manager at one moment, read from outside of it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import requests

from capo.local.demo import counting
from tools.bench.measure import Gauge, Reading, buckets, quantile, resident_mib, total

TIMEOUT_S: Final = 30.0
_RECONCILES: Final = "controller_runtime_reconcile_time_seconds_bucket"


@dataclass(frozen=True)
class Sample:
    """One moment, and the work since the one before.

    Args:
        at_s: seconds since the churn began.
        manager_mib: resident memory of the manager.
        webhooks_mib: that of its child processes.
        files: open file descriptors, sockets included.
        entries: of each cache and table in memory.
        reconcile_p99_s: upper bound of the time that 99 % of the reconciles took; 0 without a reconcile.
        ready_s: median seconds from the creation of a machine until it was ready; None if none became ready.
        machines: OpenStackMachines that exist.
    """

    at_s: float
    manager_mib: float
    webhooks_mib: float
    threads: int
    files: int
    sockets: int
    entries: dict[str, int]
    queue: int
    reconciles: int
    failed_reconciles: int
    reconcile_p99_s: float
    cpu_s: float
    requests: int
    kubernetes_writes: int
    machines: int
    ready: int
    ready_s: float | None

    def document(self) -> dict[str, Any]:
        """Return the sample as JSON."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


class Sampler:
    """Reads a manager again and again."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._before, self._text = self._read()

    def sample(self, at_s: float, machines: tuple[int, int], ready_s: list[float]) -> Sample:
        """Return the present state, and the work since the last call."""
        (now, text), before, text_before = self._read(), self._before, self._text
        self._before, self._text = now, text
        pid = self._gauge.pid
        links = _links(pid)
        reconciles = buckets(text, _RECONCILES) - buckets(text_before, _RECONCILES)
        return Sample(
            at_s=at_s,
            manager_mib=resident_mib(pid),
            webhooks_mib=sum(resident_mib(child) for child in _children(pid)),
            threads=_threads(pid),
            files=len(links),
            sockets=sum(link.startswith("socket:") for link in links),
            entries=_entries(text),
            queue=total(text, "workqueue_depth"),
            reconciles=reconciles["+Inf"],
            failed_reconciles=_grown(text, text_before, "controller_runtime_reconcile_errors_total"),
            reconcile_p99_s=quantile(reconciles, 0.99),
            cpu_s=now.cpu_s - before.cpu_s,
            requests=now.requests.total(),
            kubernetes_writes=(now.kubernetes_writes - before.kubernetes_writes).total(),
            machines=machines[0],
            ready=machines[1],
            ready_s=sorted(ready_s)[len(ready_s) // 2] if ready_s else None,
        )

    def _read(self) -> tuple[Reading, str]:
        """Return all counters, and start those of the simulator again, so that its log does not grow.

        Raises:
            requests.Timeout: the manager or the simulator did not answer in time; no counter has changed.
        """
        reading, text = self._gauge.read(), counting.scrape(self._gauge.metrics_url)
        requests.post(f"{self._gauge.simulator_url}/_simulator/reset", timeout=TIMEOUT_S).raise_for_status()
        return reading, text


def _entries(text: str) -> dict[str, int]:
    return {labels["cache"]: int(value) for labels, value in counting.samples(text, "capo_cache_entries")}


def _grown(text: str, before: str, name: str) -> int:
    return total(text, name) - total(before, name)


def _links(pid: int) -> list[str]:
    """Return what the open file descriptors of a process point to."""
    found = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(path))
        except FileNotFoundError:
            continue  # closed in the meantime
    return found


def _threads(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text(encoding="utf-8").split()]
