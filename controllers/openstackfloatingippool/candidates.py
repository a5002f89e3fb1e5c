"""Which floating IPs of the project a pool may allocate, and in which order; pure.

Prepared ones (``spec.preAllocatedFloatingIPs``) come first, then those of the pool itself and those with its tag. What
somebody else holds, uses, or has stamped is never among them. Source: W-08, W-13, G-37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.engine.store import Index
from capo.json_types import Body, Object
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL
from capo.ledger import location_of
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import FLOATING_IP
from controllers.openstackfloatingippool import ipam
from controllers.openstackfloatingippool.scope import KIND, PoolScope, ip_in, role_of


@dataclass(frozen=True)
class Holders:
    """Who holds which addresses, as far as the store shows it; each is looked up when it is asked for.

    Args:
        births: the roles of floating IPs that were created for claims that exist.
    """

    scope: PoolScope
    births: frozenset[str]

    def is_claimed(self, ip: str) -> bool:
        """Return whether an IPAddress of the pool has the address."""
        return bool(self.scope.addresses_with(ip))

    def is_held(self, ip: str) -> bool:
        """Return whether an IPAddress of another pool has the address, in any namespace."""
        return any(holds(self.scope, each) for each in ipam.with_ip(ip, self.scope.context.deps.store))

    def is_inherited(self, ip: str) -> bool:
        """Return whether another pool has the address that the Go provider serves or served, in use or not."""
        return self._is_of_others(_BY_INHERITED, ip)

    def is_recorded(self, floating_ip_id: str) -> bool:
        """Return whether another pool has recorded the floating IP."""
        return self._is_of_others(_BY_RECORD, floating_ip_id)

    def is_reserved(self, body: Body) -> bool:
        """Return whether the floating IP was created for a claim that exists."""
        return _birth(self.scope, body) in self.births

    def _is_of_others(self, index: Index[str], value: str) -> bool:
        found, mine = self.scope.context.deps.store.find(index, value), ipam.ident(self.scope.obj)
        return any(ipam.ident(pool) != mine for pool in found)


def holders(scope: PoolScope) -> Holders:
    """Return who holds which addresses."""
    return Holders(scope, frozenset(role_of(claim) for claim in scope.claims()))


def holds(scope: PoolScope, address: Object, *, read: Callable[[ipam.Ident], Object | None] | None = None) -> bool:
    """Return whether an IPAddress of another pool counts: its pool is known to allocate in the same project.

    Others prove nothing: a user may write IPAddresses for a pool that does not exist, or for a project of his own. The
    status of a pool is written by its controller alone.

    Args:
        read: returns a pool as the API server has it, where the store may lag: the pool may belong to another process.
    """
    ident = ipam.pool_of(address)
    if ident is None or ident == ipam.ident(scope.obj):
        return False
    pool = scope.context.deps.store.get(OPENSTACK_FLOATING_IP_POOL, *ident)
    if read is not None and (pool is None or location_of(pool.get("status")) is None):
        pool = read(ident)
    if pool is None:
        return False
    if location_of(pool.get("status")) is None:
        return ipam.ip_of(address) in _inherited(pool)
    return scope.is_located(pool)


def _inherited(pool: Object) -> set[str]:
    """Return the addresses in the status of a pool that this provider has not written yet."""
    status = pool.get("status") or {}
    if location_of(status) is not None:
        return set()
    return {ipam.spelt(ip) for ip in (*(status.get("claimedIPs") or ()), *(status.get("availableIPs") or ()))}


def _recorded(pool: Object) -> set[str]:
    resources: dict[str, Any] = (pool.get("status") or {}).get("resources") or {}
    return {record["id"] for record in resources.get("records") or ()}


_BY_INHERITED: Final = Index(OPENSTACK_FLOATING_IP_POOL, _inherited)
_BY_RECORD: Final = Index(OPENSTACK_FLOATING_IP_POOL, _recorded)


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
    found = {ip_in(body): body for body in bodies}
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
    is_taken = held.is_recorded(body["id"]) or held.is_inherited(ip_in(body))
    network = scope.found.network or scope.pool.status.floating_ip_network
    is_there = network is None or FloatingIP(body).network_id == network.id
    is_tagged = names.floating_ip_tag(scope.name) in FloatingIP(body).tags and is_there
    return is_tagged and not is_taken and FLOATING_IP.stamp_of(body) is None


def why_not(scope: PoolScope, body: Body, held: Holders) -> str | None:
    """Return why a floating IP may not be allocated; None if it may."""
    ip = ip_in(body)
    if FloatingIP(body).project_id != scope.cloud.location.project_id:
        return "it is in another project"
    if held.is_claimed(ip):
        return "it is claimed"
    if held.is_reserved(body):
        return "it was created for another claim"
    if FloatingIP(body).port_id:
        return f"it leads to {scope.port_of(body)}"
    return None if scope.is_own(body) else _whose(body, ip, held)


def _whose(body: Body, ip: str, held: Holders) -> str | None:
    """Return to whom a floating IP belongs that was not created for the pool; None if it is free."""
    if FLOATING_IP.stamp_of(body) is not None:
        return "it was created for something else"
    return "another pool has it" if held.is_held(ip) or held.is_recorded(body["id"]) else None


def refusals(scope: PoolScope, bodies: Sequence[Body], held: Holders) -> dict[str, str]:
    """Return why prepared addresses cannot be allocated; those that are claimed are omitted."""
    found = {ip_in(body): body for body in bodies}
    reasons = {
        ip: why_not(scope, found[ip], held) if ip in found else "the project has no such floating IP"
        for ip in prepared_ips(scope)
        if not held.is_claimed(ip)
    }
    return {ip: reason for ip, reason in reasons.items() if reason}


def own(scope: PoolScope) -> list[Body]:
    """Return the floating IPs that were created for the pool, for their deletion.

    Raises:
        NotYetObserved: not known yet, or a create whose answer was lost may still take effect.
    """
    return [body for body in recorded(scope) if scope.is_own(body)]


def recorded(scope: PoolScope) -> list[Body]:
    """Return the floating IPs that are stamped or recorded for the pool; a record alone is no proof.

    Raises:
        NotYetObserved: as :func:`own`.
    """
    return list(scope.cloud_view.owned(KIND))
