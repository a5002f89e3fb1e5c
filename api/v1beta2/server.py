"""Parts of a server: flavor, image, volumes, groups and hints."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from api.model import Model
from api.schema import (
    ANY_OF,
    ONE_OF,
    CloudName,
    CloudText,
    Defaulted,
    Int32,
    NonEmpty,
    NonEmptyObjectName,
    PositiveInt32,
    Rule,
    Schema,
    SetList,
    Uuid,
)


class FlavorFilter(Model):
    """A query for flavors."""

    crd: ClassVar[Schema] = ANY_OF

    name: CloudText | None = None
    """Exact name of the flavor, which is required. Default: none."""


class FlavorParam(Model):
    """A flavor, by id or by name."""

    crd: ClassVar[Schema] = ONE_OF

    id: CloudText | None = None
    """Id of the flavor, which need not be a UUID; either this or `filter` is set."""
    filter: FlavorFilter | None = None
    """Looks the flavor up by its name; either this or `id` is set."""


class ImageFilter(Model):
    """A query for images; every field that is set must match."""

    crd: ClassVar[Schema] = ANY_OF

    name: CloudText | None = None
    """Exact name of the image; an empty one matches any. Default: any."""
    tags: SetList[CloudText] = ()
    """Tags that the image must carry, all of them. Default: any tags."""


class ResourceReference(Model):
    """An object of the OpenStack Resource Controller in the same namespace."""

    name: NonEmptyObjectName
    """Name of the object."""


class ImageParam(Model):
    """An image, by id, by filter, or by an Image object."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the image; either this or `filter` or `imageRef` is set."""
    filter: ImageFilter | None = None
    """Query that exactly one image must match; either this or `id` or `imageRef` is set."""
    image_ref: ResourceReference | None = None
    """Image object of the OpenStack Resource Controller; the server waits until it is available. Either this or `id` or
    `filter` is set."""


class ServerMetadata(Model):
    """One entry of the metadata that Nova passes to the guest."""

    key: Annotated[str, Schema(min_length=1, max_length=255)]
    """Key, 1 to 255 characters."""
    value: Annotated[str, Schema(min_length=1, max_length=255)]
    """Value, 1 to 255 characters."""


class VolumeAvailabilityZone(Model):
    """The availability zone of a volume, which is Cinder's and need not be one of Nova's."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)",
                "name is required when from is 'Name' or default",
            ),
        )
    )

    from_: Defaulted[Literal["Name", "Machine"]] = "Name"
    """Where the zone comes from: `Name`, the field `name`; `Machine`, the failure domain of the machine, no zone if it
    has none. Default: Name. Cannot change.
    """
    name: Annotated[str, Schema(min_length=1, max_length=255, pattern="^[^ ]+$")] | None = None
    """Name of the zone, without spaces; required with `Name`, forbidden with `Machine`. Default: none. Cannot change.
    """


class BlockDeviceVolume(Model):
    """Options of a Cinder volume."""

    type: CloudText = ""
    """Volume type. Default: that of the cloud. Cannot change."""
    availability_zone: VolumeAvailabilityZone | None = None
    """Availability zone of the volume. Default: Cinder chooses. Cannot change."""


class RootVolume(BlockDeviceVolume):
    """A volume that the server boots from, created from its image."""

    size_gib: PositiveInt32
    """Size in GiB, at least 1; must hold the image. Cannot change."""


class BlockDeviceStorage(Model):
    """Storage of a block device."""

    type: Annotated[str, Schema(enum=("Local", "Volume"))]
    """`Local`, an ephemeral disk on the host; `Volume`, a Cinder volume that is deleted with the server. Cannot change.
    """
    volume: BlockDeviceVolume | None = None
    """Options for a Cinder volume; without effect with `Local`. Default: those of the cloud. Cannot change."""


class AdditionalBlockDevice(Model):
    """One more disk of a server."""

    crd: ClassVar[Schema] = Schema(rules=(Rule("self.name != 'root'", "root is the name of the disk to boot from"),))

    name: CloudName
    """Name of the device: its tag in the guest's metadata, and the end of its volume's name. `root` is taken.
    Cannot change."""
    size_gib: PositiveInt32
    """Size in GiB, at least 1. Cannot change."""
    storage: BlockDeviceStorage
    """Storage of the device. Cannot change."""


class ServerGroupFilter(Model):
    """A query for server groups."""

    crd: ClassVar[Schema] = ANY_OF

    name: CloudText | None = None
    """Exact name of the server group, which is required. Default: none."""


class ServerGroupParam(Model):
    """A server group, by id or by filter."""

    crd: ClassVar[Schema] = ONE_OF

    id: Uuid | None = None
    """UUID of the server group; either this or `filter` is set."""
    filter: ServerGroupFilter | None = None
    """Query that exactly one server group must match; either this or `id` is set."""


class SchedulerHintAdditionalValue(Model):
    """The value of a hint: one of the three fields, selected by `type`."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "has(self.type) && self.type == 'Bool' ? has(self.bool) : !has(self.bool)",
                "bool is required when type is Bool, and forbidden otherwise",
            ),
            Rule(
                "has(self.type) && self.type == 'Number' ? has(self.number) : !has(self.number)",
                "number is required when type is Number, and forbidden otherwise",
            ),
            Rule(
                "has(self.type) && self.type == 'String' ? has(self.string) : !has(self.string)",
                "string is required when type is String, and forbidden otherwise",
            ),
        )
    )

    type: Literal["Bool", "Number", "String"]
    """The field that has the value: Bool, Number or String. Cannot change."""
    bool_: bool | None = None
    """The value when `type` is Bool, else absent. Default: none. Cannot change."""
    number: Int32 | None = None
    """The value when `type` is Number, else absent; an integer. Default: none. Cannot change."""
    string: Annotated[str, Schema(min_length=1, max_length=255)] | None = None
    """The value when `type` is String, else absent; 1 to 255 characters. Default: none. Cannot change."""


class SchedulerHintAdditionalProperty(Model):
    """One hint to Nova's scheduler."""

    name: NonEmpty
    """Name of the hint. Cannot change."""
    value: SchedulerHintAdditionalValue
    """Value of the hint. Cannot change."""
