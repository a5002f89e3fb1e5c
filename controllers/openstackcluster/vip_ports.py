"""VIP ports without a load balancer: Octavia makes the port first, and leaves it behind when it refuses the rest.

Such a port keeps its network from being deleted, and each attempt adds one. It is taken for one of ours when it came
after the object, in the network of our VIP, and its load balancer does not exist. A port may be older than its load
balancer is visible, so a young one is left alone for the time being.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Final

from capo.controllers.openstackcluster.scope import ClusterScope, Resource
from capo.engine.steps import Wait
from capo.openstack import load_balancer, port

YOUNG_S: Final = 60.0
"""Octavia shows a load balancer once its request is through, which takes seconds."""
OWNER: Final = "Octavia"
_DEVICE: Final = "lb-"


def left_behind(scope: ClusterScope, network_id: str) -> list[Resource]:
    """Return the ports in a network that Octavia left behind, as far as one can tell."""
    return [body for body in port.of_device_owner(scope.cloud, network_id, OWNER) if _is_left_behind(scope, body)]


def _is_left_behind(scope: ClusterScope, body: Resource) -> bool:
    device = body.get("device_id") or ""
    if not device.startswith(_DEVICE) or not body.get("created_at"):
        return False
    is_newer = _born_s(body) >= _seconds(scope.turn.obj["metadata"]["creationTimestamp"])
    return is_newer and not load_balancer.exists(scope.cloud, device.removeprefix(_DEVICE))


def delete(scope: ClusterScope, found: Sequence[Resource]) -> Wait | None:
    """Delete ports that were left behind; return the wait for those that are too young to tell, None without any."""
    young = [body["id"] for body in found if scope.turn.started_s - _born_s(body) < YOUNG_S]
    for body in found:
        if body["id"] not in young:
            port.delete(scope.cloud, body["id"])
            scope.observed.forget("port", body["id"])
            text = f"Deleted port {body['id']}, which Octavia left behind when it refused a load balancer"
            scope.tell("SuccessfulDeletePort", text)
    if not young:
        return None
    text = f"whether Octavia left behind port {', '.join(sorted(young))} can be told in a minute"
    return Wait("Deleting", text, after_s=YOUNG_S)


def _born_s(body: Resource) -> float:
    return _seconds(body["created_at"])


def _seconds(timestamp: str) -> float:
    return datetime.datetime.fromisoformat(timestamp).timestamp()
