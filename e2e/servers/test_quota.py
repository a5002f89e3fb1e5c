"""Servers beyond a quota of the project, on the real services: one is refused at most, all are created in the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from capo.json_types import Json
from capo.openstack import quota
from capo.openstack.kinds import NOVA
from e2e.servers.environment import SERVERS, ServersEnvironment
from environments import tenancy

pytestmark = pytest.mark.integration

NAMES: Final = tuple(f"beyond-{number}" for number in range(4))
ROOM: Final = 2
"""Servers that the quota has room for."""


@pytest.fixture
def limited(ground: ServersEnvironment) -> Iterator[ServersEnvironment]:
    left = quota.read(ground.cloud, "compute")
    assert left["cores"] is None, "the run's project has no limit"
    absolute = ground.cloud.get("compute", "/limits", microversion=NOVA)["limits"]["absolute"]
    limit = {"cores": absolute["totalCoresUsed"] + ROOM}
    tenancy.limit(ground.admin, ground.tenant.project_id, "compute", limit)
    yield ground
    tenancy.limit(ground.admin, ground.tenant.project_id, "compute", {"cores": -1})
    for name in NAMES:
        ground.delete(SERVERS, name)
    ground.wait_until("all are gone", lambda: not any(map(ground.server, NAMES)))


def shown(ground: ServersEnvironment) -> list[Json]:
    return [ground.condition(SERVERS, name, "InstanceReady") for name in NAMES]


def waiting(ground: ServersEnvironment) -> list[str]:
    """Return the messages of the servers that wait for the quota."""
    return [each["message"] for each in shown(ground) if each.get("reason") == "QuotaExceeded"]


def are_held(messages: list[str]) -> bool:
    """Return whether all wait for room: one that Nova refused says so in Nova's words until its next reconcile."""
    return len(messages) == len(NAMES) - ROOM and all(
        "of cores exhausted: needs 1, 0 left" in each for each in messages
    )


@pytest.mark.lab
def test_servers_beyond_the_quota_wait_and_are_created_when_it_has_room(limited: ServersEnvironment) -> None:
    for name in NAMES[:ROOM]:
        limited.apply(limited.server_object(name))
        limited.wait_until_ready(name)  # Nova accepts too many that start together, and fails them later

    for name in NAMES[ROOM:]:
        limited.apply(limited.server_object(name))
    limited.wait_until("the others wait", lambda: are_held(waiting(limited)))

    tenancy.limit(limited.admin, limited.tenant.project_id, "compute", {"cores": -1})
    for name in NAMES:
        limited.wait_until_ready(name)
