"""Nova's schemas of bodies and queries, by microversion."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from capo.simulator.cloud import Json
from capo.simulator.routing import Version
from capo.simulator.validation import many

NAME: Final[Json] = {"type": "string", "format": "name", "minLength": 1, "maxLength": 255}
UUID: Final[Json] = {"type": "string", "format": "uuid"}
TAG: Final[Json] = {"type": "string", "pattern": "^[^,/]*$", "minLength": 1, "maxLength": 60}
DESCRIPTION: Final[Json] = {"type": ["string", "null"], "minLength": 0, "maxLength": 255}
COUNT: Final[Json] = {"type": ["integer", "string"], "pattern": "^[0-9]*$", "minimum": 1, "minLength": 1}
FQDN: Final[Json] = {"type": "string", "pattern": "^[a-zA-Z0-9-._]*$", "minLength": 1, "maxLength": 255}
HOSTNAME: Final[Json] = {
    "type": "string",
    "pattern": "^[a-zA-Z0-9]+[a-zA-Z0-9-]*[a-zA-Z0-9]+$",
    "minLength": 2,
    "maxLength": 63,
}
TRUE_WORDS: Final = (True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes")
FALSE_WORDS: Final = (False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no")
BOOLEAN: Final[Json] = {"type": ["boolean", "string"], "enum": [*TRUE_WORDS, *FALSE_WORDS]}
DISK_CONFIG: Final[Json] = {"type": "string", "enum": ["AUTO", "MANUAL"]}
ADDRESS: Final[Json] = {"type": "string", "format": "ipv4"}
ADDRESS6: Final[Json] = {"type": "string", "format": "ipv6"}
METADATA: Final[Json] = {
    "type": "object",
    "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": {"type": "string", "maxLength": 255}},
    "additionalProperties": False,
}
HINTS: Final[Json] = {
    "type": "object",
    "properties": {
        "group": {"oneOf": [{"type": "array", "items": UUID}, UUID]},
        "different_host": {"oneOf": [UUID, {"type": "array", "items": UUID}]},
        "same_host": {"type": ["string", "array"], "items": UUID},
        "query": {"type": ["string", "object"]},
    },
    "additionalProperties": True,
}
POLICY: Final[Json] = {
    "type": "string",
    "enum": ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"],
}
MAX_TAGS: Final = 50


def body_of(name: str, properties: Json, required: tuple[str, ...] = (), *, is_strict: bool = True) -> Json:
    """Return the schema of a body with one object under its name."""
    inner: Json = {"type": "object", "properties": properties}
    if required:
        inner["required"] = list(required)
    inner["additionalProperties"] = False
    return {
        "type": "object",
        "properties": {name: inner},
        "required": [name],
        "additionalProperties": not is_strict,
    }


def _device(version: Version) -> Json:
    properties: Json = {
        "virtual_name": {"type": "string", "maxLength": 255},
        "volume_id": UUID,
        "snapshot_id": UUID,
        "image_id": UUID,
        "volume_size": {
            "type": ["integer", "string"],
            "pattern": "^[0-9]+$",
            "minimum": 1,
            "maximum": 0x7FFFFFFF,
        },
        "device_name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._/-]*$"},
        "delete_on_termination": BOOLEAN,
        "no_device": {},
        "connection_info": {"type": "string"},
        "source_type": {"type": "string", "enum": ["volume", "image", "snapshot", "blank"]},
        "uuid": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._-]*$"},
        "destination_type": {"type": "string", "enum": ["local", "volume"]},
        "guest_format": {"type": "string", "maxLength": 255},
        "device_type": {"type": "string", "maxLength": 255},
        "disk_bus": {"type": "string", "maxLength": 255},
        "boot_index": {"type": ["integer", "string", "null"], "pattern": "^-?[0-9]+$"},
    }
    if version == (2, 32) or version >= (2, 42):
        properties["tag"] = TAG
    if version >= (2, 67):
        properties["volume_type"] = {"type": ["string", "null"], "minLength": 0, "maxLength": 255}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _networks(version: Version) -> Json:
    properties: Json = {
        "fixed_ip": {"oneOf": [ADDRESS, ADDRESS6]},
        "port": {"type": ["string", "null"], "format": "uuid"},
        "uuid": UUID if version >= (2, 37) else {"type": "string"},
    }
    if (2, 32) <= version < (2, 37) or version >= (2, 42):
        properties["tag"] = TAG
    listed = {"type": "array", "items": {"type": "object", "properties": properties, "additionalProperties": False}}
    return {"oneOf": [listed, {"type": "string", "enum": ["none", "auto"]}]} if version >= (2, 37) else listed


@lru_cache(maxsize=128)
def create_server(version: Version) -> Json:
    """Return the schema of a POST of a server."""
    properties: Json = {
        "name": NAME,
        "imageRef": {"oneOf": [UUID, {"type": "string", "maxLength": 0}]},
        "flavorRef": {"type": ["string", "integer"], "minLength": 1},
        "adminPass": {"type": "string"},
        "metadata": METADATA,
        "networks": _networks(version),
        "OS-DCF:diskConfig": DISK_CONFIG,
        "accessIPv4": ADDRESS,
        "accessIPv6": ADDRESS6,
        "availability_zone": NAME,
        "block_device_mapping": {"type": "array", "items": _device(version)},
        "block_device_mapping_v2": {"type": "array", "items": _device(version)},
        "config_drive": BOOLEAN,
        "key_name": NAME,
        "min_count": COUNT,
        "max_count": COUNT,
        "return_reservation_id": BOOLEAN,
        "security_groups": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": NAME}, "additionalProperties": False},
        },
        "user_data": {"type": "string", "format": "base64", "maxLength": 65535},
    }
    properties |= _later_properties(version)
    required = ["name", "flavorRef"] + (["networks"] if version >= (2, 37) else [])
    return {
        "type": "object",
        "properties": {
            "server": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
            "os:scheduler_hints": HINTS,
            "OS-SCH-HNT:scheduler_hints": HINTS,
        },
        "required": ["server"],
        "additionalProperties": False,
    }


def _later_properties(version: Version) -> Json:
    """Return the properties of a POST of a server that microversions added, and those that later ones removed."""
    certificates = {"type": ["array", "null"], "items": {"type": "string"}, "uniqueItems": True}
    found: Json = {}
    if version < (2, 57):
        found["personality"] = {"type": "array"}
    if version >= (2, 19):
        found["description"] = DESCRIPTION
    if version >= (2, 52):
        found["tags"] = {"type": "array", "items": TAG, "maxItems": MAX_TAGS}
    if version >= (2, 63):
        found["trusted_image_certificates"] = certificates
    if version >= (2, 74):
        found |= {"host": FQDN, "hypervisor_hostname": FQDN}
    if version >= (2, 90):
        found["hostname"] = FQDN if version >= (2, 94) else HOSTNAME
    return found


@lru_cache(maxsize=128)
def update_server(version: Version) -> Json:
    """Return the schema of a PUT of a server."""
    properties: Json = {
        "name": NAME,
        "OS-DCF:diskConfig": DISK_CONFIG,
        "accessIPv4": ADDRESS,
        "accessIPv6": ADDRESS6,
    }
    if version >= (2, 19):
        properties["description"] = DESCRIPTION
    if version >= (2, 90):
        properties["hostname"] = FQDN if version >= (2, 94) else HOSTNAME
    return body_of("server", properties)


SORT_KEYS: Final = (
    "access_ip_v4",
    "access_ip_v6",
    "auto_disk_config",
    "availability_zone",
    "config_drive",
    "created_at",
    "display_description",
    "display_name",
    "host",
    "hostname",
    "image_ref",
    "instance_type_id",
    "kernel_id",
    "key_name",
    "launch_index",
    "launched_at",
    "locked_by",
    "node",
    "power_state",
    "progress",
    "project_id",
    "ramdisk_id",
    "root_device_name",
    "task_state",
    "terminated_at",
    "updated_at",
    "user_id",
    "uuid",
    "vm_state",
)
# Until 2.75 these were accepted as sort keys, without any effect.
IGNORED_SORT_KEYS: Final = (
    "architecture",
    "cell_name",
    "cleaned",
    "default_ephemeral_device",
    "default_swap_device",
    "deleted",
    "deleted_at",
    "disable_terminate",
    "ephemeral_gb",
    "ephemeral_key_uuid",
    "id",
    "key_data",
    "launched_on",
    "locked",
    "memory_mb",
    "os_type",
    "reservation_id",
    "root_gb",
    "shutdown_terminate",
    "user_data",
    "vcpus",
    "vm_mode",
)
_PLAIN: Final = (
    "user_id",
    "project_id",
    "tenant_id",
    "launch_index",
    "image_ref",
    "image",
    "vm_state",
    "task_state",
    "host",
    "sort_dir",
    "all_tenants",
    "soft_deleted",
    "deleted",
    "status",
    "uuid",
    "block_device_mapping",
    "services",
    "metadata",
    "system_metadata",
    "info_cache",
    "security_groups",
    "pci_devices",
)
_PATTERNS: Final = (
    "kernel_id",
    "ramdisk_id",
    "hostname",
    "key_name",
    "power_state",
    "node",
    "flavor",
    "reservation_id",
    "launched_at",
    "terminated_at",
    "availability_zone",
    "name",
    "display_name",
    "description",
    "display_description",
    "locked_by",
    "root_device_name",
    "config_drive",
    "access_ip_v4",
    "access_ip_v6",
    "auto_disk_config",
    "progress",
    "ip",
    "ip6",
    "created_at",
)


@lru_cache(maxsize=128)
def list_servers(version: Version) -> Json:
    """Return the schema of the query of a list of servers."""
    text, pattern = many({"type": "string"}), many({"type": "string", "format": "regex"})
    time = many({"type": "string", "format": "date-time"})
    number = many({"type": "string", "pattern": "^[0-9]*$", "minLength": 1, "minimum": 0})
    sortable: list[str] = [*SORT_KEYS]
    if version >= (2, 73):
        sortable.append("locked")
    if version < (2, 75):
        sortable += [key for key in IGNORED_SORT_KEYS if key not in sortable]
    properties: Json = {**dict.fromkeys(_PLAIN, text), **dict.fromkeys(_PATTERNS, pattern)}
    properties |= {
        "sort_key": many({"type": "string", "enum": sortable}),
        "changes-since": time,
        "limit": number,
        "marker": text,
    }
    if version >= (2, 26):
        properties |= dict.fromkeys(("tags", "tags-any", "not-tags", "not-tags-any"), pattern)
    if version >= (2, 66):
        properties["changes-before"] = time
    if version >= (2, 73):
        properties["locked"] = text
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": version < (2, 75),
        "patternProperties": {"^_": text},
    }


NOTHING: Final[Json] = {"type": "object", "properties": {}, "additionalProperties": False}


def truth(value: Any) -> bool:
    """Return the value of a word that the schema accepted as a boolean."""
    return value in TRUE_WORDS
