"""Cinder volumes.

Source: Block Storage API v3, "Volumes"; volumes have no tags, so the stamp is in their metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capo import names
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import view
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import CINDER


class _Attachment(view.View):
    server_id = view.text("server_id")


class Volume(view.View):
    """A volume as Cinder shows it. Source: Block Storage API v3, "Show a volume's details"."""

    id = view.text("id")
    name = view.text("name")
    status = view.text("status")
    size_gib = view.number("size")
    _metadata = view.optional_mapping("metadata")
    _attachments = view.views(_Attachment, "attachments")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata, of which every key is data."""
        return self._metadata or {}

    @property
    def server_ids(self) -> set[str]:
        """The servers that it is attached to."""
        return {each.server_id for each in self._attachments if each.server_id}


@dataclass(frozen=True)
class WantedVolume:
    """A volume to create.

    Args:
        image_id: image that it is created from, None for an empty volume.
        volume_type: None lets the cloud choose.
        availability_zone: Cinder's zone, None lets the cloud choose.
    """

    stamp: Stamp
    name: str
    size_gib: int
    description: str = ""
    image_id: str | None = None
    volume_type: str | None = None
    availability_zone: str | None = None


def create(cloud: Cloud, wanted: WantedVolume) -> Body:
    """Create a volume; it is not usable until its status is ``available``."""
    body: Body = cloud.post("volume", "/volumes", json=request(wanted), microversion=CINDER)["volume"]
    return body


def get(cloud: Cloud, volume_id: str) -> Body:
    """Return a volume, read from Cinder.

    Raises:
        NotFoundError: it does not exist.
    """
    body: Body = cloud.get("volume", f"/volumes/{volume_id}", microversion=CINDER)["volume"]
    return body


def delete(cloud: Cloud, volume_id: str) -> None:
    """Delete a volume. Asynchronous and idempotent."""
    cloud.remove("volume", f"/volumes/{volume_id}", microversion=CINDER)


def release(cloud: Cloud, volume_id: str) -> None:
    """Unreserve a volume that no server will use.

    Nova reserves volumes before it has validated the whole create; after a refusal they stay reserved, so that neither
    another create nor a deletion of the volume succeeds (tried on Nova 2026.2: a local disk that the flavor forbids).
    """
    params = {"volume_id": volume_id}
    attachments = cloud.list_all("volume", "/attachments", "attachments", params=params, microversion=CINDER)
    for attachment in attachments:
        if attachment["status"] == "reserved":
            _delete_attachment(cloud, attachment["id"])


def _delete_attachment(cloud: Cloud, attachment_id: str) -> None:
    cloud.remove("volume", f"/attachments/{attachment_id}", microversion=CINDER)


def request(wanted: WantedVolume) -> Body:
    """Return the body of the create."""
    optional = {
        "imageRef": wanted.image_id,
        "volume_type": wanted.volume_type,
        "availability_zone": wanted.availability_zone,
    }
    return {
        "volume": {
            "name": wanted.name,
            "description": wanted.description,
            "size": wanted.size_gib,
            "metadata": {names.VOLUME_STAMP_KEY: str(wanted.stamp)},
            **{name: value for name, value in optional.items() if value},
        }
    }
