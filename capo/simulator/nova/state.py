"""Servers as Nova stores them: records, notes, hosts, and visibility.

A record holds the server's own fields; `view` turns it into an answer of the requested microversion. Deleted
servers are kept separately, because `changes-since` still shows them; they are no part of the inventory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from capo.simulator.cloud import Cloud, Json, Table
from capo.simulator.nova.service import not_found
from capo.simulator.routing import INTERNAL, Fault, Request

VM_STATES: Final = {
    "ACTIVE": "active",
    "BUILD": "building",
    "DELETED": "deleted",
    "ERROR": "error",
    "HARD_REBOOT": "active",
    "MIGRATING": "active",
    "PAUSED": "paused",
    "REBOOT": "active",
    "REBUILD": "active",
    "RESCUE": "rescued",
    "RESIZE": "active",
    "SHELVED": "shelved",
    "SHELVED_OFFLOADED": "shelved_offloaded",
    "SHUTOFF": "stopped",
    "SOFT_DELETED": "soft-delete",
    "SUSPENDED": "suspended",
    "VERIFY_RESIZE": "resized",
}
# The size of a fake host; a larger server fits no host.
HOST_VCPUS: Final = 4000
HOST_RAM_MIB: Final = 1_200_000


@dataclass(slots=True)
class Failure:
    """Servers that end in ERROR while they are built.

    Args:
        name: Regular expression for the names of the servers.
        times: How many servers fail.
    """

    name: re.Pattern[str]
    message: str
    code: int = 500
    times: int = 1


@dataclass(slots=True)
class Notes:
    """Nova's state besides its resources."""

    deleted: dict[str, Json] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    is_cell_down: bool = False
    last_number: int = 0


_NOTES: Final[WeakKeyDictionary[Cloud, Notes]] = WeakKeyDictionary()


def notes(cloud: Cloud) -> Notes:
    """Return the notes of a cloud."""
    return _NOTES.setdefault(cloud, Notes())


def servers(cloud: Cloud) -> Table:
    """Return the existing servers."""
    return cloud.table("compute", "servers")


def time_of(cloud: Cloud) -> str:
    """Return the time in the format of most of Nova."""
    return f"{cloud.now():%Y-%m-%dT%H:%M:%SZ}"


def long_time_of(cloud: Cloud) -> str:
    """Return the time in the format of Nova's oldest extensions."""
    return f"{cloud.now():%Y-%m-%dT%H:%M:%S}.000000"


def touch(cloud: Cloud, server: Json, **changes: Any) -> None:
    """Change a server and update its time."""
    server.update(changes, updated=time_of(cloud))


def host_of(zone: str) -> str:
    """Return the one host of a zone."""
    return f"compute-{zone}"


def is_mapped(server: Json) -> bool:
    """Return whether the server is mapped to a cell; before that most routes do not find it."""
    return bool(server["_is_mapped"])


def missing(server_id: str) -> Fault:
    return not_found(f"Instance {server_id} could not be found.")


def cell_failure() -> Fault:
    """Return the answer to a request that needs a cell which is down."""
    return Fault(500, "", INTERNAL)


def find(request: Request) -> Json:
    """Return the server of the path.

    Raises:
        Fault: 404 unless it exists and belongs to the caller.
    """
    server_id = request.match["server_id"]
    server = servers(request.cloud).get(server_id)
    if server is None or not (request.is_admin or server["project_id"] == request.project_id):
        raise missing(server_id)
    return server


def find_up(request: Request) -> Json:
    """Return the server of the path, whose cell must be up.

    Raises:
        Fault: 404; 500 while the cell is down.
    """
    server = find(request)
    if notes(request.cloud).is_cell_down and is_mapped(server):
        raise cell_failure()
    return server


def find_mapped(request: Request) -> Json:
    """Return the server of the path for a route that only finds servers in cells.

    Raises:
        Fault: 404; 500 while the cell is down.
    """
    server_id = request.match["server_id"]
    if server_id not in servers(request.cloud):
        raise not_found(f"Instance {server_id} has no mapping to a cell.")
    server = find_up(request)
    if not is_mapped(server):
        raise missing(server_id)
    return server
