"""VIP ports without a load balancer: Octavia makes the port first, and leaves it behind when it refuses the rest.

Such a port keeps its network from being deleted, and each attempt adds one. It is taken for one of ours when it came
after the object, in the network of our VIP, and its load balancer does not exist. A port may be older than its load
balancer is visible, so a young one is left alone for the time being.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capo.controllers.openstackcluster.roles import NETWORK
from capo.controllers.openstackcluster.scope import ClusterScope, Resource
from capo.engine.steps import Wait
from capo.openstack import load_balancer, port

YOUNG_S: Final = 60.0
"""Octavia shows a load balancer once its request is through, which takes seconds."""
OWNER: Final = "Octavia"
_DEVICE: Final = "lb-"


@dataclass(frozen=True)
class LeftBehind:
    """A port without its load balancer.

    Args:
        age_s: by the clock of the cloud; since this process first saw it where the cloud does not tell its time.
    """

    body: Resource
    age_s: float


def left_behind(scope: ClusterScope, network_id: str) -> list[LeftBehind]:
    """Return the ports in a network that Octavia left behind: no load balancer of a list made after them has them.

    Raises:
        CapoError: Octavia cannot be asked; nothing is known of any port then.
    """
    listing = port.of_device_owner(scope.cloud, network_id, OWNER)
    # In a network of our own it is in the way, whoever's it was; dates of two clocks are compared for others alone.
    is_own = network_id == scope.turn.ledger.id_of(NETWORK)
    candidates = [body for body in listing.items if _may_be_left_behind(scope, body, is_own=is_own)]
    if not candidates:
        return []
    living = [body for body in load_balancer.list_all(scope.cloud) if body["provisioning_status"] != "DELETED"]
    used = {body["id"] for body in living} | {body["vip_port_id"] for body in living}
    loose = [body for body in candidates if not used & {_device(body), body["id"]}]
    return [LeftBehind(body, scope.cloud.ages.age_s("network", body["id"], body["created_at"])) for body in loose]


def _may_be_left_behind(scope: ClusterScope, body: Resource, *, is_own: bool) -> bool:
    if not (body.get("device_id") or "").startswith(_DEVICE) or not body.get("created_at"):
        return False
    return is_own or _born_s(body) >= _seconds(scope.turn.obj["metadata"]["creationTimestamp"])


def _device(body: Resource) -> str:
    """Return the id of the load balancer that a port was created for."""
    return str(body["device_id"]).removeprefix(_DEVICE)


def delete(scope: ClusterScope, found: Sequence[LeftBehind]) -> Wait | None:
    """Delete ports that were left behind; return the wait for those that are too young to tell, None without any."""
    young = [each.body["id"] for each in found if each.age_s < YOUNG_S]
    for body in (each.body for each in found if each.age_s >= YOUNG_S):
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
