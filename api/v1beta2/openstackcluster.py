"""OpenStackCluster: what the machines of a cluster share: networks, router, groups, endpoint and bastion."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from api import printer_columns
from api.meta import CLUSTER_NAME_PATH, KubernetesObject
from api.model import Model
from api.schema import (
    Address,
    AtomicList,
    CloudName,
    CloudText,
    Column,
    Defaulted,
    Int32,
    IPFamily,
    Ipv4,
    Ipv6Mode,
    NamedList,
    Names,
    Rule,
    Schema,
    SetList,
    Uuid,
)
from api.v1beta2.driftpolicy import DriftPolicy
from api.v1beta2.identity import OpenStackIdentityReference
from api.v1beta2.loadbalancer import APIEndpoint, APIServer
from api.v1beta2.network import NetworkParam, RouterParam, SubnetParam
from api.v1beta2.openstackclusterstatus import OpenStackClusterStatus
from api.v1beta2.openstackmachine import OpenStackMachineSpec
from api.v1beta2.securitygroups import ManagedSecurityGroups


class AllocationPool(Model):
    """A range of addresses that Neutron may hand out."""

    start: Annotated[Address, Schema(min_length=1)]
    """First IP address of the range."""
    end: Annotated[Address, Schema(min_length=1)]
    """Last IP address of the range."""


EQUAL_MODES: Final = Rule(
    "!has(self.ipv6AddressMode) || !has(self.ipv6RAMode) || self.ipv6AddressMode == self.ipv6RAMode",
    "ipv6AddressMode and ipv6RAMode must be equal when both are set",
)
BESIDE_FIRST: Final = Rule(
    "!has(self.additionalManagedSubnet) || (has(self.managedSubnets) && size(self.managedSubnets) == 1)",
    "additionalManagedSubnet requires an entry of managedSubnets",
    field="managedSubnets",
)
OTHER_FAMILY: Final = Rule(
    "!has(self.additionalManagedSubnet) || !has(self.additionalManagedSubnet.cidr) || !has(self.managedSubnets)"
    " || self.managedSubnets.all(s, s.cidr.contains(':') != self.additionalManagedSubnet.cidr.contains(':'))",
    "additionalManagedSubnet must be of the other IP version than managedSubnets",
    field="additionalManagedSubnet.cidr",
)


class SubnetSpec(Model):
    """A subnet to create."""

    crd: ClassVar[Schema] = Schema(rules=(EQUAL_MODES,))

    cidr: Annotated[Address, Schema(min_length=1)]
    """Address range in CIDR notation, IPv4 or IPv6. Cannot change."""
    dns_nameservers: AtomicList[Address] = ()
    """IP addresses of the DNS servers for machines. Default: none. May change at any time."""
    allocation_pools: AtomicList[AllocationPool] = ()
    """Ranges that Neutron may hand out. Default: the whole subnet. Cannot change."""
    ipv6_address_mode: Ipv6Mode | None = None
    """How Neutron assigns addresses of IPv6; `slaac` and `dhcpv6-stateless` need a prefix of 64 bits. Default: Neutron
    only records them. Cannot change."""
    ipv6_ra_mode: Ipv6Mode | None = None
    """What the router advertises in IPv6; equal to `ipv6AddressMode` when both are set. Default: nothing. Cannot
    change."""


class AdditionalSubnetSpec(Model):
    """A second subnet to create, in the network of the first one."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            EQUAL_MODES,
            Rule("has(self.cidr) != has(self.subnetPoolID)", "exactly one of cidr and subnetPoolID must be set"),
            Rule(
                "(!has(self.prefixLength) || has(self.subnetPoolID)) && (!has(self.allocationPools) || has(self.cidr))",
                "prefixLength requires subnetPoolID, and allocationPools require cidr",
            ),
        )
    )

    cidr: Annotated[Address, Schema(min_length=1)] | None = None
    """Address range in CIDR notation. Default: one of the subnet pool. Cannot change."""
    subnet_pool_id: Uuid | None = None
    """UUID of the subnet pool in Neutron that the address range is taken from. Default: none. Cannot change."""
    prefix_length: Annotated[int, Schema(format="int32", minimum=1, maximum=128)] | None = None
    """How many bits the prefix has that is taken from the subnet pool. Default: as many as the pool says, 64 where
    `ipv6AddressMode` needs that. Cannot change."""
    dns_nameservers: AtomicList[Address] = ()
    """IP addresses of the DNS servers for machines. Default: none. May change at any time."""
    allocation_pools: AtomicList[AllocationPool] = ()
    """Ranges that Neutron may hand out. Default: the whole subnet. Cannot change."""
    ipv6_address_mode: Ipv6Mode | None = None
    """How Neutron assigns addresses of IPv6; `slaac` and `dhcpv6-stateless` need a prefix of 64 bits. Default: `slaac`
    in IPv6, when `ipv6RAMode` is not set either. Cannot change."""
    ipv6_ra_mode: Ipv6Mode | None = None
    """What the router advertises in IPv6; equal to `ipv6AddressMode` when both are set. Default: `slaac` in IPv6, when
    `ipv6AddressMode` is not set either. Cannot change."""


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
        rules=(
            Rule("!self.enabled || has(self.spec)", "spec is required if bastion is enabled"),
            Rule(
                "!has(self.spec) || !has(self.spec.antiAffinity) || self.spec.antiAffinity == 'none'",
                "antiAffinity cannot be set for a bastion, which is one server",
            ),
        )
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


class WorkloadLeftovers(Model):
    """What becomes of the load balancers and volumes that workloads of a deleted cluster left."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "!has(self.clusterName) || self.clusterName != 'kubernetes'",
                "clusterName must not be kubernetes: the cloud controller of each cluster has that name by default",
            ),
        )
    )

    policy: Annotated[str, Schema(enum=("Report", "Delete"))] | None = None
    """`Delete` deletes load balancers of Services, with their floating IPs and security groups, if they are on the
    network that was created for the cluster and have the name of the cluster; all else is reported. `Report` deletes
    nothing. Default: `Report`. May change at any time."""
    cluster_name: (
        Annotated[str, Schema(min_length=1, max_length=100, pattern="^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$")] | None
    ) = None
    """Name of the cluster in its cloud controller (`--cluster-name`) and its Cinder CSI driver (`--cluster`). No other
    cluster may have it; one with a dot must begin with the namespace and a dot. Default: `<namespace>.<name of the
    Cluster>`. May change at any time."""


class FailureDomainNetwork(Model):
    """Where machines of a failure domain get their ports; what is named exists already."""

    crd: ClassVar[Schema] = Schema(
        rules=(Rule("has(self.network) || has(self.subnets)", "a failure domain must name a network or subnets"),)
    )

    name: CloudName
    """Name of the availability zone in Nova, which is `failureDomain` of Machines."""
    network: NetworkParam | None = None
    """Network of the ports. Default: the network of the cluster."""
    subnets: Annotated[tuple[SubnetParam, ...], Schema(min_items=1, list_type="atomic")] = ()
    """Subnets of this network; a port gets an address in each. Default: Neutron chooses."""


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
            BESIDE_FIRST,
            OTHER_FAMILY,
        )
    )

    managed_subnets: Annotated[tuple[SubnetSpec, ...], Schema(max_items=1, list_type="atomic")] = ()
    """The subnet to create, with a network and a router for it; at most one. Default: none, and `network` and `subnets`
    refer to existing ones. Cannot change, but for `dnsNameservers`.
    """
    additional_managed_subnet: AdditionalSubnetSpec | None = None
    """A second subnet to create, of the other IP version than that of `managedSubnets`, which remains the first one:
    machines get an address in each. Default: none. Cannot change, but for `dnsNameservers`, nor be added later.
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
    api_server_ip_families: Annotated[tuple[IPFamily, ...], Schema(max_items=2, list_type="set")] = ()
    """IP versions of the virtual IPs of the load balancer: the first is that of the endpoint, a second one gives it one
    more virtual IP. Default: that of the first subnet alone. Cannot change."""
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
    failure_domains: NamedList[FailureDomainNetwork] = ()
    """Networks and subnets for the machines of single failure domains, for ports that name none. Default: the network
    of the cluster for all. May change at any time; machines that exist keep their ports.
    """
    bastion: Bastion | None = None
    """Server for SSH access to the nodes. Default: none. May change at any time."""
    workload_leftovers: WorkloadLeftovers | None = None
    """What becomes of the load balancers and volumes that workloads left when the cluster is deleted. Default: they
    are reported. May change at any time."""
    drift_policy: DriftPolicy | None = None
    """What is done about external changes of the resources of the cluster and of its machines, by kind. Default: see
    its fields. May change at any time.
    """
    identity_ref: OpenStackIdentityReference
    """Credentials for the cluster, and for machines that have none of their own. May change, but for the region."""


class OpenStackCluster(KubernetesObject):
    """The infrastructure of a Kubernetes cluster in OpenStack."""

    names: ClassVar[Names] = Names("openstackclusters", short="osc")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Cluster", CLUSTER_NAME_PATH, "Cluster that the infrastructure belongs to"),
        Column("Network", ".status.network.id", "Id of the network"),
        Column("Endpoint", ".spec.controlPlaneEndpoint.host", "Where the API server is reached", priority=1),
        Column("Bastion IP", ".status.bastion.floatingIP", "Floating IP address of the bastion"),
        printer_columns.AGE,
        printer_columns.state(),
        printer_columns.changed(),
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
