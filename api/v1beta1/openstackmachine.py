"""OpenStackMachine: one server for one Machine of Cluster API."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from api import printer_columns
from api.meta import CLUSTER_NAME_PATH, KubernetesObject, NodeAddress, TypedLocalObjectReference
from api.model import Model
from api.schema import CloudName, CloudText, Column, NamedList, Names, NonEmpty, Rule, Schema, SetList
from api.v1beta1.conditions import Conditions
from api.v1beta1.identity import OpenStackIdentityReference
from api.v1beta1.port import PortOpts, PortStatus, ResolvedPortSpec
from api.v1beta1.server import (
    AdditionalBlockDevice,
    ImageParam,
    RootVolume,
    SchedulerHintAdditionalProperty,
    ServerMetadata,
)
from api.v1beta2 import openstackmachine as newer
from api.v1beta2.network import SecurityGroupParam
from api.v1beta2.resources import ResourceLedger
from api.v1beta2.server import ServerGroupParam


class OpenStackMachineSpec(Model):
    """Desired state of the server."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule("(has(self.flavor) || has(self.flavorID))", "at least one of flavor or flavorID must be set"),
            newer.ONE_GROUP,
        )
    )

    provider_id: str | None = None
    """`openstack://<region>/<server id>`; written by the provider when the server exists. The region is empty unless
    `identityRef` of this machine has one; in templates it must not be set. Default: none until then. May change at any
    time."""
    flavor: CloudName | None = None
    """Name of the Nova flavor, `flavor.filter.name` in v1beta2; `flavorID` takes precedence, and one of the two is
    required. Default: none. Cannot change.
    """
    flavor_id: CloudName | None = None
    """Id of the Nova flavor, `flavor.id` in v1beta2. Default: `flavor` is used. Cannot change."""
    image: ImageParam
    """Glance image; with `rootVolume`, the one that the volume is created from. Cannot change."""
    ssh_key_name: CloudText = ""
    """Nova key pair, which belongs to the user of the credentials. Default: none. Cannot change."""
    ports: tuple[PortOpts, ...] = ()
    """Ports of the server, in order. Default: one port on the network of the cluster. Cannot change, but for
    `allowedAddressPairs`."""
    security_groups: tuple[SecurityGroupParam, ...] = ()
    """Security groups that every port gets besides its own. Default: none. Cannot change."""
    trunk: bool = False
    """Whether each port without a setting of its own becomes the parent of a trunk. Default: false. Cannot change."""
    tags: SetList[CloudText] = ()
    """Tags of the server and its ports, followed by those of the cluster. Default: none. Cannot change."""
    server_metadata: Annotated[tuple[ServerMetadata, ...], Schema(list_type="map", map_keys=("key",))] = ()
    """Metadata that Nova passes to the guest. Default: none. Cannot change."""
    config_drive: bool | None = None
    """Whether the guest gets a config drive. Default: no. Cannot change."""
    root_volume: RootVolume | None = None
    """Volume to boot from. Default: the server boots from a local disk. Cannot change."""
    additional_block_devices: NamedList[AdditionalBlockDevice] = ()
    """More disks. Default: none. Cannot change."""
    server_group: ServerGroupParam | None = None
    """Server group, for affinity or anti-affinity. Default: none. Cannot change."""
    anti_affinity: Annotated[str, Schema(enum=("soft", "hard", "none"))] | None = None
    """Whether the servers of a template are on different hosts: `soft` if there are enough hosts, `hard` always, else a
    server is not created. The provider creates a server group for each cluster and template; not together with
    `serverGroup`. Default: none. Cannot change."""
    identity_ref: OpenStackIdentityReference | None = None
    """Credentials for this machine. Default: those of the cluster. May change, but for the region; a server that exists
    keeps those that it was created with.
    """
    floating_ip_pool_ref: TypedLocalObjectReference | None = None
    """Pool that a floating IP is claimed from. Default: no floating IP. Cannot change."""
    scheduler_hint_additional_properties: NamedList[SchedulerHintAdditionalProperty] = ()
    """More hints to Nova's scheduler. Default: none. Cannot change."""


class ResolvedMachineSpec(Model):
    """References of the spec, resolved to ids."""

    server_group_id: str = ""
    """Id of the server group."""
    image_id: str = ""
    """Id of the image."""
    flavor_id: str = ""
    """Id of the flavor."""
    ports: tuple[ResolvedPortSpec, ...] = ()
    """Ports with every reference resolved, in order."""


class MachineResources(Model):
    """Resources that were created for a server."""

    ports: tuple[PortStatus, ...] = ()
    """Ports, in the order of the resolved ports."""


class OpenStackMachineResources(MachineResources, ResourceLedger):
    """Resources that were created for this machine.

    Ports and server are recorded in the OpenStackServer of the same name.
    """


class OpenStackMachineStatus(Model):
    """Observed state of the machine."""

    ready: bool = False
    """Whether the condition `Ready` is True."""
    initialization: newer.MachineInitialization | None = None
    """Milestones that are reached once; Cluster API reads them."""
    instance_id: str | None = None
    """Id of the server in Nova."""
    addresses: tuple[NodeAddress, ...] = ()
    """Addresses of the server, and its name as InternalDNS."""
    failure_domain: Annotated[str, Schema(min_length=1, max_length=256)] | None = None
    """Availability zone that the server was created in; Cluster API copies it to the Machine."""
    instance_state: str | None = None
    """State of the server as Nova reports it; kept for older objects, see the OpenStackServer."""
    resolved: ResolvedMachineSpec | None = None
    """References of the spec resolved to ids; kept for older objects, see the OpenStackServer."""
    resources: OpenStackMachineResources | None = None
    """Resources that were created for this machine, besides its OpenStackServer."""
    joined_pools: SetList[NonEmpty] = ()
    """Ids of pools that the member of the machine was in; only while `driftPolicy.poolMembers` of the OpenStackCluster
    is `Off` or `Report`. A member that is missing there was removed externally."""
    failure_reason: str | None = None
    """Not written any more, kept for older objects; see the conditions."""
    failure_message: str | None = None
    """Not written any more, kept for older objects; see the conditions."""
    conditions: Conditions = ()
    """Conditions of the object, above all `Ready`."""


class OpenStackMachine(KubernetesObject):
    """A server in OpenStack that becomes a node of a Kubernetes cluster."""

    names: ClassVar[Names] = newer.OpenStackMachine.names
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Cluster", CLUSTER_NAME_PATH, "Cluster that the machine belongs to"),
        Column("Ready", ".status.ready", "Whether the machine is ready"),
        *printer_columns.beside_ready(printer_columns.with_flavor_as_text(newer.OpenStackMachine.columns[1:])),
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1beta1"] = "infrastructure.cluster.x-k8s.io/v1beta1"
    """Group and version of the kind."""
    kind: Literal["OpenStackMachine"] = "OpenStackMachine"
    """Kind of the object."""
    spec: OpenStackMachineSpec = OpenStackMachineSpec(image=ImageParam())
    """Desired state of the server."""
    status: OpenStackMachineStatus = OpenStackMachineStatus()
    """Observed state of the machine."""
