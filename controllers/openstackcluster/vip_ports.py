"""VIP ports without a load balancer: Octavia creates the port first and leaves it behind if it refuses the rest.

Such a port blocks the deletion of its network, and each attempt adds one. It is ours if it was created after the
object, is in the network of our VIP, and its load balancer does not exist. Octavia may show the load balancer later
than its port, so a young port is kept for now.

OVN creates one more in each subnet with members that it monitors. It belongs to no single load balancer, so it is
certainly left behind only in a managed network while the project has no OVN load balancer.

Source: openstack/ovn-octavia-provider, ``common/constants.py`` and ``helper.py``.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from capo.engine.steps import Wait
from capo.json_types import Body
from capo.openstack import load_balancer, port, quota
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.octavia_providers import OVN
from capo.openstack.port import Port
from controllers.openstackcluster.scope import ClusterScope
from controllers.roles import NETWORK

YOUNG_S: Final = 60.0
"""Octavia shows a load balancer seconds after its request completes."""
OWNERS: Final = ("Octavia", "ovn-lb:vip")
_PLACE: Final = "port of virtual IP"
_DEVICE: Final = "lb-"
_OVN_NAME: Final = "ovn-lb-vip-"
_OVN_MONITOR: Final = "ovn-lb-hm:distributed"


@dataclass(frozen=True)
class LeftBehind:
    """A port without its load balancer.

    Args:
        age_s: by the cloud's clock; since this process first saw it if the cloud does not send its time.
    """

    port: Port
    age_s: float


def left_behind(scope: ClusterScope, ports: Iterable[Body]) -> list[LeftBehind]:
    """Return the ports that Octavia left behind: no load balancer in a later list uses them.

    Args:
        ports: the current ports of a network.

    Raises:
        CapoError: Octavia cannot be asked; then no port can be judged.
    """
    candidates = [each for each in map(Port, ports) if _may_be_left_behind(scope, each)]
    if not candidates:
        return []
    listed = map(LoadBalancer, load_balancer.list_all(scope.cloud))
    living = [each for each in listed if each.provisioning_status != "DELETED"]
    loose = [each for each in candidates if not _is_used(each, living)]
    return [LeftBehind(each, scope.cloud.ages.age_s("network", each.id, each.created_at or "")) for each in loose]


def _may_be_left_behind(scope: ClusterScope, found: Port) -> bool:
    if not found.created_at:
        return False
    # In a managed network it blocks the deletion, whatever its owner. Only elsewhere are dates of two clocks compared.
    is_own = found.network_id == scope.context.ledger.id_of(NETWORK)
    if _is_monitors(found):
        return is_own
    if load_balancer_id(found) is None:
        return False
    return is_own or _seconds(found.created_at) >= _seconds(scope.context.obj["metadata"]["creationTimestamp"])


def load_balancer_id(found: Port) -> str | None:
    """Return the id of the load balancer for which a VIP port was created; None for any other port; pure."""
    if found.device_owner in OWNERS and found.device_id.startswith(_DEVICE):
        return found.device_id.removeprefix(_DEVICE)
    # Before 2026.2 OVN's driver set neither owner nor device. Other users of such a port set one of them.
    id_ = found.name.removeprefix(_OVN_NAME)
    is_bare = not found.device_owner and not found.device_id
    return id_ if is_bare and id_ != found.name and _is_uuid(id_) else None


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _is_monitors(found: Port) -> bool:
    return found.device_owner == _OVN_MONITOR


def _is_used(found: Port, living: Iterable[LoadBalancer]) -> bool:
    if _is_monitors(found):
        return any(each.provider == OVN for each in living)
    return any(found.id == each.vip_port_id or load_balancer_id(found) == each.id for each in living)


def delete_in(scope: ClusterScope, network_id: str, *, is_replaced: bool = False) -> Wait | None:
    """Delete the ports that Octavia left behind in a network; return the wait for those too young to judge.

    Args:
        is_replaced: another attempt follows, which needs a port again: the quota that they free is kept for it.

    Raises:
        CapoError: Neutron or Octavia cannot be asked.
    """
    found = left_behind(scope, port.in_network(scope.cloud, network_id).items)
    if is_replaced and any(each.age_s >= YOUNG_S for each in found):
        scope.cloud.quota_holds.places.keep(scope.context.key, _PLACE, quota.of_create("port", 1))
    return delete(scope, found)


def delete(scope: ClusterScope, found: Sequence[LeftBehind]) -> Wait | None:
    """Delete ports that were left behind; return the wait for those too young to judge, None if there are none."""
    young = [each.port.id for each in found if each.age_s < YOUNG_S]
    for loose in (each.port for each in found if each.age_s >= YOUNG_S):
        port.delete(scope.cloud, loose.id)
        scope.cloud_view.forget("port", loose.id)
        text = f"Deleted port {loose.id}, which Octavia left behind without its load balancer"
        scope.emit("SuccessfulDeletePort", text)
    if not young:
        return None
    text = f"waiting 1m to confirm that Octavia left behind port {', '.join(sorted(young))}"
    return Wait("Deleting", text, after_s=YOUNG_S)


def _seconds(timestamp: str) -> float:
    return datetime.datetime.fromisoformat(timestamp).timestamp()
