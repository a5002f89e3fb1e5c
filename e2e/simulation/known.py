"""Invariants that today's code is known to break: one file each in ``known/``, a plan that shows it.

What these plans need is left out of the seeds of the gate, so that these find what is not known. A file is removed when
its plan breaks nothing any more; none is added but for what is found and not mended at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from e2e.simulation.plan import Plan

FOLDER: Final = Path(__file__).parent / "known"
TRIES: Final = 12
"""A plan is played under so many schedules: one that does not show a break may be chance, all of them are not."""


@dataclass(frozen=True)
class Known:
    """One known break.

    Args:
        what: what happens.
        invariants: those that it may break.
        guards: the features without which it does not happen.
        seed: the seed that found it.
    """

    name: str
    what: str
    invariants: tuple[str, ...]
    guards: tuple[str, ...]
    seed: str
    plan: Plan

    def schedules(self, number: int = TRIES) -> list[Plan]:
        """Return the plan under several schedules, that in which it was found first."""
        return [self.plan, *(replace(self.plan, seed=f"{self.name} {n}") for n in range(1, number))]


def read(path: Path) -> Known:
    """Return the known break of a file."""
    data: Mapping[str, Any] = json.loads(path.read_text())
    return Known(
        path.stem,
        data["what"],
        tuple(data["invariants"]),
        tuple(data["guards"]),
        str(data["seed"]),
        Plan.from_json(data["plan"]),
    )


def all_known() -> list[Known]:
    """Return all known breaks, by name."""
    return [read(path) for path in sorted(FOLDER.glob("*.json"))]


def guarded() -> set[str]:
    """Return the features that the gate's seeds do without."""
    return {feature for known in all_known() for feature in known.guards}
