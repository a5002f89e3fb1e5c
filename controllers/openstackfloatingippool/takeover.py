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
from controllers.openstackfloatingippool.scope import KIND, PoolScope


def record(scope: PoolScope) -> None:
    """Record the floating IPs that the Go provider created for the pool.

    Raises:
        NotYetObserved: the project's floating IPs are being listed.
    """
    bodies = scope.floating_ips()
    held = candidates.holders(scope, bodies)
    known = {record.id for record in scope.context.ledger.records_of_kind(KIND)}
    wanted = _named(scope) - set(candidates.prepared_ips(scope))
    for body in bodies:
        if body["id"] not in known and ipam.spelt(FloatingIP(body).address) in wanted and _is_made(scope, body, held):
            scope.context.ledger.record(KIND, roles.floating_ip_of(body["id"]), body["id"])
    scope.found.is_recorded = True


def _named(scope: PoolScope) -> set[str]:
    """Return the addresses that the status and the IPAddresses of the pool name."""
    status = scope.pool.status
    return {ipam.spelt(ip) for ip in (*status.claimed_ips, *status.available_ips)} | {
        ipam.ip_of(address) for address in scope.addresses()
    }


def _is_made(scope: PoolScope, body: Body, held: Holders) -> bool:
    ip = ipam.spelt(FloatingIP(body).address)
    is_elsewhere = ip in held.others or ip in held.inherited or body["id"] in held.recorded
    is_described = FloatingIP(body).description == names.floating_ip_description(scope.name)
    return is_described and not is_elsewhere and FLOATING_IP.stamp_of(body) is None
