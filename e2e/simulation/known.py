"""Known defects of today's code: one file each in ``known/``, a plan that breaks an invariant.

The seeds of the gate omit the features of these plans, so that they find unknown defects. A file is removed when its
plan breaks nothing any more; a file is added only for a new defect that is not fixed at once.
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
"""Number of schedules of a plan: a single one that does not break an invariant may be chance, all of them are not."""


@dataclass(frozen=True)
class Known:
    """One known defect.

    Args:
        what: what happens.
        invariants: the invariants that it may break.
        guards: the features that it needs.
        seed: the seed that found it.
    """

    name: str
    what: str
    invariants: tuple[str, ...]
    guards: tuple[str, ...]
    seed: str
    plan: Plan

    def schedules(self, number: int = TRIES) -> list[Plan]:
        """Return the plan under several schedules, first the one that found the defect."""
        return [self.plan, *(replace(self.plan, seed=f"{self.name} {n}") for n in range(1, number))]


def read(path: Path) -> Known:
    """Return the known defect of a file."""
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
    """Return all known defects, by name."""
    return [read(path) for path in sorted(FOLDER.glob("*.json"))]


def guarded() -> set[str]:
    """Return the features that the gate's seeds omit."""
    return {feature for known in all_known() for feature in known.guards}
