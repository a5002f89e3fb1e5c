"""Which of Nova's availability zones are offered, and which are asked for in vain; pure."""

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


def note(wanted: Iterable[str], offered: Collection[str]) -> str:
    """Return a message about the zones for control plane machines that are not offered; empty when all are; pure."""
    missing = sorted(set(wanted) - set(offered))
    return f"controlPlaneAvailabilityZones: no availability zone {', '.join(missing)} in Nova" if missing else ""
