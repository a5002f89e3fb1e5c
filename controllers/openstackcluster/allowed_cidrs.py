"""Allowed CIDRs of the API load balancer; pure.

Source: docs/explanation/go-provider.md, G-13, and W-72: CIDRs that cannot be enforced are refused, so that a wrong list
never opens the load balancer to everyone. Octavia stores network addresses (10.0.0.5/24 as 10.0.0.0/24), so network
addresses are compared.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from capo.errors import InvalidSpecError

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Allowed(NamedTuple):
    """The CIDRs of every listener.

    Args:
        cidrs: sorted, without duplicates; empty admits everyone.
        dropped: entries of the user that are not of the IP version of a VIP.
    """

    cidrs: tuple[str, ...]
    dropped: tuple[str, ...] = ()


def allowed(wanted: Sequence[str], own: Iterable[str], *, versions: Collection[int]) -> Allowed:
    """Return the user's CIDRs and the cluster's own; no CIDRs if the user set none.

    Args:
        own: addresses and CIDRs of subnets, router and bastion; those of another IP version than the VIPs are left out.
        versions: the IP versions of the VIPs, 4 or 6 or both.

    Raises:
        InvalidSpecError: an entry is neither an address nor a CIDR, or none is of the IP version of a VIP.
    """
    if not wanted:
        return Allowed(())
    parsed = {entry: _parsed(entry) for entry in wanted}
    usable = {network for network in parsed.values() if network.version in versions}
    if not usable:
        version = next(iter(versions))
        raise InvalidSpecError(
            f"spec.apiServer.managedLoadBalancer.allowedCIDRs has no IPv{version} entry, as the VIP is IPv{version}"
        )
    networks = usable | {n for n in map(_parsed, own) if n.version in versions}
    dropped = tuple(entry for entry, network in parsed.items() if network.version not in versions)
    return Allowed(tuple(sorted(map(str, networks))), dropped)


def normalised(cidrs: Iterable[str] | None) -> tuple[str, ...]:
    """Return CIDRs in the form of :func:`allowed`, for comparison."""
    return tuple(sorted(str(_parsed(cidr)) for cidr in cidrs or ()))


def _parsed(entry: str) -> _Network:
    try:
        return ipaddress.ip_network(entry.strip(), strict=False)
    except ValueError as error:
        raise InvalidSpecError(
            f"spec.apiServer.managedLoadBalancer.allowedCIDRs: {entry!r} is neither an address nor a CIDR"
        ) from error
