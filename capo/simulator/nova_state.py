"""Servers as Nova keeps them: records, what is noted beside them, hosts, and who may see what.

A record holds the server's own fields; `nova_view` turns it into an answer of the asked microversion. Servers that
are gone are kept aside, because `changes-since` still shows them; they are no part of the inventory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

from capo.simulator.cloud import Cloud, Table
from capo.simulator.nova import not_found
from capo.simulator.routing import INTERNAL, Fault, Json, Request

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
# What a fake host takes; more fits no host.
HOST_VCPUS: Final = 4000
HOST_RAM_MIB: Final = 1_200_000


@dataclass(slots=True)
class Failure:
    """An order that servers end in ERROR while they are built.

    Args:
        name: Regular expression for the names meant.
        times: How many servers it strikes.
    """

    name: re.Pattern[str]
    message: str
    code: int = 500
    times: int = 1


@dataclass(slots=True)
class Notes:
    """What Nova knows beside its resources."""

    deleted: dict[str, Json] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    is_cell_down: bool = False
    last_number: int = 0


_NOTES: Final[WeakKeyDictionary[Cloud, Notes]] = WeakKeyDictionary()


def notes(cloud: Cloud) -> Notes:
    """Return the notes of a cloud."""
    return _NOTES.setdefault(cloud, Notes())


def servers(cloud: Cloud) -> Table:
    """Return the servers that are there."""
    return cloud.table("compute", "servers")


def time_of(cloud: Cloud) -> str:
    """Return the time as most of Nova writes it."""
    return f"{cloud.now():%Y-%m-%dT%H:%M:%SZ}"


def long_time_of(cloud: Cloud) -> str:
    """Return the time as Nova's oldest extensions write it."""
    return f"{cloud.now():%Y-%m-%dT%H:%M:%S}.000000"


def touch(cloud: Cloud, server: Json, **changes: Any) -> None:
    """Change a server and note the time."""
    server.update(changes, updated=time_of(cloud))


def host_of(zone: str) -> str:
    """Return the one host of a zone."""
    return f"compute-{zone}"


def is_mapped(server: Json) -> bool:
    """Whether the server has reached a cell; before, most routes do not know it."""
    return bool(server["_is_mapped"])


def missing(server_id: str) -> Fault:
    return not_found(f"Instance {server_id} could not be found.")


def cell_failure() -> Fault:
    """Return what a request meets that needs a cell which is down."""
    return Fault(500, "", INTERNAL)


def find(request: Request) -> Json:
    """Return the server named in the path.

    Raises:
        Fault: 404 unless it is there and the caller's.
    """
    server_id = request.match["server_id"]
    server = servers(request.cloud).get(server_id)
    if server is None or not (request.is_admin or server["project_id"] == request.project_id):
        raise missing(server_id)
    return server


def find_up(request: Request) -> Json:
    """Return the server named in the path, whose cell must answer.

    Raises:
        Fault: 404; 500 while the cell is down.
    """
    server = find(request)
    if notes(request.cloud).is_cell_down and is_mapped(server):
        raise cell_failure()
    return server


def find_mapped(request: Request) -> Json:
    """Return the server named in the path for a route that only knows servers in cells.

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
