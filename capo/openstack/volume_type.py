"""Cinder volume types and availability zones of volumes: looked up, never created.

Source: Block Storage API v3, "Volume types" and "Availability zones".
"""

from __future__ import annotations

from capo.openstack.cloud import Cloud
from capo.openstack.kinds import CINDER
from capo.openstack.view import View, text


class _Type(View):
    id = text("id")
    name = text("name")


def is_listed(cloud: Cloud, name_or_id: str) -> bool:
    """Return whether the project has a volume type of a name or an id; the list is shared for a minute."""

    def ask() -> list[tuple[str, str]]:
        found = map(_Type, cloud.list_all("volume", "/types", "volume_types", microversion=CINDER))
        return [(each.id, each.name) for each in found]

    return cloud.lookups.find("volume types", ask, lambda each: name_or_id in each) is not None


def is_zone_listed(cloud: Cloud, zone: str) -> bool:
    """Return whether volumes can be in an availability zone of a name; the list is shared for a minute."""

    def ask() -> list[str]:
        found = cloud.list_all("volume", "/os-availability-zone", "availabilityZoneInfo")
        return [str(each["zoneName"]) for each in found]

    return cloud.lookups.find("volume zones", ask, lambda each: each == zone) is not None
