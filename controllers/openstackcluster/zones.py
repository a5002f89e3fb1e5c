"""Which of Nova's availability zones are offered, and when they were last looked at; no cloud, no Kubernetes."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

KEPT_S: Final = 3600.0


class ZoneMemory:
    """When the zones were last worked out for each object; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked_s: dict[str, float] = {}

    def is_fresh(self, uid: str, now_s: float) -> bool:
        """Tell whether they were worked out lately by this process."""
        with self._lock:
            return now_s - self._asked_s.get(uid, float("-inf")) < KEPT_S

    def note(self, uid: str, now_s: float) -> None:
        """Note that they were worked out now, and forget objects that are long gone."""
        with self._lock:
            self._asked_s = {known: at_s for known, at_s in self._asked_s.items() if now_s - at_s < 2 * KEPT_S}
            self._asked_s[uid] = now_s


def usable(zones: Iterable[Mapping[str, Any]], known: Collection[str]) -> list[str]:
    """Return the zones to offer: available ones, and known ones that are only down for the moment; pure."""
    return [
        zone["zoneName"]
        for zone in zones
        if (zone.get("zoneState") or {}).get("available") or zone["zoneName"] in known
    ]
