"""The life of volumes: created, reserved, attached, detached, deleted. Nova calls this module for its own volumes.

A volume is stored as Cinder shows it, with `host` and the image's metadata beside; links and the rest that depends on
the request are added in `volumes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.glance import service as glance
from capo.simulator.routing import Fault

DEFAULT_TYPE: Final = "__DEFAULT__"
DELETABLE: Final = frozenset({"available", "error", "error_restoring", "error_extending", "error_managing"})
NOT_DELETABLE: Final = (
    "Invalid volume: Volume status must be available or error or error_restoring or error_extending or "
    "error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or "
    "be disassociated from snapshots after volume transfer."
)


@dataclass(frozen=True, slots=True)
class WantedVolume:
    """The parameters of a new volume; `create_volume` resolves references."""

    project_id: str
    user_id: str
    size_gib: int
    name: str | None = None
    description: str | None = None
    type_name: str | None = None
    zone: str | None = None
    image_id: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    is_multiattach: bool = False


def stamp(cloud: Cloud) -> str:
    """Return the time as Cinder and parts of Nova format it."""
    return f"{cloud.now():%Y-%m-%dT%H:%M:%S}.000000"


def volumes(cloud: Cloud) -> dict[str, Json]:
    """Return all volumes by id."""
    return cloud.table("volume", "volumes")


def find_volume(cloud: Cloud, volume_id: str, project_id: str) -> Json | None:
    """Return a volume of the project."""
    volume = volumes(cloud).get(volume_id)
    return volume if volume is not None and volume["os-vol-tenant-attr:tenant_id"] == project_id else None


def find_type(cloud: Cloud, name_or_id: str) -> Json | None:
    """Return a volume type by id or name."""
    types = cloud.table("volume", "types")
    return types.get(name_or_id) or next((kind for kind in types.values() if kind["name"] == name_or_id), None)


def create_volume(cloud: Cloud, wanted: WantedVolume) -> Json:
    """Start creating a volume and return it.

    Raises:
        Fault: Unknown type, zone or image, or over quota, in Cinder's words.
    """
    kind = find_type(cloud, wanted.type_name or DEFAULT_TYPE)
    if kind is None:
        raise Fault(404, f"Volume type with name {wanted.type_name} could not be found.", "itemNotFound")
    zone = wanted.zone or cloud.config.zones[0]
    if zone not in cloud.config.zones:
        raise Fault(400, f"Availability zone '{zone}' is invalid.", "badRequest")
    image = glance.find_image(cloud, wanted.image_id, wanted.project_id) if wanted.image_id else None
    if wanted.image_id and image is None:
        raise Fault(400, "Invalid image identifier or unable to access requested image.", "badRequest")
    _check_image_fits(image, wanted.size_gib)
    _check_quota(cloud, wanted)
    volume = _new_volume(cloud, wanted, kind, zone)
    if image is not None:
        volume["volume_image_metadata"] = _image_metadata(image)
    volumes(cloud)[volume["id"]] = volume
    cloud.after(cloud.timings.volume_create_s, lambda: _become_available(cloud, volume["id"]))
    return volume


def _check_image_fits(image: Json | None, size_gib: int) -> None:
    if image is None:
        return
    if image["status"] != "active":
        raise Fault(400, f"Invalid input received: Image {image['id']} is not active.", "badRequest")
    if size_gib < image["min_disk"]:
        message = f"Volume size {size_gib}GB cannot be smaller than the image minDisk size {image['min_disk']}GB."
        raise Fault(400, f"Invalid input received: {message}", "badRequest")


def usage(cloud: Cloud, project_id: str) -> dict[str, int]:
    """Return the number of volumes and gibibytes of a project, in all and by type."""
    used: dict[str, int] = {"volumes": 0, "gigabytes": 0}
    for volume in volumes(cloud).values():
        if volume["os-vol-tenant-attr:tenant_id"] != project_id:
            continue
        for suffix in ("", f"_{volume['volume_type']}"):
            used[f"volumes{suffix}"] = used.get(f"volumes{suffix}", 0) + 1
            used[f"gigabytes{suffix}"] = used.get(f"gigabytes{suffix}", 0) + volume["size"]
    return used


def _check_quota(cloud: Cloud, wanted: WantedVolume) -> None:
    used = usage(cloud, wanted.project_id)
    largest = cloud.quota("volume", wanted.project_id, "per_volume_gigabytes")
    if 0 <= largest < wanted.size_gib:
        message = f"Requested volume size {wanted.size_gib}G is larger than maximum allowed limit {largest}G."
        raise Fault(413, f"VolumeSizeExceedsLimit: {message}", "overLimit")
    for suffix in ("", f"_{wanted.type_name or DEFAULT_TYPE}"):
        size_limit = cloud.quota("volume", wanted.project_id, f"gigabytes{suffix}")
        consumed = used.get(f"gigabytes{suffix}", 0)
        if 0 <= size_limit < consumed + wanted.size_gib:
            message = (
                f"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes{suffix} "
                f"quota. Requested {wanted.size_gib}G, quota is {size_limit}G and {consumed}G has been consumed."
            )
            raise Fault(413, message, "overLimit")
        limit = cloud.quota("volume", wanted.project_id, f"volumes{suffix}")
        if 0 <= limit < used.get(f"volumes{suffix}", 0) + 1:
            message = f"Maximum number of volumes allowed ({limit}) exceeded for quota 'volumes{suffix}'."
            raise Fault(413, f"VolumeLimitExceeded: {message}", "overLimit")


def _new_volume(cloud: Cloud, wanted: WantedVolume, kind: Json, zone: str) -> Json:
    return {
        "id": cloud.new_id(),
        "status": "creating",
        "size": wanted.size_gib,
        "availability_zone": zone,
        "created_at": stamp(cloud),
        "updated_at": None,
        "name": wanted.name,
        "description": wanted.description,
        "volume_type": kind["name"],
        "snapshot_id": None,
        "source_volid": None,
        "metadata": dict(wanted.metadata),
        "user_id": wanted.user_id,
        "bootable": "false",
        "encrypted": False,
        "replication_status": None,
        "consistencygroup_id": None,
        "multiattach": wanted.is_multiattach,
        "attachments": [],
        "os-vol-tenant-attr:tenant_id": wanted.project_id,
    }


def _image_metadata(image: Json) -> Json:
    standard = ("checksum", "container_format", "disk_format", "min_disk", "min_ram", "size")
    own = {key: value for key, value in image.items() if key.startswith(("os_type", "os_distro", "owner_specified."))}
    return {
        **own,
        "image_id": image["id"],
        "image_name": image["name"],
        **{key: str(image[key]) for key in standard},
    }


def _become_available(cloud: Cloud, volume_id: str) -> None:
    volume = volumes(cloud).get(volume_id)
    if volume is not None and volume["status"] == "creating":
        touch(cloud, volume, status="available")
        volume["bootable"] = "true" if "volume_image_metadata" in volume else "false"


def touch(cloud: Cloud, volume: Json, **changes: Any) -> None:
    """Change a volume and update its time."""
    volume.update(changes, updated_at=stamp(cloud))


def reserve(cloud: Cloud, volume: Json) -> None:
    """Reserve a volume for a server.

    Raises:
        Fault: 400 in the words of Cinder's attachment API.
    """
    status = volume["status"]
    if status in {"available", "downloading"} or (status == "in-use" and volume["multiattach"]):
        touch(cloud, volume, status="reserved" if status != "in-use" else status)
        return
    if status == "error":
        message = (
            "Volume attachments can not be created if the volume is in an error state. "
            f"The Volume {volume['id']} currently has a status of: error "
        )
    else:
        message = (
            f"Volume {volume['id']} status must be available or downloading to reserve, "
            f"but the current status is {status}."
        )
    raise Fault(400, f"Invalid input received: Invalid volume: {message}", "badRequest")


def attach(cloud: Cloud, volume: Json, *, server_id: str, device: str) -> str:
    """Attach a volume and return the attachment's id."""
    attachment_id = cloud.new_id()
    volume["attachments"].append(
        {
            "id": volume["id"],
            "attachment_id": attachment_id,
            "volume_id": volume["id"],
            "server_id": server_id,
            "host_name": None,
            "device": device,
            "attached_at": stamp(cloud),
        }
    )
    touch(cloud, volume, status="in-use")
    return attachment_id


def release(cloud: Cloud, volume_id: str, *, server_id: str) -> None:
    """Detach a volume from a server, or cancel its reservation."""
    volume = volumes(cloud).get(volume_id)
    if volume is None:
        return
    volume["attachments"] = [entry for entry in volume["attachments"] if entry["server_id"] != server_id]
    if volume["status"] in {"in-use", "reserved", "attaching", "detaching"} and not volume["attachments"]:
        touch(cloud, volume, status="available")


def delete_volume(cloud: Cloud, volume: Json) -> None:
    """Start deleting a volume.

    Raises:
        Fault: 400 while it is in use or in transition.
    """
    if volume["status"] not in DELETABLE or volume["attachments"]:
        raise Fault(400, NOT_DELETABLE, "badRequest")
    touch(cloud, volume, status="deleting")
    cloud.after(cloud.timings.volume_delete_s, lambda: _forget(cloud, volume["id"]))


def _forget(cloud: Cloud, volume_id: str) -> None:
    volume = volumes(cloud).get(volume_id)
    if volume is not None and volume["status"] == "deleting":
        del cloud.table("volume", "volumes")[volume_id]
