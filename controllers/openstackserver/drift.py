"""External changes of a server and its ports, as messages; pure. They are reported and never reverted (W-34).

Only fields that the spec sets are compared, with addresses normalised; fields that the cloud chose may change.
"""

from __future__ import annotations

from collections.abc import Iterator

from api.v1alpha1.openstackserver import OpenStackServerSpec
from api.v1beta2.port import ResolvedFixedIP, ResolvedPortSpec
from capo.openstack import port
from capo.openstack.port import Port
from capo.openstack.server import Server
from controllers.address_pairs import Pairs


def port_drift(
    name: str, wanted: ResolvedPortSpec, found: Port, *, server_id: str | None, edited: Pairs | None = None
) -> str:
    """Return how a port differs from the one that was created; empty when it does not.

    Args:
        name: the port's name in the message.
        server_id: of the server that is to use it; None before it exists.
        edited: the address pairs that it may have instead, after an edit of the machine; None: it was not edited.
    """
    parts = [*_port(wanted, found, edited)]
    if server_id and found.device_id not in ("", server_id):
        parts.append(f"who uses it ({found.device_id})")
    return f"{name} was changed externally: {', '.join(parts)}" if parts else ""


def _port(wanted: ResolvedPortSpec, found: Port, edited: Pairs | None) -> Iterator[str]:
    is_secured = wanted.enable_port_security is not False
    if wanted.enable_port_security is not None and found.port_security_enabled is not wanted.enable_port_security:
        yield "port security"
    if is_secured and wanted.security_groups and set(found.security_groups) != set(wanted.security_groups):
        yield "security groups"
    pairs = [(pair.ip_address, pair.mac_address) for pair in wanted.allowed_address_pairs]
    has_pairs = port.has_pairs(pairs, found.body) or (edited is not None and port.has_pairs(edited, found.body))
    if is_secured and not has_pairs:
        yield "allowed address pairs"
    if not _addresses_fit(wanted, found):
        yield "fixed IPs"
    if (found.admin_state_up is not False) is not (wanted.admin_state_up is not False):
        yield "admin state"


def _addresses_fit(wanted: ResolvedPortSpec, found: Port) -> bool:
    """Return whether a port still has each requested address, and one in each requested subnet."""
    has = [(each.subnet_id, port.spelled(each.ip_address)) for each in found.fixed_ips]
    return all(any(_fits(each, *one) for one in has) for each in wanted.fixed_ips)


def _fits(wanted: ResolvedFixedIP, subnet: str, address: str) -> bool:
    is_in_subnet = not wanted.subnet or wanted.subnet == subnet
    return is_in_subnet and (not wanted.ip_address or port.spelled(wanted.ip_address) == address)


def server_drift(spec: OpenStackServerSpec, volume_ids: set[str], found: Server) -> list[str]:
    """Return the differences of a server's metadata, tags and volumes from its creation, as messages.

    Args:
        volume_ids: of the volumes that it was created with.
    """
    changes = []
    if (metadata := found.metadata) is not None:
        other = sorted(each.key for each in spec.server_metadata if metadata.get(each.key) != each.value)
        changes += [f"metadata changed: {', '.join(other)}"] if other else []
    if found.tags is not None:
        gone = sorted(set(spec.tags) - set(found.tags))
        changes += [f"tags removed: {', '.join(gone)}"] if gone else []
    if found.volumes is not None:
        loose = sorted(volume_ids - {each.id for each in found.volumes})
        changes += [f"volumes detached: {', '.join(loose)}"] if loose else []
    return changes
