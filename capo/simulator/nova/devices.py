"""The block devices of a new server: its boot volume and other volumes, and Nova's refusals."""

from __future__ import annotations

from typing import Any, Final

from capo.simulator.cinder import state
from capo.simulator.cloud import Json
from capo.simulator.glance import service as glance
from capo.simulator.nova.schema import truth
from capo.simulator.nova.service import bad_request
from capo.simulator.routing import Fault, Request

INVALID: Final = "Block Device Mapping is Invalid: "
BAD_SEQUENCE: Final = (
    f"{INVALID}Boot sequence for the instance and image/block device mapping combination is not valid."
)
EPHEMERAL_TOO_LARGE: Final = (
    "Ephemeral disks requested are larger than the instance type allows. If no size is given in one block device "
    "mapping, flavor ephemeral size will be used."
)
GIB: Final = 1024**3


def devices_of(wanted: Json) -> list[Json]:
    """Return the volumes of a POST, the boot volume first.

    Raises:
        Fault: 400 for an invalid combination.
    """
    image_id = wanted.get("imageRef", "")
    found = [_device(entry, image_id) for entry in wanted.get("block_device_mapping_v2", [])]
    return sorted((device for device in found if device["kind"] != "local"), key=_boot_order)


def _boot_order(device: Json) -> int:
    index: int = device["boot_index"]
    return index if index >= 0 else 1000


def _device(entry: Json, image_id: str) -> Json:
    source = entry.get("source_type", "blank")
    target = entry.get("destination_type") or ("volume" if source in {"volume", "snapshot"} else "local")
    boot_index = -1 if entry.get("boot_index") is None else int(entry["boot_index"])
    kind = source if target == "volume" else "local"
    if source != "blank" and not entry.get("uuid"):
        raise bad_request(f"{INVALID}Missing device UUID.")
    if source == "image" and target == "local" and (boot_index != 0 or not image_id):
        raise bad_request(f"{INVALID}Mapping image to local is not supported.")
    size = entry.get("volume_size")
    if source == "image" and target == "volume" and size is None:
        raise bad_request("Images with destination_type 'volume' need to have a non-zero size specified")
    if source == "blank" and target == "volume" and size is None:
        raise bad_request("Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size")
    return {
        "kind": kind,
        "source": source,
        "boot_index": boot_index,
        "volume_id": entry["uuid"] if kind == "volume" else None,
        "image_id": entry["uuid"] if kind == "image" else None,
        "snapshot_id": entry["uuid"] if kind == "snapshot" else None,
        "size_gib": int(size) if size is not None else 0,
        "volume_type": entry.get("volume_type"),
        "delete_on_termination": truth(entry.get("delete_on_termination", False)),
        "tag": entry.get("tag"),
        "is_own": False,
    }


def check_devices(request: Request, devices: list[Json]) -> None:
    """Refuse volumes that do not exist, or a boot volume that is not bootable; before quotas are checked.

    Raises:
        Fault: 400.
    """
    for device in devices:
        if device["volume_id"] is None:
            continue
        volume = state.find_volume(request.cloud, device["volume_id"], request.project_id)
        is_root = device["boot_index"] == 0
        if volume is None:
            unknown = f"Volume {device['volume_id']} could not be found."
            raise bad_request(f"{INVALID}failed to get volume {device['volume_id']}." if is_root else unknown)
        if is_root and volume["bootable"] != "true":
            raise bad_request(f"Block Device {volume['id']} is not bootable.")


def reserve_devices(request: Request, wanted: Json, flavor: Json, devices: list[Json]) -> None:
    """Reserve the existing volumes, and refuse an invalid combination of devices.

    What was reserved before a refusal stays reserved, as with Nova: its owner has to release it.

    Raises:
        Fault: 400, with Cinder's reason where it is Cinder that refuses.
    """
    _check_sequence(wanted, devices)
    for device in devices:
        _check_source(request, device)
        if device["volume_id"] is not None:
            _reserve(request, device["volume_id"])
    local_gib = sum(
        int(entry.get("volume_size") or 0)
        for entry in wanted.get("block_device_mapping_v2", [])
        if entry.get("source_type") == "blank" and entry.get("destination_type", "local") == "local"
    )
    if local_gib > flavor["ephemeral"]:
        raise bad_request(EPHEMERAL_TOO_LARGE)


def _check_sequence(wanted: Json, devices: list[Json]) -> None:
    indexes = sorted(device["boot_index"] for device in devices if device["boot_index"] >= 0)
    if not wanted.get("imageRef") and 0 not in indexes:
        raise bad_request(BAD_SEQUENCE)
    start = 0 if 0 in indexes else 1
    if indexes != list(range(start, start + len(indexes))):
        raise bad_request(BAD_SEQUENCE)


def _check_source(request: Request, device: Json) -> None:
    cloud, project_id = request.cloud, request.project_id
    kind = device["volume_type"]
    if kind is not None and state.find_type(cloud, kind) is None:
        raise bad_request(f"Volume type {kind} could not be found.")
    if device["snapshot_id"] is not None:
        raise bad_request(f"Snapshot {device['snapshot_id']} could not be found.")
    if device["image_id"] is not None:
        image = glance.find_image(cloud, device["image_id"], project_id)
        if image is None:
            raise bad_request(f"{INVALID}failed to get image {device['image_id']}.")
        _check_size(image, device["size_gib"])


def _check_size(image: Json, size_gib: int) -> None:
    if size_gib < image["min_disk"]:
        raise bad_request(
            "Volume is smaller than the minimum size specified in image metadata. Volume size is "
            f"{size_gib * GIB} bytes, minimum size is {image['min_disk'] * GIB} bytes."
        )


def _reserve(request: Request, volume_id: str) -> None:
    try:
        state.reserve(request.cloud, state.volumes(request.cloud)[volume_id])
    except Fault as fault:
        reason = f"{fault.message} (HTTP 400) (Request-ID: {request.request_id})"
        raise bad_request(f"Invalid volume: {reason}") from fault


def image_properties(image: Json) -> dict[str, Any]:
    """Return the properties of an image that servers show."""
    known = ("os_type", "os_distro", "architecture", "vm_mode", "img_", "hw_")
    return {key: value for key, value in image.items() if key.startswith(known)}
