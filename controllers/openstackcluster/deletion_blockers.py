"""The resources that block a deletion, as an error message; pure (W-68, W-73)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def error(
    what: str,
    blockers: Sequence[Body],
    describe: str,
    refusal: ConflictError,
    *,
    is_own: Callable[[Body], bool] = lambda _body: True,
) -> BlockedError:
    """Return the error that names the blocking resources.

    Args:
        what: the resource to delete, as ``kind id``.
        describe: ``port`` or ``floating IP``.
        refusal: the cloud's error.
        is_own: returns whether a resource stands on a network of the cluster; with shared credentials the others are
            only counted.
    """
    own = [body for body in blockers if is_own(body)]
    full, shared = (f"{_in_use(blockers, each, describe)}: {refusal.message}" for each in (blockers, own))
    return BlockedError(
        full,
        resource=what,
        request_id=refusal.request_id,
        next_step=_NEXT_STEPS.get(describe),
        if_shared=None if shared == full else f"{what} is {shared}",
    )


def _in_use(blockers: Sequence[Body], shown: Sequence[Body], describe: str) -> str:
    one = describe_port if describe == "port" else describe_floating_ip
    named = [one(body) for body in shown[:MAX_NAMED]]
    if more := len(blockers) - len(named):
        named.append(f"and {more} more" if named else f"{more} {describe}{'s' if more > 1 else ''}")
    return f"still in use by {'; '.join(named)}" if named else "still in use"


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
