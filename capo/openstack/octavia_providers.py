"""What Octavia's providers can do, as far as this provider asks for it: known before a create, not learnt from a 501.

A provider that is not in the table is assumed to do everything; what it refuses is learnt from its answers.

Source: Octavia, "Provider Driver Feature Support Matrix"; openstack/ovn-octavia-provider, ``driver.py`` and
``helper.py``; sapcc/octavia-f5-provider-driver and a10networks/a10-octavia, whose drivers configure ``vip_address``
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROUND_ROBIN: Final = "ROUND_ROBIN"
SOURCE_IP_PORT: Final = "SOURCE_IP_PORT"
"""The algorithm that every provider supports; OVN supports no other in all its releases."""
OVN: Final = "ovn"


@dataclass(frozen=True)
class Provider:
    """What a provider can do.

    Args:
        algorithm: how its pools distribute connections.
        has_allowed_cidrs: it can restrict who may connect to a listener.
        has_zones: a load balancer may name an availability zone.
        has_flavors: a load balancer may name a flavor.
        has_failover: an admin can have a failed load balancer repaired in place.
        has_additional_vips: a load balancer may have more than one virtual IP. OVN has them since 2023.2 and ignores
            them before; Octavia shows no release of a provider, only the load balancer without the address.
        mixes_ip_versions: a virtual IP leads to members of the other IP version, too.
    """

    algorithm: str = ROUND_ROBIN
    has_allowed_cidrs: bool = True
    has_zones: bool = True
    has_flavors: bool = True
    has_failover: bool = True
    has_additional_vips: bool = True
    mixes_ip_versions: bool = True


_ONE_VIP: Final = Provider(has_additional_vips=False)
_TABLE: Final = {
    OVN: Provider(
        algorithm=SOURCE_IP_PORT,
        has_allowed_cidrs=False,
        has_zones=False,
        has_flavors=False,
        has_failover=False,
        mixes_ip_versions=False,
    ),
    "f5": _ONE_VIP,
    "F5Networks": _ONE_VIP,
    "a10": _ONE_VIP,
}
_FULL: Final = Provider()


def known() -> frozenset[str]:
    """Return the providers in the table."""
    return frozenset(_TABLE)


def of(name: str | None) -> Provider:
    """Return what a provider can do.

    Args:
        name: as Octavia spells it; None for the cloud's default, which Octavia does not name.
    """
    return _TABLE.get(name or "", _FULL)
