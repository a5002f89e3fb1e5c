"""Nova's availability zones as status.failureDomains.

Source: docs/explanation/go-provider.md, G-14, W-67, and docs/reference/contract.md, C-7 and C-8. The domains follow the
cloud and the spec; known ones are kept while Nova cannot be asked.
"""

from __future__ import annotations

from typing import Final

from capo.contract import clusters
from capo.engine.steps import Done, Outcome
from capo.openstack import availability_zone
from controllers.openstackcluster import zones
from controllers.openstackcluster.scope import ClusterScope

CONDITION: Final = "FailureDomainsReady"
KEPT_S: Final = 3600.0
"""The zones are listed once an hour."""


def ensure_failure_domains(scope: ClusterScope) -> Outcome:
    """Write Nova's zones to the status; list them once an hour, and when the spec changes."""
    spec, known = scope.cluster.spec, {domain.name for domain in scope.cluster.status.failure_domains}
    if scope.is_settled(CONDITION) and scope.is_unchanged(scope.zones, None, max_age_s=KEPT_S):
        return Done(zones.note(spec.control_plane_availability_zones, known))
    scope.found.failure_domains = clusters.failure_domains(
        zones.usable(availability_zone.list_all(scope.cloud), known),
        omits_control_plane=bool(spec.control_plane_omit_availability_zone),
        control_plane_zones=spec.control_plane_availability_zones,
    )
    scope.zones.note(scope.uid, None, now_s=scope.context.started_s)
    offered = [domain["name"] for domain in scope.found.failure_domains]
    return Done(zones.note(spec.control_plane_availability_zones, offered))
