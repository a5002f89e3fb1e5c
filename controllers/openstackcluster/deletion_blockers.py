"""The resources that block a deletion, as an error message; pure (W-68, W-73)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from capo.errors import BlockedError, ConflictError
from capo.json_types import Body
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.port import Port

MAX_NAMED: Final = 5
"""At most this many are named in a message; the rest is counted."""
_NEXT_STEPS: Final = {"floating IP": "Delete what the floating IP leads to, or dissociate it."}
_OF_NETWORK: Final = ("network:dhcp", "network:distributed", "network:router_centralized_snat")
"""Neutron's own ports, which it deletes with the network or the router."""


def in_network(ports: Iterable[Body]) -> list[Body]:
    """Return the ports that block the deletion of a network."""
    return [body for body in ports if Port(body).device_owner not in _OF_NETWORK]


def error(what: str, blockers: Sequence[Body], describe: str, refusal: ConflictError) -> BlockedError:
    """Return the error that names the blocking resources.

    Args:
        what: the resource to delete, as ``kind id``.
        describe: ``port`` or ``floating IP``.
        refusal: the cloud's error.
    """
    one = describe_port if describe == "port" else describe_floating_ip
    named = [one(body) for body in blockers[:MAX_NAMED]]
    more = len(blockers) - len(named)
    listed = "; ".join(named) + (f"; and {more} more" if more else "")
    in_use = f"still in use by {listed}" if listed else "still in use"
    return BlockedError(
        f"{in_use}: {refusal.message}",
        resource=what,
        request_id=refusal.request_id,
        next_step=_NEXT_STEPS.get(describe),
    )


def describe_port(body: Body) -> str:
    """Return a port's description: id, name, and the device that it belongs to."""
    found = Port(body)
    name = f" {found.name!r}" if found.name else ""
    owner = f" of {found.device_owner} {found.device_id}".rstrip() if found.device_owner else ""
    return f"port {found.id}{name}{owner}"


def describe_floating_ip(body: Body) -> str:
    """Return a floating IP's description with its fixed IP."""
    found = FloatingIP(body)
    return f"floating IP {found.address} for {found.fixed_address or 'nothing'}"
