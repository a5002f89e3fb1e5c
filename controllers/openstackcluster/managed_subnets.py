"""The managed subnets that a cluster wants: the first, and one of the other IP version; pure.

Source: docs/how-to/dual-stack.md. The first subnet determines the IP version of the second, so that a subnet pool need
not be read.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from api.v1beta2.openstackcluster import AdditionalSubnetSpec, OpenStackClusterSpec
from capo import names
from capo.errors import InvalidSpecError
from capo.names import Stamp
from capo.openstack.subnet import WantedSubnet
from controllers.roles import ADDITIONAL_SUBNET, SUBNET

_PATH: Final = "spec.additionalManagedSubnet"
_SLAAC: Final = "slaac"
_AUTOMATIC: Final = (_SLAAC, "dhcpv6-stateless")
_AUTOMATIC_PREFIX: Final = 64
"""Prefix length of a subnet whose addresses are made of MAC addresses; Neutron does not check it for a subnet pool."""


@dataclass(frozen=True)
class Place:
    """What the subnets of a cluster have in common.

    Args:
        owner: the owner id in stamps.
        resource_name: ``<namespace>-<Cluster name>``.
        description: as the Go provider writes it.
    """

    owner: str
    resource_name: str
    network_id: str
    description: str


def first(spec: OpenStackClusterSpec, place: Place) -> WantedSubnet:
    """Return the first subnet."""
    (wanted,) = spec.managed_subnets
    return WantedSubnet(
        stamp=Stamp(place.owner, SUBNET),
        name=names.network(place.resource_name),
        network_id=place.network_id,
        cidr=wanted.cidr,
        description=place.description,
        dns_nameservers=wanted.dns_nameservers,
        allocation_pools=tuple((pool.start, pool.end) for pool in wanted.allocation_pools),
        ipv6_address_mode=wanted.ipv6_address_mode,
        ipv6_ra_mode=wanted.ipv6_ra_mode,
    )


def additional(spec: OpenStackClusterSpec, place: Place) -> WantedSubnet | None:
    """Return the second subnet; None without one.

    Raises:
        InvalidSpecError: it is not of the other IP version, or its modes do not fit to it.
    """
    wanted = spec.additional_managed_subnet
    if wanted is None:
        return None
    version = 10 - _version(spec.managed_subnets[0].cidr, "spec.managedSubnets[0].cidr")
    if wanted.cidr and _version(wanted.cidr, f"{_PATH}.cidr") != version:
        raise InvalidSpecError(f"{_PATH}.cidr is not of IPv{version}, as the first subnet is of IPv{10 - version}")
    address_mode, ra_mode = _modes(wanted, version)
    is_automatic = address_mode in _AUTOMATIC
    if is_automatic and wanted.prefix_length not in (None, _AUTOMATIC_PREFIX):
        raise InvalidSpecError(f"{_PATH}.prefixLength is {_AUTOMATIC_PREFIX} where ipv6AddressMode is {address_mode}")
    return WantedSubnet(
        stamp=Stamp(place.owner, ADDITIONAL_SUBNET),
        name=names.additional_subnet(place.resource_name),
        network_id=place.network_id,
        cidr=wanted.cidr or "",
        description=place.description,
        dns_nameservers=wanted.dns_nameservers,
        allocation_pools=tuple((pool.start, pool.end) for pool in wanted.allocation_pools),
        ip_version=version,
        pool_id=wanted.subnet_pool_id,
        prefix_length=_AUTOMATIC_PREFIX if is_automatic and wanted.subnet_pool_id else wanted.prefix_length,
        ipv6_address_mode=address_mode,
        ipv6_ra_mode=ra_mode,
    )


def has_advertisements(spec: OpenStackClusterSpec) -> bool:
    """Return whether a subnet relies on a router that advertises its prefix."""
    wanted = (each for each in (*spec.managed_subnets, spec.additional_managed_subnet) if each is not None)
    return any(each.ipv6_ra_mode for each in wanted) or _is_slaac_by_default(spec)


def _is_slaac_by_default(spec: OpenStackClusterSpec) -> bool:
    second = spec.additional_managed_subnet
    if second is None or (second.ipv6_address_mode, second.ipv6_ra_mode) != (None, None):
        return False
    return _version(spec.managed_subnets[0].cidr, "spec.managedSubnets[0].cidr") == 4


def _modes(wanted: AdditionalSubnetSpec, version: int) -> tuple[str | None, str | None]:
    """Return address and RA mode: without advertisements of the router nodes would get no address of IPv6."""
    given = wanted.ipv6_address_mode, wanted.ipv6_ra_mode
    if version == 4 and given != (None, None):
        raise InvalidSpecError(f"{_PATH}: ipv6AddressMode and ipv6RAMode are for IPv6, and this subnet is of IPv4")
    return (_SLAAC, _SLAAC) if version == 6 and given == (None, None) else given


def _version(cidr: str, path: str) -> int:
    try:
        return ipaddress.ip_network(cidr, strict=False).version
    except ValueError as error:
        raise InvalidSpecError(f"{path}: {error}") from error
