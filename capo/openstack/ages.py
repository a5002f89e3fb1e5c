"""How old things in the cloud are, by the clock of the service that dated them; ours may be hours ahead or behind."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from typing import Final

from capo.openstack import faults

FORGOTTEN_S: Final = 86400.0
"""What nobody asked about for so long does not matter any more."""


class Ages:
    """The time that each service of a cloud last told; thread safe.

    Args:
        now: steady seconds: nobody sets them.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, float]] = {}
        self._first: dict[tuple[str, str, str], tuple[float, float]] = {}
        """When it was asked for first and last."""

    def note(self, service: str, date: str) -> None:
        """Take the ``Date`` of an answer of a service; one that is none changes nothing."""
        if (told_s := faults.date_s(date)) is not None:
            with self._lock:
                self._told[service] = (told_s, self._now())

    def age_s(self, service: str, resource_id: str, timestamp: str) -> float:
        """Return how long ago a service dated a resource so, at least.

        A service that does not tell its time is not compared with ours: then the age counts from the first call.

        Args:
            timestamp: RFC 3339 as the service shows it, such as ``created``.
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
