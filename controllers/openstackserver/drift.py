"""External changes of a server and its ports, as messages; pure. ``repairs.py`` reverts what a policy names.

Only fields that the spec sets are compared, with addresses normalised; fields that the cloud chose may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from api.v1alpha1.openstackserver import OpenStackServerSpec
from api.v1beta2.port import ResolvedFixedIP, ResolvedPortSpec
from capo.json_types import Json
from capo.openstack import port
from capo.openstack.port import Port
from capo.openstack.server import Server
from controllers.address_pairs import Pairs
from controllers.drift import GROUPS, METADATA, PAIRS, TAGS


def port_drift(
    name: str, wanted: ResolvedPortSpec, found: Port, *, server_id: str | None, edited: Pairs | None = None
) -> str:
    """Return how a port differs from the one that was created; empty when it does not.

    Args:
        name: the port's name in the message.
        server_id: of the server that is to use it; None before it exists.
        edited: the address pairs that it may have instead, after an edit of the machine; None: it was not edited.
    """
    return sentence(name, port_changes(wanted, found, server_id=server_id, edited=edited).values())


def sentence(name: str, changes: Iterable[str]) -> str:
    """Return the message about changes of a port; empty without any."""
    parts = ", ".join(changes)
    return f"{name} was changed externally: {parts}" if parts else ""


def port_changes(
    wanted: ResolvedPortSpec, found: Port, *, server_id: str | None, edited: Pairs | None = None
) -> dict[str, str]:
    """Return what :func:`port_drift` names, by the kind of the policy for it, or else by its name."""
    changes = dict(_port(wanted, found, edited))
    if server_id and found.device_id not in ("", server_id):
        changes["device"] = f"who uses it ({found.device_id})"
    return changes


def _port(wanted: ResolvedPortSpec, found: Port, edited: Pairs | None) -> Iterator[tuple[str, str]]:
    is_secured = wanted.enable_port_security is not False
    if wanted.enable_port_security is not None and found.port_security_enabled is not wanted.enable_port_security:
        yield "port security", "port security"
    if is_secured and wanted.security_groups and set(found.security_groups) != set(wanted.security_groups):
        yield GROUPS, "security groups"
    pairs = [(pair.ip_address, pair.mac_address) for pair in wanted.allowed_address_pairs]
    has_pairs = port.has_pairs(pairs, found.body) or (edited is not None and port.has_pairs(edited, found.body))
    if is_secured and not has_pairs:
        yield PAIRS, "allowed address pairs"
    if not _addresses_fit(wanted, found):
        yield "fixed IPs", "fixed IPs"
    if (found.admin_state_up is not False) is not (wanted.admin_state_up is not False):
        yield "admin state", "admin state"


def port_repair(kind: str, wanted: ResolvedPortSpec, found: Port, *, edited: Pairs | None) -> Json:
    """Return the fields of a port that bring back what is missing; empty if nothing is.

    What others added is kept. A port without port security accepts neither groups nor pairs.
    """
    if found.port_security_enabled is False:
        return {}
    if kind == GROUPS:
        missing = set(wanted.security_groups) - set(found.security_groups)
        return {"security_groups": [*found.security_groups, *sorted(missing)]} if missing else {}
    asked = (
        edited if edited is not None else [(pair.ip_address, pair.mac_address) for pair in wanted.allowed_address_pairs]
    )
    pairs = port.exchanged_pairs(found.body, added=asked, removed=())
    return {"allowed_address_pairs": pairs} if pairs is not None else {}


def _addresses_fit(wanted: ResolvedPortSpec, found: Port) -> bool:
    """Return whether a port still has each requested address, and one in each requested subnet."""
    has = [(each.subnet_id, port.spelled(each.ip_address)) for each in found.fixed_ips]
    return all(any(_fits(each, *one) for one in has) for each in wanted.fixed_ips)


def _fits(wanted: ResolvedFixedIP, subnet: str, address: str) -> bool:
    is_in_subnet = not wanted.subnet or wanted.subnet == subnet
    return is_in_subnet and (not wanted.ip_address or port.spelled(wanted.ip_address) == address)


def server_drift(spec: OpenStackServerSpec, volume_ids: set[str], found: Server) -> dict[str, str]:
    """Return how a server's metadata, tags and volumes differ from its creation, as messages by kind.

    Args:
        volume_ids: of the volumes that it was created with.
    """
    changes = {}
    if other := changed_metadata(spec, found):
        changes[METADATA] = f"metadata changed: {', '.join(sorted(other))}"
    if gone := missing_tags(spec, found):
        changes[TAGS] = f"tags removed: {', '.join(gone)}"
    if found.volumes is not None and (loose := sorted(volume_ids - {each.id for each in found.volumes})):
        changes["volumes"] = f"volumes detached: {', '.join(loose)}"
    return changes


def changed_metadata(spec: OpenStackServerSpec, found: Server) -> dict[str, str]:
    """Return the metadata of the spec that the server has not; keys of others do not count."""
    has = found.metadata
    return (
        {}
        if has is None
        else {each.key: each.value for each in spec.server_metadata if has.get(each.key) != each.value}
    )


def missing_tags(spec: OpenStackServerSpec, found: Server) -> list[str]:
    """Return the tags of the spec that the server has not; tags of others do not count."""
    return [] if found.tags is None else sorted(set(spec.tags) - set(found.tags))
