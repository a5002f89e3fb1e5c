"""Neutron ports.

Source: Networking API, "Ports". Neutron accepts no tags in a POST; the stamp is in the description, the user's tags are
set afterwards.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock, Semaphore
from typing import Any, Final
from weakref import WeakKeyDictionary

from capo import names
from capo.errors import InvalidSpecError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import extension, tags, view
from capo.openstack.cloud import Cloud
from capo.openstack.pages import Listing
from capo.openstack.resource_cache import Index

AT_ONCE: Final = 4
"""Concurrent requests that create ports on one network."""
_REFUSED_KEYS: Final = ("shared", "tenant_id", "project_id", "id", "name", "description")


class FixedIP(view.View):
    """An address of a port."""

    subnet_id = view.text("subnet_id")
    ip_address = view.text("ip_address")


class AddressPair(view.View):
    """An allowed address pair of a port."""

    ip_address = view.text("ip_address")


class Port(view.View):
    """A port as Neutron shows it. Source: Networking API, "Show port details"."""

    id = view.text("id")
    name = view.text("name")
    description = view.text("description")
    network_id = view.text("network_id")
    device_id = view.text("device_id")  # a server, a router, or what Octavia writes
    device_owner = view.text("device_owner")
    trunk_details = view.optional_mapping("trunk_details")  # if it is the parent of a trunk
    fixed_ips = view.views(FixedIP, "fixed_ips")
    security_groups = view.texts("security_groups")
    address_pairs = view.views(AddressPair, "allowed_address_pairs")
    port_security_enabled = view.flag("port_security_enabled")
    admin_state_up = view.flag("admin_state_up")
    created_at = view.optional_text("created_at")

    @property
    def subnet_ids(self) -> set[str]:
        """The subnets in which it has an address."""
        return {each.subnet_id for each in self.fixed_ips}


BY_DEVICE: Final = Index(lambda body: [device_id] if (device_id := Port(body).device_id) else [])
BY_GROUP: Final = Index(lambda body: Port(body).security_groups)


@dataclass(frozen=True)
class WantedPort:
    """A port to create; everything that it refers to exists.

    Args:
        description: text of the Go provider; the stamp is appended.
        fixed_ips: subnet id and IP address of each address, either may be None; empty lets Neutron choose.
        security_group_ids: None or empty uses the project's default group.
        allowed_address_pairs: IP address or CIDR, and MAC address or None.
        has_port_security: None uses the network's setting.
        value_specs: more attributes, with the user's names.
    """

    stamp: Stamp
    name: str
    network_id: str
    description: str = ""
    fixed_ips: Sequence[tuple[str | None, str | None]] = ()
    security_group_ids: Sequence[str] | None = None
    admin_state_up: bool | None = None
    mac_address: str | None = None
    allowed_address_pairs: Sequence[tuple[str, str | None]] = ()
    host_id: str | None = None
    vnic_type: str | None = None
    has_hw_offload: bool = False
    has_trusted_vf: bool = False
    has_port_security: bool | None = None
    propagates_uplink_status: bool | None = None
    value_specs: Sequence[tuple[str, str]] = ()


def create_all(cloud: Cloud, wanted: Sequence[WantedPort]) -> list[Body]:
    """Create ports in one call, all or none; return them in the same order."""
    has_attribute = any(each.has_trusted_vf for each in wanted) and extension.is_there(cloud, extension.TRUSTED_VIF)
    bodies = [request(each, has_trusted_attribute=has_attribute) for each in wanted]
    with _few_on(cloud, sorted({each.network_id for each in wanted})):
        made = cloud.post("network", "/ports", json={"ports": bodies})["ports"]
    by_stamp = {body.get("description"): body for body in made}
    return [by_stamp[body["description"]] for body in bodies]


def create(cloud: Cloud, wanted: WantedPort) -> Body:
    """Create one port."""
    return create_all(cloud, [wanted])[0]


def in_network(cloud: Cloud, network_id: str) -> Listing:
    """Return the project's ports in a network, read from Neutron."""
    params = {"network_id": network_id, "project_id": cloud.project_id}
    return cloud.listing("network", "/ports", "ports", params=params)


def get(cloud: Cloud, port_id: str) -> Body:
    """Return a port, read from Neutron.

    Raises:
        NotFoundError: it does not exist.
    """
    body: Body = cloud.get("network", f"/ports/{port_id}")["port"]
    return body


def update(cloud: Cloud, found: Mapping[str, Any], changes: Mapping[str, Any]) -> Body:
    """Change fields of a port; return it.

    Args:
        found: the port as it was read. Lists in ``changes`` were worked out from it, and replace what the port has.

    Raises:
        ConflictError: the port was changed since; nothing was done. A Neutron without the extension revision-if-match
            does not notice that.

    Source: Networking API, "Revision-based conditional updates".
    """
    condition, revision = {}, found.get("revision_number")
    if revision is not None and extension.is_there(cloud, extension.REVISION_MATCH):
        condition = {"If-Match": f"revision_number={revision}"}
    path = f"/ports/{found['id']}"
    port: Body = cloud.put("network", path, json={"port": dict(changes)}, headers=condition)["port"]
    return port


def replace_tags(cloud: Cloud, body: Mapping[str, Any], wanted: Sequence[str]) -> Body:
    """Replace the tags of a port; return its body with them."""
    return tags.replace(cloud, "ports", body, wanted)


def delete(cloud: Cloud, port_id: str) -> None:
    """Delete a port; succeed if it does not exist."""
    cloud.remove("network", f"/ports/{port_id}")


def request(wanted: WantedPort, *, has_trusted_attribute: bool = False) -> Body:
    """Return one port as the create sends it.

    Args:
        has_trusted_attribute: the cloud accepts ``trusted`` as an attribute of its own, else it is a part of the
            profile.

    Raises:
        InvalidSpecError: wishes contradict each other, or a value spec names a reserved attribute.
    """
    if wanted.has_port_security is False and wanted.security_group_ids:
        raise InvalidSpecError(f"port {wanted.name}: security groups need port security, which is switched off")
    optional = {
        "admin_state_up": wanted.admin_state_up,
        "mac_address": wanted.mac_address or None,
        "fixed_ips": [_fixed_ip(*each) for each in wanted.fixed_ips] or None,
        "security_groups": list(wanted.security_group_ids or ()) or None,
        "allowed_address_pairs": _pairs(wanted) or None,
        "port_security_enabled": wanted.has_port_security,
        "propagate_uplink_status": wanted.propagates_uplink_status,
        "binding:host_id": wanted.host_id or None,
        "binding:vnic_type": wanted.vnic_type or None,
        "binding:profile": _profile(wanted, has_trusted_attribute=has_trusted_attribute) or None,
        "trusted": True if wanted.has_trusted_vf and has_trusted_attribute else None,
    }
    body = {
        "network_id": wanted.network_id,
        "name": wanted.name,
        "description": names.stamped(wanted.description, wanted.stamp),
        **{name: value for name, value in optional.items() if value is not None},
    }
    return {**body, **_value_specs(wanted, body)}


def _fixed_ip(subnet_id: str | None, address: str | None) -> Body:
    return {**({"subnet_id": subnet_id} if subnet_id else {}), **({"ip_address": address} if address else {})}


def _pairs(wanted: WantedPort) -> list[Body]:
    if wanted.has_port_security is False:
        return []
    return [_pair(address, mac) for address, mac in wanted.allowed_address_pairs]


def _pair(address: str, mac: str | None) -> Body:
    return {"ip_address": address, **({"mac_address": mac} if mac else {})}


def _profile(wanted: WantedPort, *, has_trusted_attribute: bool) -> Body:
    offload = {"capabilities": ["switchdev"]} if wanted.has_hw_offload else {}
    is_trusted = wanted.has_trusted_vf and not has_trusted_attribute
    return {**offload, **({"trusted": True} if is_trusted else {})}


def _value_specs(wanted: WantedPort, body: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in wanted.value_specs:
        if key in _REFUSED_KEYS or key in body or key in found:
            raise InvalidSpecError(f"port {wanted.name}: valueSpecs must not set {key!r}")
        found[key] = value
    return found


def has_pairs(wanted: Iterable[tuple[str, str | None]], found: Mapping[str, Any]) -> bool:
    """Return whether a port has exactly these allowed address pairs, in any spelling.

    Neutron fills in a missing MAC address with the port's own.
    """
    own_mac = found.get("mac_address")
    has = [(pair["ip_address"], pair.get("mac_address")) for pair in found.get("allowed_address_pairs") or ()]
    as_told, as_wanted = ({pair_key(address, mac or own_mac) for address, mac in pairs} for pairs in (has, wanted))
    return as_told == as_wanted


def exchanged_pairs(
    found: Mapping[str, Any], *, added: Iterable[tuple[str, str | None]], removed: Iterable[tuple[str, str | None]]
) -> list[Body] | None:
    """Return the allowed address pairs of a port after an edit, or None if it has them already.

    Pairs that the edit does not name are kept; a pair that is added and removed, in two spellings, is kept, too.
    """
    own_mac = found.get("mac_address")
    present = {
        pair_key(pair["ip_address"], pair.get("mac_address") or own_mac): _pair(
            pair["ip_address"], pair.get("mac_address")
        )
        for pair in found.get("allowed_address_pairs") or ()
    }
    new = {pair_key(address, mac or own_mac): _pair(address, mac) for address, mac in added}
    gone = {pair_key(address, mac or own_mac) for address, mac in removed} - new.keys()
    result = {**new, **{key: pair for key, pair in present.items() if key not in gone}}
    return None if result.keys() == present.keys() else list(result.values())


def pair_key(address: str, mac: str | None) -> tuple[str, str]:
    """Return what two spellings of an allowed address pair have in common."""
    return spelled(address), _spelled_mac(mac)


def spelled(address: str) -> str:
    """Return an address or CIDR in canonical spelling for comparison; anything else is returned unchanged."""
    try:
        return str(ipaddress.ip_network(address, strict=False))
    except ValueError:
        return address


def _spelled_mac(address: str | None) -> str:
    return (address or "").lower().replace("-", ":")


_PLACES: WeakKeyDictionary[Cloud, dict[str, Semaphore]] = WeakKeyDictionary()
_PLACES_LOCK: Final = Lock()


@contextmanager
def _few_on(cloud: Cloud, network_ids: Sequence[str]) -> Iterator[None]:
    """Limit concurrent creates on one network: too many conflict over addresses (ADR 0003)."""
    with _PLACES_LOCK:
        known = _PLACES.setdefault(cloud, {})
        places = [known.setdefault(network_id, Semaphore(AT_ONCE)) for network_id in network_ids]
    with ExitStack() as taken:
        for place in places:
            taken.enter_context(place)
        yield
