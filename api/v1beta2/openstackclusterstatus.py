"""Status of OpenStackCluster: what of the infrastructure exists, as it was last observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from api.meta import Conditions
from api.model import Model
from api.schema import AtomicList, NamedList, NonEmpty, Required, Schema, SetList
from api.v1beta2.openstackmachine import ResolvedMachineSpec
from api.v1beta2.resources import MachineResources, ResourceLedger


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
    additional_internal_ips: SetList[str] = ()
    """Further virtual IP addresses, of the other IP version."""
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
    """`networkID`, `subnetIDs` and `cidrs` of one that `spec.failureDomains` names; lists are separated by commas."""


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


class AppliedRules(Model):
    """The rules that a managed security group was given last."""

    id: NonEmpty
    """Id of the group."""
    rules: AtomicList[str] = ()
    """A digest of each rule, sorted."""


class KnownSettings(Model):
    """Settings of a listener, pool or health monitor of the managed load balancer, before any external change."""

    id: NonEmpty
    """Id of the resource."""
    settings: Mapping[str, str] = {}
    """Values by their names in Octavia's API."""


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
    applied_rules: Annotated[tuple[AppliedRules, ...], Schema(list_type="map", map_keys=("id",))] = ()
    """Rules that each managed security group was given last; only while `driftPolicy.securityGroupRules` is `Off` or
    `Report`. They distinguish edits of the spec from external changes."""
    load_balancer_settings: Annotated[tuple[KnownSettings, ...], Schema(list_type="map", map_keys=("id",))] = ()
    """Settings of the children of the managed load balancer as they were first seen, or last applied. They distinguish
    external changes from edits of the spec and from the defaults of the cloud."""
    bastion_replacement: BastionReplacement | None = None
    """The replacement of the bastion that is in progress; absent while there is none."""
    resources: ResourceLedger | None = None
    """Resources that were created for the cluster, besides its bastion."""
