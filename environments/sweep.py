"""Deletes all resources of a project."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from capo.errors import CapoError
from capo.json_types import Body
from capo.openstack import load_balancer, network, port, router, security_group, server, subnet, trunk, volume
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import KINDS, NOVA

LIMIT_S: Final = 120.0
"""Time limit without progress; a busy machine needs long for a hundred ports."""
THREADS: Final = 4
Delete = Callable[[Cloud, str], None]


def _delete_group(cloud: Cloud, group_id: str) -> None:
    cloud.delete("compute", f"/os-server-groups/{group_id}", microversion=NOVA)


def _delete_floating_ip(cloud: Cloud, floating_ip_id: str) -> None:
    cloud.delete("network", f"/floatingips/{floating_ip_id}")


_ORDER: Final[tuple[tuple[str, Delete], ...]] = (
    ("server", server.delete),
    ("load_balancer", load_balancer.delete),
    ("floating_ip", _delete_floating_ip),
    ("trunk", trunk.delete),
    ("port", port.delete),
    ("router", router.delete),
    ("subnet", subnet.delete),
    ("network", network.delete),
    ("security_group", security_group.delete),
    ("volume", volume.delete),
)


def empty(cloud: Cloud, admin: Cloud, project_id: str, *, every_s: float) -> None:
    """Delete all resources of a project, whose plain member cloud is.

    Args:
        every_s: seconds between two lists.
    """
    for group in cloud.list_all("compute", "/os-server-groups", "server_groups", microversion=NOVA):
        _delete_group(cloud, group["id"])
    for pair in cloud.list_all("compute", "/os-keypairs", "keypairs", microversion=NOVA):
        cloud.delete("compute", f"/os-keypairs/{pair['keypair']['name']}", microversion=NOVA)
    for kind, delete in _ORDER:
        _empty(cloud, project_id, kind, delete, every_s)
    for pool in cloud.list_all("network", "/subnetpools", "subnetpools", params={"project_id": project_id}):
        cloud.delete("network", f"/subnetpools/{pool['id']}")
    for group in _listed(admin, "security_group", project_id):
        security_group.delete(admin, group["id"])


def _empty(cloud: Cloud, project_id: str, kind: str, delete: Delete, every_s: float) -> None:
    left, ends_s = math.inf, 0.0
    refusals: list[CapoError] = []
    while found := [each for each in _listed(cloud, kind, project_id) if _is_ours_to_delete(kind, each)]:
        if len(found) < left:
            left, ends_s = len(found), time.monotonic() + LIMIT_S
        elif time.monotonic() > ends_s:
            raise AssertionError(f"{kind} cannot be deleted: {refusals}")
        with ThreadPoolExecutor(THREADS) as pool:
            tried = list(pool.map(lambda each: _try(cloud, kind, delete, each["id"]), found))
        refusals = [error for error in tried if error is not None]
        time.sleep(every_s)


def _listed(cloud: Cloud, kind: str, project_id: str) -> list[Body]:
    described = KINDS[kind]
    params = described.list_params(project_id)
    return cloud.list_all(
        described.service, described.list_path, described.key, params=params, microversion=described.microversion
    )


def _is_ours_to_delete(kind: str, body: Body) -> bool:
    if kind == "security_group":
        return bool(body["name"] != "default")
    return kind != "port" or not str(body["device_owner"]).startswith("network:")


def _disconnect(cloud: Cloud, router_id: str) -> None:
    for each in cloud.list_all("network", "/ports", "ports", params={"device_id": router_id}):
        for fixed in each["fixed_ips"]:
            router.remove_interface(cloud, router_id, fixed["subnet_id"])


def _try(cloud: Cloud, kind: str, delete: Delete, resource_id: str) -> CapoError | None:
    """Delete a resource, or return why it could not be deleted; it is listed again."""
    try:
        if kind == "router":
            _disconnect(cloud, resource_id)
        delete(cloud, resource_id)
    except CapoError as error:
        return error
    return None
