"""The crash runs of the gate: ``gate.txt``, a point a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from e2e import sampling
from e2e.crash.fault_matrix import CLOUD_WAYS, KUBE_WAYS, Point, Undisturbed
from e2e.crash.staleness import STALE_WAYS

FOLDER: Final = Path(__file__).parent
AT_CLOUD: Final = 1
"""Number of runs for each write to OpenStack, each in another way; a scenario has each way all the same."""
AT_KUBERNETES: Final = 1
"""Number of runs for each scenario and each way in which a write to Kubernetes fails."""
SURE: Final = 0.7
"""The share of a scenario's writes to Kubernetes that it always has: their number depends on the order of events."""


def listed(undisturbed: Mapping[str, Undisturbed]) -> list[Point] | None:
    """Return the points to run, None for all of them; bring the list up to date first where that is wanted."""
    return sampling.listed(FOLDER, Point.of, lambda points: updated(points, undisturbed))


def updated(points: Iterable[Point], undisturbed: Mapping[str, Undisturbed]) -> list[Point]:
    """Return those of the points that still exist, and what the list needs besides.

    It has each scenario and way, and each write to OpenStack fails at least once.
    """
    kept = {point for point in points if point.scenario in undisturbed and _exists(point, undisturbed[point.scenario])}
    for name, known in undisturbed.items():
        drawn = [*_at_cloud(name, len(known.writes)), *_at_kubernetes(name, int(known.kubernetes_writes * SURE))]
        hit = {point.write for point in kept if point.scenario == name and point.way in CLOUD_WAYS}
        ways = {point.way for point in kept if point.scenario == name}
        kept |= {p for p in drawn if p.way not in ways or (p.way in CLOUD_WAYS and p.write not in hit)}
        kept |= {Point(name, way, 0) for way in STALE_WAYS}
    return sorted(kept)


def _exists(point: Point, known: Undisturbed) -> bool:
    return point in known.points(point.scenario, point.way)


def _at_cloud(name: str, writes: int) -> list[Point]:
    """Return a point for each write, the ways in turn; more where there are fewer writes than ways."""
    ways: Sequence[str] = list(CLOUD_WAYS)
    times = max(AT_CLOUD, math.ceil(len(ways) / writes)) if writes else 0
    return [
        Point(name, ways[(write + 2 * time) % len(ways)], write)
        for time in range(times)
        for write in range(1, writes + 1)
    ]


def _at_kubernetes(name: str, writes: int) -> list[Point]:
    """Return points at even distances, the ways in turn."""
    ways: Sequence[str] = list(KUBE_WAYS)
    number = AT_KUBERNETES * len(ways)
    return [Point(name, ways[turn % len(ways)], turn * writes // number + 1) for turn in range(number)]
