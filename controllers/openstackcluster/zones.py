"""Which of Nova's availability zones are offered, which the spec names but Nova lacks, and their attributes; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from api.v1beta2 import OpenStackClusterSpec
from api.v1beta2.openstackclusterstatus import Subnet

NETWORK: Final = "networkID"
SUBNETS: Final = "subnetIDs"
CIDRS: Final = "cidrs"


def usable(zones: Iterable[Mapping[str, Any]], known: Collection[str]) -> list[str]:
    """Return the zones to offer: available ones, and known ones that are temporarily down."""
    return [
        zone["zoneName"]
        for zone in zones
        if (zone.get("zoneState") or {}).get("available") or zone["zoneName"] in known
    ]


def note(spec: OpenStackClusterSpec, offered: Collection[str]) -> str:
    """Return a message about zones of the spec that Nova does not offer; empty when it offers all."""
    wanted = {
        "controlPlaneAvailabilityZones": spec.control_plane_availability_zones,
        "failureDomains": [domain.name for domain in spec.failure_domains],
    }
    missing = {field: sorted(set(names) - set(offered)) for field, names in wanted.items()}
    return "; ".join(
        f"{field}: no availability zone {', '.join(names)} in Nova" for field, names in missing.items() if names
    )


def attributes(network_id: str, subnets: Sequence[Subnet], former: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a failure domain.

    Args:
        subnets: that the spec names now.
        former: its attributes until now: machines that have ports in former subnets still need their CIDRs.
    """
    cidrs = dict.fromkeys([*(each.cidr for each in subnets), *values(former, CIDRS)])
    return {NETWORK: network_id, SUBNETS: ",".join(each.id for each in subnets), CIDRS: ",".join(cidrs)}


def values(attributes_: Mapping[str, str], name: str) -> list[str]:
    """Return the values of an attribute."""
    return [value for value in attributes_.get(name, "").split(",") if value]
