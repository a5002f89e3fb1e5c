"""Nova's availability zones.

Source: Compute API, "Availability zones".
"""

from __future__ import annotations

from capo.json_types import Body
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import NOVA


def list_all(cloud: Cloud) -> list[Body]:
    """Return all zones as returned by Nova (``zoneName``, ``zoneState.available``), sorted by name."""
    found: list[Body] = cloud.lookups.get("availability zones", lambda: _asked(cloud))
    return found


def is_listed(cloud: Cloud, zone: str) -> bool:
    """Return whether Nova has a zone of a name, available or not."""
    found = cloud.lookups.find("availability zones", lambda: _asked(cloud), lambda each: each["zoneName"] == zone)
    return found is not None


def _asked(cloud: Cloud) -> list[Body]:
    zones = cloud.list_all("compute", "/os-availability-zone", "availabilityZoneInfo", microversion=NOVA)
    return sorted(zones, key=lambda zone: str(zone["zoneName"]))
