"""OpenStackCluster: what the machines of a cluster share: networks, router, groups, endpoint and bastion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from api.meta import CLUSTER_NAME_PATH, Conditions, KubernetesObject
from api.model import Model
from api.schema import (
    Address,
    AtomicList,
    CloudText,
    Column,
    Defaulted,
    Int32,
    Ipv4,
    NamedList,
    Names,
    NonEmpty,
    Required,
    Rule,
    Schema,
    SetList,
)
from api.v1beta2.identity import OpenStackIdentityReference
from api.v1beta2.loadbalancer import APIEndpoint, APIServer
from api.v1beta2.network import NetworkParam, RouterParam, SubnetParam
from api.v1beta2.openstackmachine import OpenStackMachineSpec, ResolvedMachineSpec
from api.v1beta2.resources import MachineResources, ResourceLedger
from api.v1beta2.securitygroups import ManagedSecurityGroups


class AllocationPool(Model):
    """A range of addresses that Neutron may hand out."""

    start: Annotated[Address, Schema(min_length=1)]
    """First IP address of the range."""
    end: Annotated[Address, Schema(min_length=1)]
    """Last IP address of the range."""


class SubnetSpec(Model):
    """A subnet to create."""

    cidr: Annotated[Address, Schema(min_length=1)]
    """Address range in CIDR notation, IPv4 or IPv6. Cannot change."""
    dns_nameservers: AtomicList[Address] = ()
    """IP addresses of the DNS servers for machines. Default: none. May change at any time."""
    allocation_pools: AtomicList[AllocationPool] = ()
    """Ranges that Neutron may hand out. Default: the whole subnet. Cannot change."""


class ExternalRouterIPParam(Model):
    """One address of the router on the external network."""

    fixed_ip: Address = ""
    """IP address. Default: Neutron chooses one in the subnet."""
    subnet: SubnetParam
    """Subnet of the external network."""


class ManagedRouter(Model):
    """Options for the router of the cluster."""

    crd: ClassVar[Schema] = Schema(rules=(Rule("has(self.externalIPs)", "managedRouter must not be empty if set"),))

    external_ips: Annotated[
        tuple[ExternalRouterIPParam, ...],
        Schema(min_items=1, list_type="atomic"),
    ] = ()
    """Addresses of the router on the external network. Default: Neutron chooses one. Cannot change."""


class ManagedNetwork(Model):
    """Options for the network of the cluster, used when it is created."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "self == null || has(self.mtu) || has(self.enablePortSecurity)",
                "managedNetwork must not be empty if set",
            ),
        )
    )

    mtu: Int32 | None = None
    """MTU in bytes. Default: that of the cloud. Cannot change."""
    enable_port_security: bool | None = None
    """Whether ports of the network have port security unless they have a setting of their own. Default: true. Cannot
    change.
    """


class Bastion(Model):
    """A server with a floating IP for SSH access to the nodes."""

    crd: ClassVar[Schema] = Schema(
        rules=(Rule("!self.enabled || has(self.spec)", "spec is required if bastion is enabled"),)
    )

    enabled: Defaulted[bool] = True
    """Whether the bastion exists. Default: true. May change at any time."""
    spec: OpenStackMachineSpec | None = None
    """The server; the credentials are those of the cluster. Required when enabled. Default: none. May change at any
    time: the bastion is replaced.
    """
    availability_zone: CloudText | None = None
    """Availability zone in Nova. Default: Nova chooses. May change at any time: the bastion is replaced."""
    floating_ip: Ipv4 | None = None
    """Floating IP address, which is kept when the bastion is deleted. Default: a new one, which is deleted with the
    bastion. May change at any time.
    """


class OpenStackClusterSpec(Model):
    """Desired state of the infrastructure."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "has(self.enableExternalNetwork) && !self.enableExternalNetwork"
                " ? !has(self.bastion) || !has(self.bastion.floatingIP) : true",
                "bastion floating IP cannot be set when enableExternalNetwork is false",
            ),
            Rule(
                "has(self.enableExternalNetwork) && !self.enableExternalNetwork"
                " ? has(self.apiServer) && has(self.apiServer.enableFloatingIP)"
                " && !self.apiServer.enableFloatingIP : true",
                "apiServer.enableFloatingIP cannot be true when enableExternalNetwork is false",
            ),
        )
    )

    managed_subnets: Annotated[tuple[SubnetSpec, ...], Schema(max_items=1, list_type="atomic")] = ()
    """The subnet to create, with a network and a router for it; at most one. Default: none, and `network` and `subnets`
    refer to existing ones. Cannot change, but for `dnsNameservers`.
    """
    subnets: AtomicList[SubnetParam] = ()
    """Existing subnets for the cluster, all of one network. Default: all subnets of `network`. Cannot change, but from
    a name to the id that it resolved to.
    """
    primary_subnet: SubnetParam | None = None
    """Subnet that ports without fixed IPs get their address from, and members of the load balancer.
    Default: the first subnet. May change at any time."""
    managed_router: ManagedRouter | None = None
    """Options for the router that is created. Default: see its fields. Cannot change."""
    router: RouterParam | None = None
    """Existing router to use instead of creating one. Default: one is created if there is an external network and a
    managed subnet. Cannot change.
    """
    managed_network: ManagedNetwork | None = None
    """Options for the network that is created. Default: see its fields. Cannot change."""
    network: NetworkParam | None = None
    """Existing network for the cluster, when no subnet is managed. Default: the network of `subnets`. Cannot change,
    but to the id that it resolved to.
    """
    external_network: NetworkParam | None = None
    """Network of the router's gateway and of floating IPs. Default: the only external network; having none is allowed,
    having several is an error. Cannot change.
    """
    enable_external_network: bool | None = None
    """Whether the cluster uses an external network; `false` disables gateway and floating IPs, and requires
    `apiServer.enableFloatingIP` to be false. Default: true. Cannot change.
    """
    api_server: APIServer | None = None
    """How the API server is reached. Default: a floating IP at a control plane machine, port 6443. Cannot change, but
    for some of its fields."""
    managed_security_groups: ManagedSecurityGroups | None = None
    """Security groups that are created for control plane, workers and bastion; an empty object means the default rules.
    Default: no groups are created. May be added later and change at any time, but not be removed.
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
    bastion: Bastion | None = None
    """Server for SSH access to the nodes. Default: none. May change at any time."""
    identity_ref: OpenStackIdentityReference
    """Credentials for the cluster, and for machines that have none of their own. May change, but for the region."""


class ClusterInitialization(Model):
    """Milestones that are reached once in the life of a cluster."""

    provisioned: bool = False
    """True once all of the infrastructure was ready; never becomes false again."""


class NetworkStatus(Model):
    """A network in Neutron."""

    name: Required[NonEmpty] = ""
    """Name; the id when Neutron has none."""
    id: Required[NonEmpty] = ""
    """Id."""
    tags: SetList[str] = ()
    """Tags."""


class Subnet(Model):
    """A subnet in Neutron."""

    name: Required[NonEmpty] = ""
    """Name; the id when Neutron has none."""
    id: Required[NonEmpty] = ""
    """Id."""
    cidr: Required[NonEmpty] = ""
    """Address range in CIDR notation."""
    tags: SetList[str] = ()
    """Tags."""


class NetworkStatusWithSubnets(NetworkStatus):
    """A network in Neutron, and those of its subnets that are used."""

    subnets: AtomicList[Subnet] = ()
    """Subnets that are used."""


class Router(Model):
    """A router in Neutron."""

    name: Required[NonEmpty] = ""
    """Name; the id when Neutron has none."""
    id: Required[NonEmpty] = ""
    """Id."""
    tags: SetList[str] = ()
    """Tags."""
    ips: SetList[str] = ()
    """IP addresses on the external network."""


class LoadBalancer(Model):
    """A load balancer in Octavia."""

    name: Required[NonEmpty] = ""
    """Name."""
    id: Required[NonEmpty] = ""
    """Id."""
    ip: Required[NonEmpty] = ""
    """Floating IP address; the virtual IP if there is none."""
    internal_ip: Required[NonEmpty] = ""
    """Virtual IP address."""
    allowed_cidrs: SetList[str] = ()
    """CIDRs that may connect, with those of the cluster itself; sorted, without duplicates."""
    tags: SetList[str] = ()
    """Tags."""
    load_balancer_network: NetworkStatusWithSubnets | None = None
    """Network and subnet of the virtual IP."""


class FailureDomain(Model):
    """A failure domain for machines: an availability zone of Nova."""

    name: Annotated[str, Schema(min_length=1, max_length=256)]
    """Name of the availability zone."""
    control_plane: bool | None = None
    """Whether control plane machines may be placed there."""
    attributes: Mapping[str, str] = {}
    """Additional attributes; not written by the provider."""


class SecurityGroupStatus(Model):
    """A security group in Neutron."""

    name: Required[NonEmpty] = ""
    """Name."""
    id: Required[NonEmpty] = ""
    """Id."""


class BastionStatus(Model):
    """Observed state of the bastion."""

    id: str = ""
    """Id of the server in Nova."""
    name: str = ""
    """Name of the server."""
    ssh_key_name: str = ""
    """Key pair of the server."""
    state: str = ""
    """State of the server as Nova reports it."""
    ip: str = ""
    """IP address on the network of the cluster."""
    floating_ip: str = ""
    """Floating IP address."""
    resolved: ResolvedMachineSpec | None = None
    """References of the spec resolved to ids; kept for older objects, see the OpenStackServer."""
    resources: MachineResources | None = None
    """Resources that were created for the bastion; kept for older objects, see the OpenStackServer."""


class BastionReplacement(Model):
    """The replacement of a bastion that is in progress."""

    cause: Annotated[str, Schema(enum=("SpecChanged", "ServerDeleted", "ObjectDeleted"))]
    """Why the bastion is replaced: `SpecChanged`; `ServerDeleted`: its server was deleted externally; `ObjectDeleted`:
    its OpenStackServer was being deleted."""
    changed_fields: AtomicList[str] = ()
    """Paths of the fields that were edited, for `SpecChanged`."""


class OpenStackClusterStatus(Model):
    """Observed state of the infrastructure."""

    conditions: Conditions = ()
    """Conditions of the object, above all `Ready`."""
    initialization: ClusterInitialization | None = None
    """Milestones that are reached once; Cluster API reads them."""
    network: NetworkStatusWithSubnets | None = None
    """Network of the cluster and those of its subnets that are used."""
    external_network: NetworkStatus | None = None
    """External network; absent if there is none or it is disabled."""
    router: Router | None = None
    """Router of the cluster."""
    api_server_managed_load_balancer: LoadBalancer | None = None
    """Load balancer in front of the API servers."""
    failure_domains: NamedList[FailureDomain] = ()
    """Availability zones of Nova, sorted by name; Cluster API spreads machines over them."""
    control_plane_security_group: SecurityGroupStatus | None = None
    """Managed security group of the control plane."""
    worker_security_group: SecurityGroupStatus | None = None
    """Managed security group of the workers."""
    bastion_security_group: SecurityGroupStatus | None = None
    """Managed security group of the bastion; absent while the bastion is disabled."""
    bastion: BastionStatus | None = None
    """Observed state of the bastion; absent while there is none."""
    bastion_replacement: BastionReplacement | None = None
    """The replacement of the bastion that is in progress; absent while there is none."""
    resources: ResourceLedger | None = None
    """Resources that were created for the cluster, besides its bastion."""


class OpenStackCluster(KubernetesObject):
    """The infrastructure of a Kubernetes cluster in OpenStack."""

    names: ClassVar[Names] = Names("openstackclusters", short="osc")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Cluster", CLUSTER_NAME_PATH, "Cluster that the infrastructure belongs to"),
        Column("Network", ".status.network.id", "Id of the network"),
        Column("Endpoint", ".spec.controlPlaneEndpoint.host", "Where the API server is reached", priority=1),
        Column("Bastion IP", ".status.bastion.floatingIP", "Floating IP address of the bastion"),
        Column("Age", ".metadata.creationTimestamp", "Time since creation", type="date"),
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta2"] = "infrastructure.cluster.x-k8s.io/v1beta2"
    """Group and version of the kind."""
    kind: Literal["OpenStackCluster"] = "OpenStackCluster"
    """Kind of the object."""
    spec: OpenStackClusterSpec = OpenStackClusterSpec(
        identity_ref=OpenStackIdentityReference(name="", cloud_name=""),
    )
    """Desired state of the infrastructure."""
    status: OpenStackClusterStatus = OpenStackClusterStatus()
    """Observed state of the infrastructure."""
