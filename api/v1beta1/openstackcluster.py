"""OpenStackCluster: what the machines of a cluster share: networks, router, groups, endpoint and bastion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from api import printer_columns
from api.meta import CLUSTER_NAME_PATH, KubernetesObject
from api.model import Model
from api.schema import (
    Address,
    AtomicList,
    CloudText,
    Column,
    IPFamily,
    Ipv6Mode,
    NamedList,
    Names,
    Required,
    Rule,
    Schema,
    SetList,
)
from api.v1beta1.conditions import Conditions
from api.v1beta1.identity import OpenStackIdentityReference
from api.v1beta1.loadbalancer import APIEndpoint, APIServerLoadBalancer
from api.v1beta1.network import SubnetParam
from api.v1beta1.openstackmachine import MachineResources, OpenStackMachineSpec, ResolvedMachineSpec
from api.v1beta1.securitygroups import ManagedSecurityGroups
from api.v1beta2 import openstackcluster as newer
from api.v1beta2 import openstackclusterstatus as newer_status
from api.v1beta2.driftpolicy import DriftPolicy
from api.v1beta2.network import NetworkParam, RouterParam
from api.v1beta2.resources import ResourceLedger


class AllocationPool(Model):
    """A range of addresses that Neutron may hand out."""

    start: Address
    """First IP address of the range."""
    end: Address
    """Last IP address of the range."""


class SubnetSpec(Model):
    """A subnet to create."""

    crd: ClassVar[Schema] = Schema(rules=(newer.EQUAL_MODES,))

    cidr: Address
    """Address range in CIDR notation, IPv4 or IPv6. Cannot change."""
    dns_nameservers: tuple[Address, ...] = ()
    """IP addresses of the DNS servers for machines. Default: none. May change at any time."""
    allocation_pools: tuple[AllocationPool, ...] = ()
    """Ranges that Neutron may hand out. Default: the whole subnet. Cannot change."""
    ipv6_address_mode: Ipv6Mode | None = None
    """How Neutron assigns addresses of IPv6; `slaac` and `dhcpv6-stateless` need a prefix of 64 bits. Default: Neutron
    only records them. Cannot change."""
    ipv6_ra_mode: Ipv6Mode | None = None
    """What the router advertises in IPv6; equal to `ipv6AddressMode` when both are set. Default: nothing. Cannot
    change."""


class ExternalRouterIPParam(newer.ExternalRouterIPParam):
    """One address of the router on the external network."""

    subnet: SubnetParam
    """Subnet of the external network."""


class Bastion(newer.Bastion):
    """A server with a floating IP for SSH access to the nodes."""

    spec: OpenStackMachineSpec | None = None  # type: ignore[assignment]  # the same field of the older version
    """The server; the credentials are those of the cluster. Required when enabled. Default: none. May change at any
    time: the bastion is replaced.
    """


class FailureDomainNetwork(newer.FailureDomainNetwork):
    """Where machines of a failure domain get their ports; what is named exists already."""

    subnets: Annotated[tuple[SubnetParam, ...], Schema(min_items=1, list_type="atomic")] = ()
    """Subnets of this network; a port gets an address in each. Default: Neutron chooses."""


class OpenStackClusterSpec(Model):
    """Desired state of the infrastructure."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "has(self.disableExternalNetwork) && self.disableExternalNetwork"
                " ? !has(self.bastion) || !has(self.bastion.floatingIP) : true",
                "bastion floating IP cannot be set when disableExternalNetwork is true",
            ),
            Rule(
                "has(self.disableExternalNetwork) && self.disableExternalNetwork"
                " ? has(self.disableAPIServerFloatingIP) && self.disableAPIServerFloatingIP : true",
                "disableAPIServerFloatingIP cannot be false when disableExternalNetwork is true",
            ),
            newer.BESIDE_FIRST,
            newer.OTHER_FAMILY,
        )
    )

    managed_subnets: Annotated[tuple[SubnetSpec, ...], Schema(max_items=1, list_type="atomic")] = ()
    """The subnet to create, with a network and a router for it; at most one. Default: none, and `network` and `subnets`
    refer to existing ones. Cannot change, but for `dnsNameservers`.
    """
    additional_managed_subnet: newer.AdditionalSubnetSpec | None = None
    """A second subnet to create, of the other IP version than that of `managedSubnets`, which remains the first one:
    machines get an address in each. Default: none. Cannot change, but for `dnsNameservers`, nor be added later.
    """
    router: RouterParam | None = None
    """Existing router to use instead of creating one. Default: one is created if there is an external network and a
    managed subnet. Cannot change.
    """
    network: NetworkParam | None = None
    """Existing network for the cluster, when no subnet is managed. Default: the network of `subnets`. Cannot change,
    but to the id that it resolved to.
    """
    subnets: AtomicList[SubnetParam] = ()
    """Existing subnets for the cluster, all of one network. Default: all subnets of `network`. Cannot change, but from
    a name to the id that it resolved to.
    """
    primary_subnet: SubnetParam | None = None
    """Subnet that ports without fixed IPs get their address from, and members of the load balancer.
    Default: the first subnet. May change at any time."""
    network_mtu: int | None = None
    """MTU in bytes of the created network; `managedNetwork.mtu` in v1beta2. Default: that of the cloud. Cannot change.
    """
    external_router_ips: AtomicList[ExternalRouterIPParam] = ()
    """Addresses of the router on the external network; `managedRouter.externalIPs` in v1beta2. Default: Neutron
    chooses one. Cannot change."""
    external_network: NetworkParam | None = None
    """Network of the router's gateway and of floating IPs. Default: the only external network; having none is allowed,
    having several is an error. Cannot change.
    """
    disable_external_network: bool | None = None
    """Whether the cluster uses no external network, gateway and floating IPs; `enableExternalNetwork`, inverted, in
    v1beta2. `true` requires `disableAPIServerFloatingIP` to be true. Default: false. Cannot change.
    """
    api_server_load_balancer: APIServerLoadBalancer | None = None
    """Load balancer in front of the API servers; `apiServer.managedLoadBalancer` in v1beta2. Default: none. Cannot
    change, but for some of its fields."""
    disable_api_server_floating_ip: bool | None = None
    """Whether the endpoint gets no floating IP; `apiServer.enableFloatingIP`, inverted, in v1beta2. Default: false.
    Cannot change once `controlPlaneEndpoint` has a host."""
    api_server_floating_ip: Address | None = None
    """Floating IP address of the endpoint, created if it does not exist; `apiServer.floatingIP` in v1beta2. Default: a
    new one. May change only to the one that the load balancer has.
    """
    api_server_fixed_ip: Address | None = None
    """Fixed IP address of the endpoint: the virtual IP of the load balancer, or the endpoint itself when there is
    neither load balancer nor floating IP; `apiServer.fixedIP` in v1beta2. Default: Neutron chooses. Can be set once,
    when floating IPs are disabled."""
    api_server_port: Annotated[int, Schema(minimum=0, maximum=65535)] | None = None
    """TCP port of the endpoint, used while `controlPlaneEndpoint` is not set; `apiServer.port` in v1beta2. Default:
    6443. Can be set once, when floating IPs are disabled."""
    api_server_ip_families: Annotated[tuple[IPFamily, ...], Schema(max_items=2, list_type="set")] = ()
    """IP versions of the virtual IPs of the load balancer: the first is that of the endpoint, a second one gives it one
    more virtual IP. Default: that of the first subnet alone. Cannot change."""
    managed_security_groups: ManagedSecurityGroups | None = None
    """Security groups that are created for control plane, workers and bastion; an empty object means the default rules.
    Default: no groups are created. May be added later and change at any time, but not be removed.
    """
    disable_port_security: bool | None = None
    """Whether the network that is created has no port security; `managedNetwork.enablePortSecurity`, inverted, in
    v1beta2. Default: false. Cannot change.
    """
    tags: SetList[CloudText] = ()
    """Tags of everything that is created for the cluster, servers included. Default: none. Cannot change."""
    control_plane_endpoint: APIEndpoint | None = None
    """Where the API server is reached. Default: determined and written by the provider. Cannot change once set."""
    control_plane_availability_zones: SetList[CloudText] = ()
    """Availability zones of Nova for control plane machines. Default: all. May change at any time."""
    control_plane_omit_availability_zone: bool | None = None
    """Whether control plane machines are created without availability zone, so that Nova chooses; without effect when
    `controlPlaneAvailabilityZones` is set. Default: false. May change at any time.
    """
    failure_domains: NamedList[FailureDomainNetwork] = ()
    """Networks and subnets for the machines of single failure domains, for ports that name none. Default: the network
    of the cluster for all. May change at any time; machines that exist keep their ports.
    """
    bastion: Bastion | None = None
    """Server for SSH access to the nodes. Default: none. May change at any time."""
    workload_leftovers: newer.WorkloadLeftovers | None = None
    """What becomes of the load balancers and volumes that workloads left when the cluster is deleted. Default: they
    are reported. May change at any time."""
    drift_policy: DriftPolicy | None = None
    """What is done about external changes of the resources of the cluster and of its machines, by kind. Default: see
    its fields. May change at any time.
    """
    identity_ref: OpenStackIdentityReference
    """Credentials for the cluster, and for machines that have none of their own. May change, but for the region."""


class NetworkStatus(Model):
    """A network in Neutron."""

    name: Required[str] = ""
    """Name; the id when Neutron has none."""
    id: Required[str] = ""
    """Id."""
    tags: tuple[str, ...] = ()
    """Tags."""


class Subnet(Model):
    """A subnet in Neutron."""

    name: Required[str] = ""
    """Name; the id when Neutron has none."""
    id: Required[str] = ""
    """Id."""
    cidr: Required[str] = ""
    """Address range in CIDR notation."""
    tags: tuple[str, ...] = ()
    """Tags."""


class NetworkStatusWithSubnets(NetworkStatus):
    """A network in Neutron, and those of its subnets that are used."""

    subnets: tuple[Subnet, ...] = ()
    """Subnets that are used."""


class Router(Model):
    """A router in Neutron."""

    name: Required[str] = ""
    """Name; the id when Neutron has none."""
    id: Required[str] = ""
    """Id."""
    tags: tuple[str, ...] = ()
    """Tags."""
    ips: tuple[str, ...] = ()
    """IP addresses on the external network."""


class LoadBalancer(Model):
    """A load balancer in Octavia."""

    name: Required[str] = ""
    """Name."""
    id: Required[str] = ""
    """Id."""
    ip: Required[str] = ""
    """Floating IP address; the virtual IP if there is none."""
    internal_ip: Required[str] = ""
    """Virtual IP address."""
    additional_internal_ips: SetList[str] = ()
    """Further virtual IP addresses, of the other IP version."""
    allowed_cidrs: tuple[str, ...] = ()
    """CIDRs that may connect, with those of the cluster itself; sorted, without duplicates."""
    tags: tuple[str, ...] = ()
    """Tags."""
    load_balancer_network: NetworkStatusWithSubnets | None = None
    """Network and subnet of the virtual IP."""


class FailureDomainSpec(Model):
    """A failure domain for machines: an availability zone of Nova."""

    control_plane: bool = False
    """Whether control plane machines may be placed there."""
    attributes: Mapping[str, str] = {}
    """`networkID`, `subnetIDs` and `cidrs` of one that `spec.failureDomains` names; lists are separated by commas."""


class SecurityGroupStatus(Model):
    """A security group in Neutron."""

    name: Required[str] = ""
    """Name."""
    id: Required[str] = ""
    """Id."""


class BastionStatus(newer_status.BastionStatus):
    """Observed state of the bastion."""

    resolved: ResolvedMachineSpec | None = None  # type: ignore[assignment]  # the same field of the older version
    """References of the spec resolved to ids; kept for older objects, see the OpenStackServer."""
    resources: MachineResources | None = None  # type: ignore[assignment]
    """Resources that were created for the bastion; kept for older objects, see the OpenStackServer."""


class OpenStackClusterStatus(Model):
    """Observed state of the infrastructure."""

    ready: Annotated[bool, Schema(is_required=True, is_default_served=True)] = False
    """Whether the condition `Ready` is True."""
    initialization: newer_status.ClusterInitialization | None = None
    """Milestones that are reached once; Cluster API reads them."""
    network: NetworkStatusWithSubnets | None = None
    """Network of the cluster and those of its subnets that are used."""
    external_network: NetworkStatus | None = None
    """External network; absent if there is none or it is disabled."""
    router: Router | None = None
    """Router of the cluster."""
    api_server_load_balancer: LoadBalancer | None = None
    """Load balancer in front of the API servers; `apiServerManagedLoadBalancer` in v1beta2."""
    failure_domains: Mapping[str, FailureDomainSpec] = {}
    """Availability zones of Nova by name; Cluster API spreads machines over them. A list in v1beta2."""
    control_plane_security_group: SecurityGroupStatus | None = None
    """Managed security group of the control plane."""
    worker_security_group: SecurityGroupStatus | None = None
    """Managed security group of the workers."""
    bastion_security_group: SecurityGroupStatus | None = None
    """Managed security group of the bastion; absent while the bastion is disabled."""
    bastion: BastionStatus | None = None
    """Observed state of the bastion; absent while there is none."""
    applied_rules: Annotated[tuple[newer_status.AppliedRules, ...], Schema(list_type="map", map_keys=("id",))] = ()
    """Rules that each managed security group was given last; only while `driftPolicy.securityGroupRules` is `Off` or
    `Report`. They distinguish edits of the spec from external changes."""
    load_balancer_settings: Annotated[
        tuple[newer_status.KnownSettings, ...], Schema(list_type="map", map_keys=("id",))
    ] = ()
    """Settings of the children of the managed load balancer as they were first seen, or last applied. They distinguish
    external changes from edits of the spec and from the defaults of the cloud."""
    bastion_replacement: newer_status.BastionReplacement | None = None
    """The replacement of the bastion that is in progress; absent while there is none."""
    failure_reason: str | None = None
    """Not written any more, kept for older objects; see the conditions."""
    failure_message: str | None = None
    """Not written any more, kept for older objects; see the conditions."""
    conditions: Conditions = ()
    """Conditions of the object, above all `Ready`."""
    resources: ResourceLedger | None = None
    """Resources that were created for the cluster, besides its bastion."""


class OpenStackCluster(KubernetesObject):
    """The infrastructure of a Kubernetes cluster in OpenStack."""

    names: ClassVar[Names] = newer.OpenStackCluster.names
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Cluster", CLUSTER_NAME_PATH, "Cluster that the infrastructure belongs to"),
        Column("Ready", ".status.ready", "Whether the infrastructure is ready"),
        *printer_columns.beside_ready(newer.OpenStackCluster.columns[1:]),
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta1"] = "infrastructure.cluster.x-k8s.io/v1beta1"
    """Group and version of the kind."""
    kind: Literal["OpenStackCluster"] = "OpenStackCluster"
    """Kind of the object."""
    spec: OpenStackClusterSpec = OpenStackClusterSpec(
        identity_ref=OpenStackIdentityReference(name="", cloud_name=""),
    )
    """Desired state of the infrastructure."""
    status: OpenStackClusterStatus = OpenStackClusterStatus()
    """Observed state of the infrastructure."""
