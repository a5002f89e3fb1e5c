"""Ages of resources by the clock of the service that dated them; the local clock may be hours ahead or behind."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from typing import Final

from capo.openstack import faults

FORGOTTEN_S: Final = 86400.0
"""Entries that were not read for this long are evicted."""


class Ages:
    """Latest time reported by each service of a cloud; thread safe.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, float]] = {}
        self._first: dict[tuple[str, str, str], tuple[float, float]] = {}
        """When it was read first and last."""

    def note(self, service: str, date: str) -> None:
        """Record the ``Date`` header of a service's answer; ignore an invalid one."""
        if (told_s := faults.date_s(date)) is not None:
            with self._lock:
                self._told[service] = (told_s, self._now())

    def age_s(self, service: str, resource_id: str, timestamp: str) -> float:
        """Return the minimum age in seconds of a resource, by the service's own clock.

        If the service reports no time, the age is counted from the first call: its clock is never compared with ours.

        Args:
            timestamp: RFC 3339 as returned by the service, such as ``created``.
        """
        born_s = datetime.datetime.fromisoformat(timestamp).timestamp()
        with self._lock:
            now_s = self._now()
            if (known := self._told.get(service)) is not None:
                told_s, at_s = known
                return told_s + (now_s - at_s) - born_s
            self._first = {key: asked for key, asked in self._first.items() if now_s - asked[1] < FORGOTTEN_S}
            first_s, _ = self._first.get((service, resource_id, timestamp), (now_s, now_s))
            self._first[service, resource_id, timestamp] = (first_s, now_s)
            return now_s - first_s
