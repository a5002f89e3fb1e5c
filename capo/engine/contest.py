"""Slows down writing a status back that somebody else overwrites, such as a second manager without leader election.

Two managers may see different states, or remember different things; each would put its own status back at once, as fast
as the API server lets them. What is new is always written at once, and so is what was overwritten for the first time.
"""

from __future__ import annotations

import collections
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo.kube.kinds import Key

FIRST_S: Final = 2.0
CEILING_S: Final = 60.0
QUIET_S: Final = 600.0
"""After so long without being overwritten everything is forgotten."""
REMEMBERED: Final = 4
"""How many statuses that were written are told from a new one."""

Status = Mapping[str, Any]


@dataclass
class _Side:
    """What this process wrote of one object.

    Attributes:
        last: the status after its last write.
        reported: the statuses with which its passes ended.
        count: how often it wrote one of them back in a row.
        until_s: before then it does not do so again.
    """

    last: int
    reported: collections.deque[int] = field(default_factory=lambda: collections.deque(maxlen=REMEMBERED))
    count: int = 0
    until_s: float = 0.0


@dataclass
class Contest:
    """Who writes what into the statuses of a controller's objects; one pass per object at a time.

    Args:
        clock: monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _sides: dict[Key, _Side] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sides)

    def wrote(self, key: Key, status: Status) -> None:
        """Note the status after a write of this process."""
        last = _fingerprint(status)
        side = self._sides.setdefault(key, _Side(last))
        side.last = last

    def pause_s(self, key: Key, present: Status, wanted: Status) -> float:
        """Return for how long a status at the end of a pass must not be written; 0: write it now."""
        side = self._sides.get(key)
        if side is None:
            side = self._sides[key] = _Side(_fingerprint(present))
        report, now_s = _fingerprint(wanted), self.clock()
        # Records are never held back: what a pass does next relies on them.
        is_same_record = present.get("resources") == wanted.get("resources")
        is_written_back = is_same_record and report in side.reported and _fingerprint(present) != side.last
        if is_written_back and now_s < side.until_s:
            return side.until_s - now_s
        if is_written_back:
            side.count = side.count + 1 if now_s < side.until_s + QUIET_S else 1
            side.until_s = now_s + min(CEILING_S, FIRST_S * 2.0 ** min(side.count - 1, 10))
        elif report not in side.reported:
            side.reported.append(report)
        return 0.0

    def forget(self, key: Key) -> None:
        """Note that the object is gone."""
        self._sides.pop(key, None)


def _fingerprint(status: Status) -> int:
    """Return what tells two statuses apart, whenever they were written."""
    return hash(json.dumps(_timeless(status), sort_keys=True))


def _timeless(status: Status) -> dict[str, Any]:
    shown = [
        {name: value for name, value in condition.items() if name != "lastTransitionTime"}
        for condition in status.get("conditions") or ()
    ]
    return {**status, "conditions": shown}
