"""Nova servers.

Source: Compute API, "Servers"; tags in the create since microversion 2.52.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from capo.errors import InvalidSpecError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import view
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import NOVA

MAX_TAGS: Final = 50
MAX_USER_DATA: Final = 65535
"""Characters of user data in base64 (Compute API, "Create Server", ``user_data``)."""
_MAX_TAG: Final = 60
_MAX_TEXT: Final = 255
_KEY: Final = re.compile(r"[a-zA-Z0-9\-_:. ]{1,255}")


class AttachedVolume(view.View):
    """A volume of a server."""

    id = view.text("id")
    _deleted_with_server = view.flag("delete_on_termination")

    @property
    def is_deleted_with_server(self) -> bool:
        """Whether Nova deletes it with the server; a Nova that does not say so was asked for it at the create."""
        return self._deleted_with_server is not False


class Server(view.View):
    """A server as Nova shows it; one whose cell is down lacks most fields.

    Source: Compute API, "Show Server Details".
    """

    id = view.text("id")
    name = view.text("name")
    status = view.text("status")
    task_state = view.text("OS-EXT-STS:task_state")  # such as "deleting"
    image_id = view.optional_text("image", "id")  # None if it boots from a volume
    flavor_name = view.optional_text("flavor", "original_name")
    created = view.optional_text("created")
    launched_at = view.optional_text("OS-SRV-USG:launched_at")  # None if it never had a host
    host_id = view.optional_text("hostId")  # a hash of project and host
    availability_zone = view.optional_text("OS-EXT-AZ:availability_zone")
    fault_message = view.text("fault", "message")
    fault_code = view.number("fault", "code")
    fault_created = view.optional_text("fault", "created")
    addresses = view.optional_mapping("addresses")  # by network; this and the next ones are None if the cell is down
    metadata = view.optional_mapping("metadata")
    tags = view.optional_texts("tags")
    volumes = view.optional_views(AttachedVolume, "os-extended-volumes:volumes_attached")

    def being_deleted(self) -> Body:
        """Return the body that Nova shows while it deletes the server."""
        return {**self.body, "OS-EXT-STS:task_state": "deleting"}


@dataclass(frozen=True)
class BlockDevice:
    """One entry of ``block_device_mapping_v2``; created by the functions below.

    Args:
        boot_index: 0 for the device that the server boots from, -1 for others.
        tag: name by which the guest finds the device; None for none.
    """

    source_type: str
    destination_type: str
    boot_index: int
    uuid: str | None = None
    size_gib: int | None = None
    tag: str | None = None

    @classmethod
    def image(cls, image_id: str) -> BlockDevice:
        """Return a root disk on the host, copied from an image."""
        return cls("image", "local", 0, uuid=image_id)

    @classmethod
    def volume(cls, volume_id: str, *, boot_index: int, tag: str | None = None) -> BlockDevice:
        """Return an existing volume; Nova deletes it with the server."""
        return cls("volume", "volume", boot_index, uuid=volume_id, tag=tag)

    @classmethod
    def blank(cls, size_gib: int, *, tag: str) -> BlockDevice:
        """Return an empty disk on the host."""
        return cls("blank", "local", -1, size_gib=size_gib, tag=tag)

    def request(self) -> Body:
        """Return the entry as it is sent."""
        optional = {"uuid": self.uuid, "volume_size": self.size_gib, "tag": self.tag}
        return {
            "source_type": self.source_type,
            "destination_type": self.destination_type,
            "boot_index": self.boot_index,
            "delete_on_termination": True,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True)
class WantedServer:
    """A server to create; everything that it refers to exists.

    Existing servers are never changed: Machines are immutable.

    Args:
        image_id: empty if it boots from a volume.
        user_data: base64, empty for none.
        tags: the user's; the stamp is added.
        scheduler_hints: the user's; the server group's hint is added unless they contain one.
    """

    stamp: Stamp
    name: str
    flavor_id: str
    image_id: str
    port_ids: Sequence[str]
    block_devices: Sequence[BlockDevice]
    availability_zone: str | None = None
    user_data: str = ""
    tags: Sequence[str] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    has_config_drive: bool = False
    key_name: str | None = None
    server_group_id: str | None = None
    scheduler_hints: Mapping[str, Any] = field(default_factory=dict)


def create(cloud: Cloud, wanted: WantedServer) -> Body:
    """Create a server; return Nova's answer, which contains little more than the id.

    This does not call :func:`check`: callers that want its result before the create call it themselves.
    """
    body = request(wanted)
    answer = cloud.post("compute", "/servers", json=body, microversion=NOVA)["server"]
    return {
        "id": answer["id"],
        "name": wanted.name,
        "status": "BUILD",
        "tags": body["server"]["tags"],
        "addresses": {},
        "metadata": dict(wanted.metadata),
    }


def delete(cloud: Cloud, server_id: str) -> None:
    """Delete a server. Asynchronous and idempotent."""
    cloud.remove("compute", f"/servers/{server_id}", microversion=NOVA)


def force_delete(cloud: Cloud, server_id: str) -> None:
    """Delete a server that Nova only marked as deleted (soft-delete).

    Source: Compute API, "Force-Delete Server"; ``reclaim_instance_interval`` of nova.conf.
    """
    cloud.post("compute", f"/servers/{server_id}/action", json={"forceDelete": None}, microversion=NOVA)


def set_metadata(cloud: Cloud, server_id: str, values: Mapping[str, str]) -> dict[str, str]:
    """Set keys of a server's metadata, keeping other keys; return all of it.

    Source: Compute API, "Create or Update Metadata Items".
    """
    answer = cloud.post("compute", f"/servers/{server_id}/metadata", json={"metadata": dict(values)}, microversion=NOVA)
    return {str(key): str(value) for key, value in answer["metadata"].items()}


def add_tag(cloud: Cloud, server_id: str, tag: str) -> None:
    """Add a tag to a server, which may have it.

    Source: Compute API, "Add a Single Tag".
    """
    cloud.put("compute", f"/servers/{server_id}/tags/{quote(tag, safe='')}", microversion=NOVA)


def failed_request_id(cloud: Cloud, server_id: str, *, since: str) -> str | None:
    """Return the id of the failed request, None if Nova has none; it is in the logs of all services.

    Args:
        since: time of the fault, so that Nova is asked about each fault once a minute at most.

    Source: Compute API, "Servers actions": the newest action comes first, one that failed has the message ``Error``.
    """
    actions: list[Body] = cloud.lookups.get(("actions", server_id, since), lambda: _actions(cloud, server_id))
    failed = [action for action in actions if action.get("message")]
    return next((action["request_id"] for action in (*failed, *actions)), None)


def was_rebuilt(cloud: Cloud, server_id: str, *, since: str) -> bool:
    """Return whether a rebuild of a server was begun at a time or later; a failed one does not count.

    Args:
        since: a time as returned by Nova, such as ``OS-SRV-USG:launched_at``; Nova is asked once a minute at most.

    Source: Compute API, "Servers actions"; nova/compute/instance_actions.py for what the actions are called.
    """
    actions: list[Body] = cloud.lookups.get(("rebuilds", server_id, since), lambda: _actions(cloud, server_id))
    rebuilds = (action for action in actions if action["action"] == "rebuild" and not action.get("message"))
    return any(str(action["start_time"]) >= since for action in rebuilds)


def _actions(cloud: Cloud, server_id: str) -> list[Body]:
    path = f"/servers/{server_id}/os-instance-actions"
    return cloud.list_all("compute", path, "instanceActions", microversion=NOVA)


def request(wanted: WantedServer) -> Body:
    """Return the body of the create."""
    server = {
        "name": wanted.name,
        "imageRef": wanted.image_id,
        "flavorRef": wanted.flavor_id,
        "networks": [{"port": port_id} for port_id in wanted.port_ids],
        "block_device_mapping_v2": [device.request() for device in wanted.block_devices],
        "user_data": wanted.user_data or None,
        "tags": _tags(wanted),
        "metadata": dict(wanted.metadata),
        "config_drive": wanted.has_config_drive,
        "availability_zone": wanted.availability_zone,
        "key_name": wanted.key_name,
    }
    sent = {name: value for name, value in server.items() if value is not None and value != {}}
    group = {"group": wanted.server_group_id} if wanted.server_group_id else {}
    hints = {**group, **wanted.scheduler_hints}
    return {"server": sent, **({"os:scheduler_hints": hints} if hints else {})}


def _tags(wanted: WantedServer) -> list[str]:
    return list(dict.fromkeys([*wanted.tags, str(wanted.stamp)]))


def check(wanted: WantedServer) -> None:
    """Raise if Nova would refuse the server for the size or the characters of its fields; pure.

    User data is checked by the code that reads it, which knows its source.

    Raises:
        InvalidSpecError: Nova would refuse it; all invalid fields are named.
    """
    wrong = [*_wrong_tags(wanted), *_wrong_texts(wanted)]
    if wrong:
        raise InvalidSpecError(
            "; ".join(wrong),
            next_step="Correct the spec of the machine, or spec.tags of the cluster; create an OpenStackServer again.",
        )


def _wrong_tags(wanted: WantedServer) -> Iterator[str]:
    tags = _tags(wanted)
    if wrong := [tag for tag in tags if not _is_tag(tag)]:
        yield f"Nova takes tags of 1 to {_MAX_TAG} characters without `/` and `,`; these are not: {', '.join(wrong)}"
    if len(tags) > MAX_TAGS:
        yield f"{len(tags) - 1} tags; Nova takes {MAX_TAGS}, of which one is the provider's"
    devices = [device.tag for device in wanted.block_devices if device.tag is not None]
    if wrong := [tag for tag in devices if not _is_tag(tag)]:
        yield (
            f"the name of an additional block device is a tag of 1 to {_MAX_TAG} characters without `/` and `,`; "
            f"these are not: {', '.join(wrong)}"
        )


def _is_tag(text: str) -> bool:
    return 0 < len(text) <= _MAX_TAG and "/" not in text and "," not in text


def _wrong_texts(wanted: WantedServer) -> Iterator[str]:
    keys = [key for key, value in wanted.metadata.items() if not _KEY.fullmatch(key) or len(value) > _MAX_TEXT]
    if keys:
        yield (
            f"Nova takes metadata whose keys have 1 to {_MAX_TEXT} letters of English, digits, spaces or `-_:.`, with "
            f"values of up to {_MAX_TEXT} characters; these are not: {', '.join(keys)}"
        )
    for what, text in (("key pair", wanted.key_name), ("availability zone", wanted.availability_zone)):
        if text and len(text) > _MAX_TEXT:
            yield f"the name of the {what} has {len(text)} characters, Nova takes {_MAX_TEXT}"
