"""Nova's availability zones -> status.failureDomains.

Source: behaviour reference, cluster.md 2.12, W17, and provider contract IC-7, IC-8. The zones are looked at again as they
change; that Nova cannot be asked takes nothing away from what is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from capo.contract import clusters
from capo.controllers.openstackcluster.scope import ClusterScope
from capo.engine.steps import Done, Outcome
from capo.openstack import availability_zone


def ensure_failure_domains(scope: ClusterScope) -> Outcome:
    """Have Nova's zones in the status."""
    spec, known = scope.cluster.spec, {domain.name for domain in scope.cluster.status.failure_domains}
    scope.found.failure_domains = clusters.failure_domains(
        usable(availability_zone.list_all(scope.cloud), known),
        omits_control_plane=bool(spec.control_plane_omit_availability_zone),
        control_plane_zones=spec.control_plane_availability_zones,
    )
    return Done()


def usable(zones: Iterable[Mapping[str, Any]], known: Collection[str]) -> list[str]:
    """Return the zones to offer: available ones, and known ones that are only down for the moment; pure."""
    return [
        zone["zoneName"]
        for zone in zones
        if (zone.get("zoneState") or {}).get("available") or zone["zoneName"] in known
    ]
