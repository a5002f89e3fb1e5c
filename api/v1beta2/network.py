"""References to existing networks, subnets and routers: by id or by a filter."""

from __future__ import annotations

from typing import ClassVar

from api.model import Model
from api.schema import ANY_OF, ONE_OF, CloudText, FoundTag, Int32, Schema, SetList, Tag, Uuid


class NeutronFilter(Model):
    """Query fields of all Neutron resources; every field that is set must match."""

    crd: ClassVar[Schema] = ANY_OF

    name: CloudText = ""
    """Exact name. Default: any."""
    description: CloudText = ""
    """Exact description. Default: any."""
    project_id: CloudText = ""
    """Id of the owning project. Default: any that the credentials can see."""
    tags: SetList[FoundTag] = ()
    """Matches resources with all of these tags. Default: any tags."""
    tags_any: SetList[FoundTag] = ()
    """Matches resources with at least one of these tags. Default: any tags."""
    not_tags: SetList[Tag] = ()
    """Leaves out resources with all of these tags. Default: none are left out."""
    not_tags_any: SetList[Tag] = ()
    """Leaves out resources with any of these tags. Default: none are left out."""


class NetworkFilter(NeutronFilter):
    """A query for networks; every field that is set must match."""


class NetworkParam(Model):
    """A network, by id or by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the network; either this or `filter` is set."""
    filter: NetworkFilter | None = None
    """Query that exactly one network must match; either this or `id` is set."""


class SubnetFilter(NeutronFilter):
    """A query for subnets; every field that is set must match."""

    ip_version: Int32 = 0
    """IP version, 4 or 6. Default: both."""
    gateway_ip: CloudText = ""
    """IP address of the gateway. Default: any."""
    cidr: CloudText = ""
    """Address range in CIDR notation. Default: any."""
    ipv6_address_mode: CloudText = ""
    """How IPv6 addresses are assigned: slaac, dhcpv6-stateful or dhcpv6-stateless. Default: any."""
    ipv6_ra_mode: CloudText = ""
    """How routers advertise IPv6: slaac, dhcpv6-stateful or dhcpv6-stateless. Default: any."""


class SubnetParam(Model):
    """A subnet, by id or by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the subnet; either this or `filter` is set."""
    filter: SubnetFilter | None = None
    """Query that exactly one subnet must match; either this or `id` is set."""


class RouterFilter(NeutronFilter):
    """A query for routers; every field that is set must match."""


class RouterParam(Model):
    """A router, by id or by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the router; either this or `filter` is set."""
    filter: RouterFilter | None = None
    """Query that exactly one router must match; either this or `id` is set."""


class SecurityGroupFilter(NeutronFilter):
    """A query for security groups; every field that is set must match."""

    project_id: CloudText = ""
    """Id of the owning project. Default: the project of the credentials."""


class SecurityGroupParam(Model):
    """Security groups, one by id or any number by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the security group; either this or `filter` is set."""
    filter: SecurityGroupFilter | None = None
    """Query that at least one security group must match, and every match is used; either this or `id` is set."""
