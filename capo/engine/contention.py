"""Slows down status writes that another writer keeps overwriting, such as a second manager without leader election.

Two managers may see different states, or have different caches; each would restore its own status at once, as fast as
the API server allows. A new status is always written at once, and so is one that was overwritten for the first time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from capo.json_types import Object
from capo.kube.kinds import Key

FIRST_S: Final = 2.0
CEILING_S: Final = 60.0
QUIET_S: Final = 600.0
"""Seconds without an overwrite after which the count starts over."""
REMEMBERED: Final = 4
"""How many earlier statuses are recognised as already written."""


@dataclass(slots=True)
class _Side:
    """What this process wrote to one object.

    Attributes:
        last: the status after its last write.
        reported: the last statuses with which its reconciles ended.
        count: consecutive restores of one of them.
        until_s: the earliest time of the next restore.
    """

    last: int
    reported: tuple[int, ...] = ()  # a deque takes ten times as much, for each object
    count: int = 0
    until_s: float = 0.0


@dataclass
class Contention:
    """Detects competing writers of the statuses of a controller's objects; one reconcile per object at a time.

    Args:
        clock: monotonic seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _sides: dict[Key, _Side] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._sides)

    def mark_written(self, key: Key, status: Object) -> None:
        """Record the status after a write of this process."""
        last = _fingerprint(status)
        side = self._sides.setdefault(key, _Side(last))
        side.last = last

    def pause_s(self, key: Key, present: Object, wanted: Object) -> float:
        """Return the seconds for which a reconcile's final status must not be written; 0: write it now."""
        side = self._sides.get(key)
        if side is None:
            side = self._sides[key] = _Side(_fingerprint(present))
        report, now_s = _fingerprint(wanted), self.clock()
        # Records are never delayed: the next reconcile relies on them.
        is_same_record = present.get("resources") == wanted.get("resources")
        is_written_back = is_same_record and report in side.reported and _fingerprint(present) != side.last
        if is_written_back and now_s < side.until_s:
            return side.until_s - now_s
        if is_written_back:
            side.count = side.count + 1 if now_s < side.until_s + QUIET_S else 1
            side.until_s = now_s + min(CEILING_S, FIRST_S * 2.0 ** min(side.count - 1, 10))
        elif report not in side.reported:
            side.reported = (*side.reported, report)[-REMEMBERED:]
        return 0.0

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a deleted object."""
        self._sides.pop(key, None)


def _fingerprint(status: Object) -> int:
    """Return a hash of a status without its transition times."""
    timeless = [
        {name: value for name, value in condition.items() if name != "lastTransitionTime"}
        for condition in status.get("conditions") or ()
    ]
    return hash(json.dumps({**status, "conditions": timeless}, sort_keys=True))
