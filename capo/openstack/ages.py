"""Ages of resources by the clock of the service that dated them; the local clock may be hours ahead or behind."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final

from capo.caches import Bounded
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
        self._told: dict[str, tuple[float, float]] = {}
        self._first_s: Bounded[tuple[str, str, str], float] = Bounded.by_age(FORGOTTEN_S, now)
        """When the age of a resource was read first; each reading renews the entry."""

    def note(self, service: str, date: str) -> None:
        """Record the ``Date`` header of a service's answer; ignore an invalid one."""
        if (told_s := faults.date_s(date)) is not None:
            self._told[service] = (told_s, self._now())

    def age_s(self, service: str, resource_id: str, timestamp: str) -> float:
        """Return the minimum age in seconds of a resource, by the service's own clock.

        If the service reports no time, the age is counted from the first call: its clock is never compared with ours.

        Args:
            timestamp: RFC 3339 as returned by the service, such as ``created``.
        """
        born_s = datetime.datetime.fromisoformat(timestamp).timestamp()
        now_s = self._now()
        if (known := self._told.get(service)) is not None:
            told_s, at_s = known
            return told_s + (now_s - at_s) - born_s
        key = (service, resource_id, timestamp)
        first_s = self._first_s.get(key)
        self._first_s.put(key, now_s if first_s is None else first_s)
        return 0.0 if first_s is None else now_s - first_s
