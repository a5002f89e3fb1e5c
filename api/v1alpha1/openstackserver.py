"""OpenStackServer: creates and deletes a server with its ports, volumes and floating IP."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from api import printer_columns
from api.meta import Condition, KubernetesObject, LocalObjectReference, NodeAddress, TypedLocalObjectReference
from api.model import Model
from api.schema import CloudName, CloudText, Column, NamedList, Names, Rule, Schema, SetList, Timestamp
from api.v1beta2.conditions import ConditionType
from api.v1beta2.identity import OpenStackIdentityReference
from api.v1beta2.network import SecurityGroupParam
from api.v1beta2.port import PortOpts, PortStatus, ResolvedPortSpec
from api.v1beta2.resources import ResourceLedger
from api.v1beta2.server import (
    AdditionalBlockDevice,
    ImageParam,
    RootVolume,
    SchedulerHintAdditionalProperty,
    ServerGroupParam,
    ServerMetadata,
)


class OpenStackServerSpec(Model):
    """Desired state of the server. Nothing of it can change but the credentials: create a new server."""

    crd: ClassVar[Schema] = Schema(
        rules=(Rule("(has(self.flavor) || has(self.flavorID))", "at least one of flavor or flavorID must be set"),)
    )

    additional_block_devices: NamedList[AdditionalBlockDevice] = ()
    """More disks. Default: none. Cannot change."""
    availability_zone: Annotated[str, Schema(max_length=256)] | None = None
    """Availability zone in Nova, and for volumes that take it from the machine. Default: Nova chooses.
    Cannot change."""
    config_drive: bool | None = None
    """Whether the guest gets a config drive. Default: no. Cannot change."""
    flavor: CloudName | None = None
    """Name of the Nova flavor; `flavorID` takes precedence, and one of the two is required. Default: none. Cannot
    change.
    """
    flavor_id: CloudName | None = None
    """Id of the Nova flavor. Default: `flavor` is used. Cannot change."""
    floating_ip_pool_ref: TypedLocalObjectReference | None = None
    """Pool that a floating IP is claimed from. Default: no floating IP. Cannot change."""
    identity_ref: OpenStackIdentityReference
    """Credentials. May change, but for the region."""
    image: ImageParam
    """Glance image; with `rootVolume`, the one that the volume is created from. Cannot change."""
    ports: tuple[PortOpts, ...]
    """Ports of the server, in order; each names a network or a subnet. Cannot change."""
    root_volume: RootVolume | None = None
    """Volume to boot from. Default: the server boots from a local disk. Cannot change."""
    ssh_key_name: CloudText
    """Nova key pair, which belongs to the user of the credentials; empty for none. Cannot change."""
    security_groups: tuple[SecurityGroupParam, ...] = ()
    """Security groups of ports that have none of their own. Default: the default group of the project.
    Cannot change."""
    server_group: ServerGroupParam | None = None
    """Server group, for affinity or anti-affinity. Default: none. Cannot change."""
    server_metadata: Annotated[tuple[ServerMetadata, ...], Schema(list_type="map", map_keys=("key",))] = ()
    """Metadata that Nova passes to the guest. Default: none. Cannot change."""
    tags: SetList[CloudText] = ()
    """Tags of the server and its ports. Default: none. Cannot change."""
    trunk: bool | None = None
    """Whether each port without a setting of its own becomes the parent of a trunk. Default: false. Cannot change."""
    user_data_ref: LocalObjectReference | None = None
    """Secret with the user data under the key `value`. Default: none. Cannot change."""
    scheduler_hint_additional_properties: NamedList[SchedulerHintAdditionalProperty] = ()
    """More hints to Nova's scheduler. Default: none. Cannot change."""


class ResolvedServerSpec(Model):
    """References of the spec, resolved to ids before anything is created."""

    server_group_id: str = ""
    """Id of the server group."""
    image_id: str = ""
    """Id of the image."""
    flavor_id: str = ""
    """Id of the flavor."""
    ports: tuple[ResolvedPortSpec, ...] = ()
    """Ports with every reference resolved, in order."""


class ServerResources(ResourceLedger):
    """Resources that were created for this server."""

    ports: tuple[PortStatus, ...] = ()
    """Ports, in the order of the resolved ports."""


class ExternalChange(Model):
    """A change of the server that the provider did not make."""

    type: Annotated[str, Schema(enum=("Moved", "Relaunched", "Rebuilt"))]
    """Kind of change: `Moved` to another host; `Relaunched` (rebuilt, resized, evacuated or unshelved); `Rebuilt` from
    its own image, which wiped its disk."""
    time: Timestamp
    """When the last change of this type was noticed, RFC 3339, whole seconds."""


class OpenStackServerStatus(Model):
    """Observed state of the server."""

    ready: Annotated[bool, Schema(is_required=True, is_default_served=True)] = False
    """Whether the server was ACTIVE when it was last checked."""
    instance_id: str | None = None
    """Id of the server in Nova."""
    instance_state: str | None = None
    """State of the server as Nova reports it, such as BUILD, ACTIVE or ERROR."""
    addresses: tuple[NodeAddress, ...] = ()
    """Addresses of the server."""
    availability_zone: str | None = None
    """Availability zone that Nova chose for the server, set once it is ACTIVE."""
    resolved: ResolvedServerSpec | None = None
    """References of the spec resolved to ids; resolved once."""
    resources: ServerResources | None = None
    """Resources that were created for this server."""
    external_changes: Annotated[tuple[ExternalChange, ...], Schema(list_type="map", map_keys=("type",))] = ()
    """Changes of the server that the provider did not make, the last of each type."""
    conditions: tuple[Condition, ...] = ()
    """Conditions of the server, above all `InstanceReady`."""


class OpenStackServer(KubernetesObject):
    """A server in OpenStack with its ports, volumes and floating IP."""

    names: ClassVar[Names] = Names("openstackservers", short="oss")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("InstanceState", ".status.instanceState", "State of the server in Nova"),
        Column("Ready", ".status.ready", "Whether the server is ACTIVE"),
        Column("InstanceID", ".status.instanceID", "Id of the server in Nova"),
        printer_columns.AGE,
        printer_columns.state(ConditionType.INSTANCE_READY),
        printer_columns.ADDRESS,
        *printer_columns.with_flavor_as_text([printer_columns.flavor()]),
        Column("Zone", ".status.availabilityZone", "Availability zone that Nova chose", priority=1),
        printer_columns.image(),
        printer_columns.changed(ConditionType.INSTANCE_READY),
    )

    api_version: Literal["infrastructure.cluster.x-k8s.io/v1alpha1"] = "infrastructure.cluster.x-k8s.io/v1alpha1"
    """Group and version of the kind."""
    kind: Literal["OpenStackServer"] = "OpenStackServer"
    """Kind of the object."""
    spec: OpenStackServerSpec = OpenStackServerSpec(
        identity_ref=OpenStackIdentityReference(name="", cloud_name=""),
        image=ImageParam(),
        ports=(),
        ssh_key_name="",
    )
    """Desired state of the server."""
    status: OpenStackServerStatus = OpenStackServerStatus()
    """Observed state of the server."""
