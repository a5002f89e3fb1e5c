"""How existing networks, subnets and routers are named: by id or by a filter."""

from __future__ import annotations

from typing import ClassVar

from capo.api.model import Model
from capo.api.schema import ANY_OF, ONE_OF, Int32, Schema, SetList, Tag, Uuid


class NeutronFilter(Model):
    """What all Neutron resources can be looked up by; every field that is set must match."""

    crd: ClassVar[Schema] = ANY_OF

    name: str = ""
    """Exact name."""
    description: str = ""
    """Exact description."""
    project_id: str = ""
    """Id of the owning project."""
    tags: SetList[Tag] = ()
    """Matches what carries all of these tags."""
    tags_any: SetList[Tag] = ()
    """Matches what carries at least one of these tags."""
    not_tags: SetList[Tag] = ()
    """Leaves out what carries all of these tags."""
    not_tags_any: SetList[Tag] = ()
    """Leaves out what carries any of these tags."""


class NetworkFilter(NeutronFilter):
    """A query for networks; every field that is set must match."""


class NetworkParam(Model):
    """A network, by id or by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the network."""
    filter: NetworkFilter | None = None
    """Query that exactly one network must match."""


class SubnetFilter(NeutronFilter):
    """A query for subnets; every field that is set must match."""

    ip_version: Int32 = 0
    """4 or 6. Default: both."""
    gateway_ip: str = ""
    """IP address of the gateway."""
    cidr: str = ""
    """Address range in CIDR notation."""
    ipv6_address_mode: str = ""
    """How IPv6 addresses are given: slaac, dhcpv6-stateful or dhcpv6-stateless."""
    ipv6_ra_mode: str = ""
    """Who sends router advertisements: slaac, dhcpv6-stateful or dhcpv6-stateless."""


class SubnetParam(Model):
    """A subnet, by id or by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the subnet."""
    filter: SubnetFilter | None = None
    """Query that exactly one subnet must match."""


class RouterFilter(NeutronFilter):
    """A query for routers; every field that is set must match."""


class RouterParam(Model):
    """A router, by id or by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the router."""
    filter: RouterFilter | None = None
    """Query that exactly one router must match."""


class SecurityGroupFilter(NeutronFilter):
    """A query for security groups; every field that is set must match."""

    project_id: str = ""
    """Id of the owning project. Default: the project of the credentials."""


class SecurityGroupParam(Model):
    """Security groups, one by id or any number by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the security group."""
    filter: SecurityGroupFilter | None = None
    """Query that at least one security group must match; every match is used."""
