"""Which floating IPs the Go provider created for a pool, and what proves it.

It marks them with a description and a tag that name the pool without its namespace (W-08). One is recorded if it has
no stamp, has the description, and its address is in an IPAddress of this pool or in its status, and in none of another
pool of any namespace. A tag alone may be the user's: such a floating IP is allocated and never deleted.
Source: docs/explanation/go-provider.md, G-37.
"""

from __future__ import annotations

from capo import names
from capo.json_types import Body
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import FLOATING_IP
from controllers import roles
from controllers.openstackfloatingippool import candidates, ipam
from controllers.openstackfloatingippool.candidates import Holders
from controllers.openstackfloatingippool.scope import KIND, PoolScope, ip_in


def record(scope: PoolScope) -> None:
    """Record the floating IPs that the Go provider created for the pool.

    Raises:
        NotYetObserved: the project's floating IPs are being listed.
    """
    wanted = _named(scope) - set(candidates.prepared_ips(scope))
    bodies, held = scope.floating_ips(also=wanted), candidates.holders(scope)
    known = {record.id for record in scope.context.ledger.records_of_kind(KIND)}
    for body in bodies:
        if body["id"] not in known and ip_in(body) in wanted and _is_made(scope, body, held):
            scope.context.ledger.record(KIND, roles.floating_ip_of(body["id"]), body["id"])
    scope.found.is_recorded = True


def _named(scope: PoolScope) -> set[str]:
    """Return the addresses that the status and the IPAddresses of the pool name."""
    status = scope.pool.status
    return {ipam.spelt(ip) for ip in (*status.claimed_ips, *status.available_ips)} | {
        ipam.ip_of(address) for address in scope.addresses()
    }


def _is_made(scope: PoolScope, body: Body, held: Holders) -> bool:
    ip = ip_in(body)
    is_elsewhere = held.is_held(ip) or held.is_inherited(ip) or held.is_recorded(body["id"])
    is_described = FloatingIP(body).description == names.floating_ip_description(scope.name)
    return is_described and not is_elsewhere and FLOATING_IP.stamp_of(body) is None
