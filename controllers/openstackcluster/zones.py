"""Which of Nova's availability zones are offered, and which the spec names but Nova lacks; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def usable(zones: Iterable[Mapping[str, Any]], known: Collection[str]) -> list[str]:
    """Return the zones to offer: available ones, and known ones that are temporarily down."""
    return [
        zone["zoneName"]
        for zone in zones
        if (zone.get("zoneState") or {}).get("available") or zone["zoneName"] in known
    ]


def note(wanted: Iterable[str], offered: Collection[str]) -> str:
    """Return a message about control plane zones that Nova does not offer; empty when it offers all."""
    missing = sorted(set(wanted) - set(offered))
    return f"controlPlaneAvailabilityZones: no availability zone {', '.join(missing)} in Nova" if missing else ""
