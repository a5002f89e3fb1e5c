"""Which of Nova's availability zones are offered; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def usable(zones: Iterable[Mapping[str, Any]], known: Collection[str]) -> list[str]:
    """Return the zones to offer: available ones, and known ones that are only down for the moment; pure."""
    return [
        zone["zoneName"]
        for zone in zones
        if (zone.get("zoneState") or {}).get("available") or zone["zoneName"] in known
    ]
