"""Ports of a server: as requested by the user, as resolved, and as created."""

from __future__ import annotations

from typing import ClassVar

from api.model import Model
from api.schema import Address, AtomicList, CloudText, NamedList, NonEmpty, Required, Rule, Schema, SetList
from api.v1beta2.network import NetworkParam, SecurityGroupParam, SubnetParam


class FixedIP(Model):
    """One address of a port."""

    subnet: SubnetParam | None = None
    """Subnet that the address is taken from. Default: any subnet of the network that fits `ipAddress`."""
    ip_address: Address | None = None
    """The IP address. Default: Neutron chooses one."""


class AddressPair(Model):
    """A source address that the port may use besides its own."""

    ip_address: NonEmpty
    """IP address, or CIDR where Neutron permits it."""
    mac_address: str | None = None
    """MAC address that goes with it. Default: that of the port."""


class BindingProfile(Model):
    """How the port is bound to the host's network hardware."""

    ovs_hw_offload: bool | None = None
    """Whether the flow table of Open vSwitch is offloaded to the network card (capability switchdev). Default: no."""
    trusted_vf: bool | None = None
    """Whether the virtual function is trusted, so that the guest may change its MAC address. Default: no."""


class ValueSpec(Model):
    """One more attribute for the request that creates the port, for extensions that have no field here."""

    name: NonEmpty
    """Key of this entry in the list; not sent to OpenStack."""
    key: NonEmpty
    """Name of the attribute that is sent."""
    value: NonEmpty
    """Value of the attribute that is sent."""


class PortSettings(Model):
    """Fields that a requested and a resolved port share."""

    admin_state_up: bool | None = None
    """Administrative state at creation. Default: up. Cannot change."""
    mac_address: str | None = None
    """MAC address. Default: Neutron generates one. Cannot change."""
    allowed_address_pairs: AtomicList[AddressPair] = ()
    """Source addresses that the port may use besides its own; without effect when port security is off.
    Default: none. May change at any time."""
    host_id: str | None = None
    """Host that the port is bound to, for drivers that require it. Default: none. Cannot change."""
    vnic_type: str | None = None
    """Kind of virtual network card: normal, direct, direct-physical, macvtap and others that the cloud supports.
    Default: normal. Cannot change.
    """
    profile: BindingProfile | None = None
    """Binding to the host's network hardware. Default: none. Cannot change."""
    enable_port_security: bool | None = None
    """Whether security groups and address pairs are enforced. Default: the network's setting; with `false`, there may
    be no security groups. Cannot change.
    """
    propagate_uplink_status: bool | None = None
    """Whether the link state of the physical port is passed on to the guest. Default: the cloud's setting. Cannot
    change.
    """
    value_specs: NamedList[ValueSpec] = ()
    """More attributes for the request that creates the port. Default: none. Cannot change."""


class PortOpts(PortSettings):
    """A port to create for a server."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(  # written so that its cost, for as many ports as fit into a request, stays within the budget
                "has(self.enablePortSecurity) && has(self.securityGroups)"
                " ? self.enablePortSecurity || self.securityGroups.size() == 0 : true",
                "securityGroups cannot be set when enablePortSecurity is false",
            ),
        )
    )

    network: NetworkParam | None = None
    """Network of the port. Default: the network of the subnets in `fixedIPs`, else that of the cluster.
    Cannot change."""
    description: str | None = None
    """Description of the port. Default: names the cluster. Cannot change."""
    name_suffix: CloudText | None = None
    """Suffix of the port's name, after the name of the server and a hyphen. Default: the index of the port, from 0.
    Cannot change.
    """
    fixed_ips: AtomicList[FixedIP] = ()
    """Addresses of the port, each by subnet, IP address or both. Default: one in each of the cluster's subnets when
    `network` is absent, too, else Neutron chooses. Cannot change."""
    security_groups: AtomicList[SecurityGroupParam] = ()
    """Security groups of this port. Default: the managed group for the role of the machine, if groups are managed.
    Cannot change."""
    tags: SetList[CloudText] = ()
    """Tags of the port and its trunk besides those of the server. Default: none. Cannot change."""
    trunk: bool | None = None
    """Whether the port becomes the parent of a trunk. Default: the server's setting. Cannot change."""


class ResolvedFixedIP(Model):
    """One address of a resolved port."""

    subnet: str | None = None
    """Id of the subnet."""
    ip_address: str | None = None
    """IP address, if one was requested."""


class ResolvedPortSpec(PortSettings):
    """A port with every reference resolved to an id."""

    name: Required[NonEmpty] = ""
    """Name of the port."""
    description: str = ""
    """Description of the port."""
    network_id: Required[NonEmpty] = ""
    """Id of the network."""
    tags: SetList[str] = ()
    """Tags of the server, then those of the port, without duplicates."""
    trunk: bool | None = None
    """Whether the port is the parent of a trunk."""
    fixed_ips: AtomicList[ResolvedFixedIP] = ()
    """Requested addresses."""
    security_groups: AtomicList[str] = ()
    """Ids of the security groups."""


class PortStatus(Model):
    """A port that was created."""

    id: Required[NonEmpty] = ""
    """Id of the port in Neutron."""
