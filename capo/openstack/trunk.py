"""Neutron trunks.

Source: Networking API, "Trunk networking".
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capo import names
from capo.errors import NotFoundError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import tags, view
from capo.openstack.cloud import Cloud


class Trunk(view.View):
    """A trunk as Neutron shows it. Source: Networking API, "Show trunk details"."""

    id = view.text("id")
    name = view.text("name")
    port_id = view.text("port_id")


@dataclass(frozen=True)
class WantedTrunk:
    """A trunk to create on a port.

    Args:
        port_id: the parent port.
    """

    stamp: Stamp
    name: str
    description: str
    port_id: str


def create(cloud: Cloud, wanted: WantedTrunk) -> Body:
    """Create a trunk without subports."""
    body: Body = cloud.post("network", "/trunks", json=request(wanted))["trunk"]
    return body


def replace_tags(cloud: Cloud, body: Mapping[str, Any], wanted: Sequence[str]) -> Body:
    """Replace the tags of a trunk; return its body with them."""
    return tags.replace(cloud, "trunks", body, wanted)


def delete(cloud: Cloud, trunk_id: str) -> None:
    """Detach a trunk's subports, whose ports remain, and delete it; succeed if it does not exist.

    A failing deletion is retried many times: its subports are read and detached once a minute at most.

    Raises:
        ConflictError: the parent port is still in use by a server.
    """
    with contextlib.suppress(NotFoundError):
        port_ids = cloud.lookups.get(("subports", trunk_id), lambda: _subport_ids(cloud, trunk_id))
        if port_ids:
            cloud.lookups.get(("detached", trunk_id, port_ids), lambda: _detach(cloud, trunk_id, port_ids))
    cloud.remove("network", f"/trunks/{trunk_id}")


def _subport_ids(cloud: Cloud, trunk_id: str) -> tuple[str, ...]:
    answer = cloud.get("network", f"/trunks/{trunk_id}/get_subports")
    return tuple(subport["port_id"] for subport in answer["sub_ports"])


def _detach(cloud: Cloud, trunk_id: str, port_ids: Sequence[str]) -> Body:
    sub_ports = [{"port_id": port_id} for port_id in port_ids]
    return cloud.put("network", f"/trunks/{trunk_id}/remove_subports", json={"sub_ports": sub_ports})


def request(wanted: WantedTrunk) -> Body:
    """Return the body of the create."""
    return {
        "trunk": {
            "name": wanted.name,
            "description": names.stamped(wanted.description, wanted.stamp),
            "port_id": wanted.port_id,
            "sub_ports": [],
        }
    }
