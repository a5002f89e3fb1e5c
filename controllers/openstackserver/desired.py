"""The OpenStack resources that an OpenStackServer's spec and resolved references describe; pure.

Source: docs/explanation/go-provider.md, G-23 to G-25.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.v1alpha1 import OpenStackServer
from api.v1alpha1.openstackserver import ResolvedServerSpec
from api.v1beta2.port import ResolvedPortSpec
from api.v1beta2.server import SchedulerHintAdditionalValue, VolumeAvailabilityZone
from capo import names
from capo.names import Stamp
from capo.openstack.port import WantedPort
from capo.openstack.server import BlockDevice, WantedServer
from capo.openstack.volume import WantedVolume
from controllers import roles


def port(resolved: ResolvedPortSpec, stamp: Stamp) -> WantedPort:
    """Return the request for a resolved port."""
    return WantedPort(
        stamp=stamp,
        name=resolved.name,
        description=resolved.description,
        network_id=resolved.network_id,
        fixed_ips=tuple((ip.subnet, ip.ip_address) for ip in resolved.fixed_ips),
        security_group_ids=resolved.security_groups,
        admin_state_up=resolved.admin_state_up,
        mac_address=resolved.mac_address,
        allowed_address_pairs=tuple((pair.ip_address, pair.mac_address) for pair in resolved.allowed_address_pairs),
        host_id=resolved.host_id,
        vnic_type=resolved.vnic_type,
        has_hw_offload=bool(resolved.profile and resolved.profile.ovs_hw_offload),
        has_trusted_vf=bool(resolved.profile and resolved.profile.trusted_vf),
        has_port_security=resolved.enable_port_security,
        propagates_uplink_status=resolved.propagate_uplink_status,
        value_specs=tuple((spec.key, spec.value) for spec in resolved.value_specs),
    )


def volumes(obj: OpenStackServer, image_id: str, owner: str) -> dict[str, WantedVolume]:
    """Return the Cinder volumes by role: the root volume first, then additional devices in the order of the spec."""
    spec, name = obj.spec, obj.metadata.name
    found: dict[str, WantedVolume] = {}
    if spec.root_volume:
        root = spec.root_volume
        role = roles.volume(None)
        found[role] = WantedVolume(
            stamp=Stamp(owner, role),
            name=names.volume(name, "root"),
            description=names.volume_description(name, "root"),
            size_gib=root.size_gib,
            image_id=image_id,
            volume_type=root.type or None,
            availability_zone=_zone(root.availability_zone, spec.availability_zone),
        )
    for index, device in enumerate(spec.additional_block_devices):
        if device.storage.type == "Volume":
            role = roles.volume(index)
            options = device.storage.volume
            found[role] = WantedVolume(
                stamp=Stamp(owner, role),
                name=names.volume(name, device.name),
                description=names.volume_description(name, device.name),
                size_gib=device.size_gib,
                image_id=None,
                volume_type=(options.type or None) if options else None,
                availability_zone=_zone(options.availability_zone if options else None, spec.availability_zone),
            )
    return found


def volume_roles(obj: OpenStackServer) -> list[str]:
    """Return the roles of the Cinder volumes; disks on the host have none (W-25)."""
    root = [roles.volume(None)] if obj.spec.root_volume else []
    devices = enumerate(obj.spec.additional_block_devices)
    return [*root, *(roles.volume(index) for index, device in devices if device.storage.type == "Volume")]


def volume_names(obj: OpenStackServer) -> set[str]:
    """Return the names of the Cinder volumes."""
    name, devices = obj.metadata.name, obj.spec.additional_block_devices
    root = {names.volume(name, "root")} if obj.spec.root_volume else set()
    return root | {names.volume(name, device.name) for device in devices if device.storage.type == "Volume"}


def _zone(wanted: VolumeAvailabilityZone | None, machine_zone: str | None) -> str | None:
    if wanted is None:
        return None
    return machine_zone if wanted.from_ == "Machine" else wanted.name


def block_devices(obj: OpenStackServer, image_id: str, volume_ids: Mapping[str, str]) -> tuple[BlockDevice, ...]:
    """Return Nova's block devices: the root device first, each additional one tagged with its name.

    Args:
        volume_ids: ids of the volumes by role.
    """
    root = volume_ids.get(roles.volume(None))
    devices = [BlockDevice.volume(root, boot_index=0) if root else BlockDevice.image(image_id)]
    for index, device in enumerate(obj.spec.additional_block_devices):
        volume_id = volume_ids.get(roles.volume(index))
        devices.append(
            BlockDevice.volume(volume_id, boot_index=-1, tag=device.name)
            if volume_id
            else BlockDevice.blank(device.size_gib, tag=device.name)
        )
    return tuple(devices)


@dataclass(frozen=True)
class Parts:
    """What a server is created from; all of it exists already.

    Args:
        volume_ids: ids of the volumes by role.
        user_data: base64, empty for none.
    """

    port_ids: Sequence[str]
    volume_ids: Mapping[str, str]
    user_data: str


def server(obj: OpenStackServer, resolved: ResolvedServerSpec, *, stamp: Stamp, parts: Parts) -> WantedServer:
    """Return the Nova server, with all references resolved to ids."""
    spec = obj.spec
    return WantedServer(
        stamp=stamp,
        name=obj.metadata.name,
        flavor_id=resolved.flavor_id,
        image_id="" if roles.volume(None) in parts.volume_ids else resolved.image_id,
        port_ids=tuple(parts.port_ids),
        block_devices=block_devices(obj, resolved.image_id, parts.volume_ids),
        availability_zone=spec.availability_zone or None,
        user_data=parts.user_data,
        tags=spec.tags,
        metadata={entry.key: entry.value for entry in spec.server_metadata},
        has_config_drive=bool(spec.config_drive),
        key_name=spec.ssh_key_name or None,
        server_group_id=resolved.server_group_id or None,
        scheduler_hints={hint.name: _hint(hint.value) for hint in spec.scheduler_hint_additional_properties},
    )


def _hint(value: SchedulerHintAdditionalValue) -> Any:
    return {"Bool": value.bool_, "Number": value.number, "String": value.string}[value.type]
