"""The floating IP that a server claimed: associate it with one of the server's ports.

Neutron decides which port the floating IP's network can reach: it refuses the others and changes nothing. A floating IP
that is associated elsewhere is never taken. Source: docs/explanation/go-provider.md, G-26, and W-13.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from capo.engine.steps import Done, NotNeeded, Outcome, Wait
from capo.errors import CapoError, ConflictError, InvalidSpecError, NotFoundError
from capo.openstack import floating_ip
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.port import Port
from controllers import roles
from controllers.openstackserver import ip_address_claim
from controllers.openstackserver.scope import ServerScope

KIND: Final = "floating_ip"
FRESH_S: Final = 5.0
"""A list older than this does not prove that a floating IP is missing, or associated elsewhere."""


def ensure(scope: ServerScope) -> Outcome:
    """Associate the claimed floating IP with a port of the server."""
    if scope.server.spec.floating_ip_pool_ref is None:
        return NotNeeded()
    address = ip_address_claim.allocated(scope)
    if isinstance(address, Wait):
        return address
    ports = {port.id: port for port in _ports(scope)}
    found = _found(scope, address)
    if found is None or found.port_id not in (None, *ports):
        found = _found(scope, address, max_age_s=FRESH_S)
    if found is None:
        raise NotFoundError(
            f"the project has no floating IP {address}, which the pool allocated",
            resource=f"IPAddressClaim {ip_address_claim.claim_name(scope)}",
            next_step="Check that the pool uses credentials of the same project.",
        )
    if found.port_id in ports:
        return Done()
    floating_ip.require_unused(
        found.body, ports=ports, next_step="Dissociate it, or have the pool allocate another one."
    )
    _associate(scope, found, list(ports.values()))
    return Done()


def _ports(scope: ServerScope) -> list[Port]:
    found = (scope.cloud_view.find("port", roles.port(index)) for index in range(len(scope.server.spec.ports)))
    return [Port(body) for body in found if body is not None]


def _found(scope: ServerScope, address: str, *, max_age_s: float | None = None) -> FloatingIP | None:
    found = floating_ip.with_addresses(scope.cloud_view, address, max_age_s=max_age_s)
    return FloatingIP(found[0]) if found else None


def _associate(scope: ServerScope, found: FloatingIP, ports: list[Port]) -> None:
    """Associate the floating IP with the first port that its network can reach.

    Raises:
        ConflictError: no port can be reached; the message is Neutron's for the last one.
    """
    refusal: CapoError | None = None
    for port_id, fixed_ip in _places(ports):
        try:
            changed = floating_ip.associate(scope.cloud, found.id, port_id=port_id, fixed_ip=fixed_ip)
        except (ConflictError, InvalidSpecError) as error:
            refusal = error
            continue
        except CapoError:
            scope.cloud_view.invalidate(KIND, found.id)
            raise
        scope.cloud_view.upsert(KIND, changed)
        text = f"Associated floating IP {FloatingIP(changed).address} with port {port_id}"
        _emit(scope, "Normal", "SuccessfulAssociateFloatingIP", text)
        return
    words = refusal.message if refusal else "no port of the server has an IPv4 address"
    failure = ConflictError(
        f"floating IP {found.address} cannot lead to any port of the server: {words}",
        request_id=refusal.request_id if refusal else None,
        resource=f"{KIND} {found.id}",
        next_step="Connect the subnet of a port to a router whose gateway is on the floating IP's network.",
    )
    _emit(scope, "Warning", "FailedAssociateFloatingIP", failure.sentence)
    raise failure


def _places(ports: list[Port]) -> Iterator[tuple[str, str | None]]:
    """Yield ports and addresses to try; Neutron needs the address only if a port has several."""
    for port in ports:
        addresses = [each.ip_address for each in port.fixed_ips]
        version_4 = [address for address in addresses if ipaddress.ip_address(address).version == 4]
        for address in version_4:
            yield port.id, address if len(version_4) > 1 else None


def _emit(scope: ServerScope, severity: str, reason: str, message: str) -> None:
    scope.context.deps.events.emit(scope.context.obj, severity, reason, message)
