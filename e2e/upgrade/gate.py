"""The upgrade runs of the gate: ``gate.txt``, a point a line."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from e2e import sampling
from e2e.upgrade.matrix import AT_CLOUD, KILLED_AT_KUBERNETES, ROUTES, Point, References, exists
from e2e.upgrade.situations import SITUATIONS

FOLDER: Final = Path(__file__).parent
WAYS: Final = (*AT_CLOUD, *KILLED_AT_KUBERNETES)
PARTS: Final = 4
"""A run ends its first manager after one, two or three of four equal parts of the writes."""


def listed(undisturbed: References) -> list[Point] | None:
    """Return the points to run, None for all of them; bring the list up to date first where that is wanted."""
    return sampling.listed(FOLDER, Point.of, lambda points: updated(points, undisturbed))


def updated(points: Iterable[Point], undisturbed: References) -> list[Point]:
    """Return those of the points that still exist, and what the list needs besides.

    Each route has each situation and each way in which a manager ends.
    """
    kept = {point for point in points if exists(point, undisturbed)}
    for number, route in enumerate(ROUTES):
        situations = [SITUATIONS[(number + turn) % len(SITUATIONS)].name for turn in range(len(SITUATIONS))]
        for turn, situation in enumerate(situations):
            if not any((point.route, point.situation) == (route, situation) for point in kept):
                ways = (WAYS[turn % len(WAYS)], *KILLED_AT_KUBERNETES)
                kept.add(_first(route, [situation], ways, turn, undisturbed))
        for turn, way in enumerate(WAYS):
            if not any((point.route, point.way) == (route, way) for point in kept):
                kept.add(_first(route, situations, [way], turn, undisturbed))
    return sorted(kept)


def _first(route: str, situations: Sequence[str], ways: Sequence[str], turn: int, undisturbed: References) -> Point:
    """Return a point of the first situation and way that has a write: a takeover writes to Kubernetes alone."""
    for situation, way in itertools.product(situations, ways):
        known = undisturbed[situation, ROUTES[route][0].version]
        writes = known.kubernetes_writes if way in KILLED_AT_KUBERNETES else known.writes
        if writes:
            return Point(route, situation, way, max(1, writes * (1 + turn % (PARTS - 1)) // PARTS))
    raise ValueError(f"no write of {situations} that {ways} concern")
