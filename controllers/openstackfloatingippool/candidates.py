"""Which floating IPs of the project a pool may allocate, and in which order; pure.

Prepared ones (``spec.preAllocatedFloatingIPs``) come first, then those of the pool itself and those with its tag. What
somebody else holds, uses, or has stamped is never among them. Source: W-08, W-13, G-37.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capo import names
from capo.json_types import Body, Object
from capo.kube.kinds import IP_ADDRESS, OPENSTACK_FLOATING_IP_POOL
from capo.ledger import location_of
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import FLOATING_IP
from controllers.openstackfloatingippool import ipam
from controllers.openstackfloatingippool.scope import KIND, PoolScope, role_of


@dataclass(frozen=True)
class Holders:
    """Who holds which addresses, as far as the store shows it.

    Args:
        here: addresses of the pool's IPAddresses.
        others: addresses of other pools' IPAddresses, in all namespaces.
        inherited: addresses of other pools that the Go provider serves or served, in use or not.
        recorded: ids of floating IPs that other pools have recorded.
        reserved: ids of floating IPs that were created for a claim that exists.
    """

    here: frozenset[str]
    others: frozenset[str]
    inherited: frozenset[str]
    recorded: frozenset[str]
    reserved: frozenset[str]


def holders(scope: PoolScope, bodies: Iterable[Body]) -> Holders:
    """Return who holds which addresses."""
    store, mine = scope.context.deps.store, ipam.ident(scope.obj)
    held, others = store.list(IP_ADDRESS), other_pools(scope)
    births = {role_of(claim) for claim in scope.claims()}
    return Holders(
        here=frozenset(ipam.ip_of(each) for each in held if ipam.pool_of(each) == mine),
        others=frozenset(ipam.ip_of(each) for each in held if holds(others, each)),
        inherited=frozenset(ip for pool in others.values() for ip in pool.inherited),
        recorded=frozenset(id_ for pool in others.values() for id_ in pool.recorded),
        reserved=frozenset(body["id"] for body in bodies if _birth(scope, body) in births),
    )


@dataclass(frozen=True)
class OtherPool:
    """What the status of another pool shows.

    Args:
        is_here: whether it allocates in the same project; None while it does not show where.
        inherited: its addresses as the Go provider left them.
        recorded: ids of its floating IPs.
    """

    is_here: bool | None
    inherited: frozenset[str]
    recorded: frozenset[str]


def other_pools(scope: PoolScope) -> dict[ipam.Ident, OtherPool]:
    """Return all pools but this one. Their status is read once for all of their addresses."""
    found = scope.context.deps.store.list(OPENSTACK_FLOATING_IP_POOL)
    mine = ipam.ident(scope.obj)
    return {ipam.ident(pool): _other(scope, pool) for pool in found if ipam.ident(pool) != mine}


def _other(scope: PoolScope, pool: Object) -> OtherPool:
    where, here = location_of(pool.get("status")), scope.cloud.location
    is_here = (where.auth_host, where.project_id) == (here.auth_host, here.project_id) if where else None
    return OtherPool(is_here, frozenset(_inherited(pool)), frozenset(_recorded(pool)))


def holds(others: Mapping[ipam.Ident, OtherPool], address: Object) -> bool:
    """Return whether an IPAddress of another pool counts: its pool is known to allocate in the same project.

    Others prove nothing: a user may write IPAddresses for a pool that does not exist, or for a project of his own. The
    status of a pool is written by its controller alone.
    """
    ident = ipam.pool_of(address)
    pool = others.get(ident) if ident else None
    if pool is None:
        return False
    return ipam.ip_of(address) in pool.inherited if pool.is_here is None else pool.is_here


def _inherited(pool: Object) -> Iterable[str]:
    """Yield the addresses in the status of a pool that this provider has not recorded yet."""
    if names.OWNER_ID_ANNOTATION in (pool["metadata"].get("annotations") or {}):
        return
    status = pool.get("status") or {}
    for ip in (*(status.get("claimedIPs") or ()), *(status.get("availableIPs") or ())):
        yield ipam.spelt(ip)


def _recorded(pool: Object) -> Iterable[str]:
    resources: dict[str, Any] = (pool.get("status") or {}).get("resources") or {}
    return (record["id"] for record in resources.get("records") or ())


def _birth(scope: PoolScope, body: Body) -> str | None:
    """Return the role with which a floating IP was created for this pool; None if it was not."""
    stamp = FLOATING_IP.stamp_of(body)
    return stamp.role if stamp is not None and stamp.owner == scope.context.owner else None


def born(scope: PoolScope, bodies: Iterable[Body]) -> dict[str, Body]:
    """Return the floating IPs that were created for claims of this pool, by role."""
    ledger = scope.context.ledger
    found: dict[str, Body] = {}
    # Of two with one stamp, as after a create that took effect twice, the recorded one counts (ADR 0001).
    for body in sorted(bodies, key=lambda each: str(each["id"])):
        role = _birth(scope, body)
        if role is not None and (role not in found or body["id"] == ledger.id_of(role)):
            found[role] = body
    return found


def free(scope: PoolScope, bodies: Sequence[Body], held: Holders) -> list[Body]:
    """Return the floating IPs that may be allocated, in order."""
    prepared = prepared_ips(scope)
    found = {ipam.spelt(FloatingIP(body).address): body for body in bodies}
    first = [found[ip] for ip in prepared if ip in found and why_not(scope, found[ip], held) is None]
    more = {
        ip: body
        for ip, body in found.items()
        if ip not in prepared and _is_of_pool(scope, body, held) and why_not(scope, body, held) is None
    }
    return [*first, *(more[ip] for ip in ipam.in_order(more))]


def prepared_ips(scope: PoolScope) -> list[str]:
    """Return the addresses of ``spec.preAllocatedFloatingIPs`` in order."""
    return ipam.in_order(scope.pool.spec.pre_allocated_floating_ips)


def _is_of_pool(scope: PoolScope, body: Body, held: Holders) -> bool:
    """Return whether a floating IP belongs to the pool, or has its tag and belongs to no other."""
    if scope.is_own(body):
        return True
    is_taken = body["id"] in held.recorded or ipam.spelt(FloatingIP(body).address) in held.inherited
    network = scope.found.network or scope.pool.status.floating_ip_network
    is_there = network is None or FloatingIP(body).network_id == network.id
    is_tagged = names.floating_ip_tag(scope.name) in FloatingIP(body).tags and is_there
    return is_tagged and not is_taken and FLOATING_IP.stamp_of(body) is None


def why_not(scope: PoolScope, body: Body, held: Holders) -> str | None:
    """Return why a floating IP may not be allocated; None if it may."""
    ip = ipam.spelt(FloatingIP(body).address)
    if FloatingIP(body).project_id != scope.cloud.location.project_id:
        return "it is in another project"
    if ip in held.here:
        return "it is claimed"
    if body["id"] in held.reserved:
        return "it was created for another claim"
    if FloatingIP(body).port_id:
        return f"it leads to port {FloatingIP(body).port_id}"
    return None if scope.is_own(body) else _whose(body, ip, held)


def _whose(body: Body, ip: str, held: Holders) -> str | None:
    """Return to whom a floating IP belongs that was not created for the pool; None if it is free."""
    if FLOATING_IP.stamp_of(body) is not None:
        return "it was created for something else"
    return "another pool has it" if ip in held.others or body["id"] in held.recorded else None


def refusals(scope: PoolScope, bodies: Sequence[Body], held: Holders) -> dict[str, str]:
    """Return why prepared addresses cannot be allocated; those that are claimed are omitted."""
    found = {ipam.spelt(FloatingIP(body).address): body for body in bodies}
    reasons = {
        ip: why_not(scope, found[ip], held) if ip in found else "the project has no such floating IP"
        for ip in prepared_ips(scope)
        if ip not in held.here
    }
    return {ip: reason for ip, reason in reasons.items() if reason}


def own(scope: PoolScope) -> list[Body]:
    """Return the floating IPs that were created for the pool, for their deletion.

    Raises:
        NotYetObserved: not known yet, or a create whose answer was lost may still take effect.
    """
    return [body for body in scope.cloud_view.owned(KIND) if scope.is_own(body)]
