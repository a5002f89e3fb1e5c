"""Parts of a server, where they differ from v1beta2."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from api.model import Model
from api.schema import CloudText, ObjectName, Schema
from api.v1beta2 import server as newer


class ResourceReference(newer.ResourceReference):
    """An object of the OpenStack Resource Controller in the same namespace."""

    name: ObjectName
    """Name of the object."""


class ImageParam(newer.ImageParam):
    """An image, by id, by filter, or by an Image object."""

    image_ref: ResourceReference | None = None
    """Image object of the OpenStack Resource Controller; the server waits until it is available. Either this or `id` or
    `filter` is set."""


class ServerMetadata(Model):
    """One entry of the metadata that Nova passes to the guest."""

    key: Annotated[str, Schema(max_length=255)]
    """Key, at most 255 characters."""
    value: Annotated[str, Schema(max_length=255)]
    """Value, at most 255 characters."""


class RootVolume(newer.BlockDeviceVolume):
    """A volume that the server boots from, created from its image."""

    size_gib: Annotated[int, Schema(minimum=1)]
    """Size in GiB, at least 1; must hold the image. Cannot change."""


class BlockDeviceStorage(newer.BlockDeviceStorage):
    """Storage of a block device."""

    type: str
    """`Local`, an ephemeral disk on the host; `Volume`, a Cinder volume that is deleted with the server. Cannot change.
    """


class AdditionalBlockDevice(Model):
    """One more disk of a server."""

    crd: ClassVar[Schema] = newer.AdditionalBlockDevice.crd

    name: CloudText
    """Name of the device: its tag in the guest's metadata, and the end of its volume's name. `root` is taken.
    Cannot change."""
    size_gib: Annotated[int, Schema(minimum=1)]
    """Size in GiB, at least 1. Cannot change."""
    storage: BlockDeviceStorage
    """Storage of the device. Cannot change."""


class SchedulerHintAdditionalValue(newer.SchedulerHintAdditionalValue):
    """The value of a hint; it is in the field that `type` names."""

    type: Literal["Bool", "Number", "String"]
    """The field that has the value: Bool, Number or String. Cannot change."""
    number: int | None = None
    """The value when `type` is Number, else absent; an integer. Default: none. Cannot change."""


class SchedulerHintAdditionalProperty(newer.SchedulerHintAdditionalProperty):
    """One hint to Nova's scheduler."""

    value: SchedulerHintAdditionalValue
    """Value of the hint. Cannot change."""
