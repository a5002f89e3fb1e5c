"""Floating IPs of the cluster: find or create, associate, release; one that is in use elsewhere is never taken.

Source: docs/explanation/go-provider.md, G-12, W-55, W-56, W-71. One that the provider creates carries its stamp and is
deleted with the cluster; an existing one that the user names carries none and is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capo.engine.steps import Create
from capo.json_types import Body
from capo.openstack import floating_ip
from capo.openstack.floating_ip import FloatingIP, WantedFloatingIP
from controllers.openstackcluster.changes import doubting, tagged
from controllers.openstackcluster.scope import ClusterScope


@dataclass(frozen=True)
class FloatingIPRequest:
    """A request for a floating IP.

    Args:
        role: in the stamp of the one that is created.
        port_id: the port to associate; None leaves the association to others.
        address: the required address; None for any.
        takes_any_at_port: use one that is associated with the port already, whatever its address.
        candidates: addresses; the first that is an unassociated floating IP is used.
    """

    role: str
    port_id: str | None = None
    address: str | None = None
    takes_any_at_port: bool = False
    candidates: Sequence[str] = ()


def existing(scope: ClusterScope, wish: FloatingIPRequest) -> Body | None:
    """Return the floating IP that satisfies a request, None if none exists."""
    return scope.find("floating_ip", wish.role) or _given(scope, wish)


def ensure(scope: ClusterScope, wish: FloatingIPRequest) -> Body | Create:
    """Return the floating IP, associated as requested, or the action that creates it."""
    own = scope.find("floating_ip", wish.role)
    if own is not None:
        return associated(scope, tagged(scope, "floating_ip", own), wish.port_id)
    given = _given(scope, wish)
    if given is not None:
        if wish.port_id is None:
            floating_ip.require_unused(given, ports=())
        return associated(scope, given, wish.port_id)
    external = scope.found.external_network
    if external is None:
        raise AssertionError("a floating IP is wanted only where there is an external network")
    wanted = WantedFloatingIP(
        stamp=scope.stamp(wish.role),
        network_id=external.id,
        description=scope.description,
        port_id=wish.port_id,
        address=wish.address,
    )
    return Create("floating_ip", (wish.role,), lambda: {wish.role: floating_ip.create(scope.cloud, wanted)})


def changes(scope: ClusterScope) -> str:
    """Return the message about external changes of the floating IP of this step that are not reverted."""
    return "; ".join(scope.found.changes.pop("floating_ip", ()))


def _given(scope: ClusterScope, wish: FloatingIPRequest) -> Body | None:
    """Return the user's floating IP: the one with the address, else the one at the port, else a candidate."""
    if wish.address is not None:
        return by_address(scope, wish.address)
    attached = at_port(scope, wish.port_id) if wish.takes_any_at_port and wish.port_id else []
    if attached:
        return attached[0]
    found = (by_address(scope, address) for address in wish.candidates)
    return next((body for body in found if body is not None and not FloatingIP(body).port_id), None)


def by_address(scope: ClusterScope, address: str) -> Body | None:
    """Return the floating IP with an address, whatever its owner; None without one."""
    found = floating_ip.with_addresses(scope.cloud_view, address)
    return found[0] if found else _looked_up(scope, address)


def _looked_up(scope: ClusterScope, address: str) -> Body | None:
    # Not in the lists: users name a floating IP right after they created it, and lists are minutes old.
    body = floating_ip.find_by_address(scope.cloud, address)
    if body is not None:
        scope.cloud_view.upsert("floating_ip", body)
    return body


def at_port(scope: ClusterScope, port_id: str) -> list[Body]:
    """Return all floating IPs that are associated with a port, whatever their owner."""
    return floating_ip.at_port(scope.cloud_view, port_id)


def associated(scope: ClusterScope, body: Body, port_id: str | None) -> Body:
    """Associate a floating IP with a port; return it.

    Raises:
        ForeignResourceError: it is the user's and associated with another port.
    """
    if port_id is None or FloatingIP(body).port_id == port_id:
        return body
    if not is_own(scope, body):
        body = refresh_if_unused(scope, body, port_id)
    with doubting(scope, "floating_ip", body["id"]):
        changed = floating_ip.associate(scope.cloud, body["id"], port_id=port_id)
    scope.cloud_view.upsert("floating_ip", changed)
    scope.emit(
        "SuccessfulAssociateFloatingIP", f"Associated floating IP {FloatingIP(body).address} with port {port_id}"
    )
    return changed


def refresh_if_unused(scope: ClusterScope, body: Body, port_id: str) -> Body:
    """Read a floating IP of the user again (W-71); return it.

    Raises:
        ForeignResourceError: it is associated with another port.
    """
    return floating_ip.refresh_if_unused(scope.cloud, scope.cloud_view, body["id"], ports=(port_id,))


def is_own(scope: ClusterScope, body: Body) -> bool:
    """Return whether a floating IP was created for this cluster."""
    return body["id"] in {record.id for record in scope.context.ledger.records_of_kind("floating_ip")}


def dissociate(scope: ClusterScope, body: Body) -> None:
    """Dissociate a floating IP of the user."""
    with doubting(scope, "floating_ip", body["id"]):
        changed = floating_ip.dissociate(scope.cloud, body["id"])
    scope.cloud_view.upsert("floating_ip", changed)
    scope.emit("SuccessfulDisassociateFloatingIP", f"Disassociated floating IP {FloatingIP(body).address}")


def release(scope: ClusterScope, body: Body) -> None:
    """Delete a floating IP that the provider created."""
    floating_ip.delete(scope.cloud, body["id"])
    scope.cloud_view.forget("floating_ip", body["id"])
    scope.emit("SuccessfulDeleteFloatingIP", f"Deleted floating IP {FloatingIP(body).address}")


def is_kept(scope: ClusterScope, body: Body) -> bool:
    """Return whether the spec names the address of a created floating IP: then it is not deleted with the cluster."""
    spec = scope.cluster.spec
    claimed = {
        spec.api_server.floating_ip if spec.api_server else None,
        spec.bastion.floating_ip if spec.bastion else None,
    }
    return FloatingIP(body).address in claimed
