"""Networks."""

from __future__ import annotations

import secrets
from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks
from capo.simulator.neutron.kind import UNSET, Attribute, Caller, Kind, new, own, touch
from capo.simulator.neutron.service import invalid_input
from capo.simulator.routing import Fault

MTU: Final = 1450
EXTERNAL_MTU: Final = 1500
# A network with only these on it may be deleted; they are deleted with it.
AUTOMATIC_OWNERS: Final = frozenset({"network:dhcp", "network:distributed"})


def missing(network_id: str) -> Fault:
    return Fault(404, f"Network {network_id} could not be found.", "NetworkNotFound")


def _zone_hints(value: Any) -> list[str]:
    hints: list[str] = checks.list_of(checks.string(255))(value)
    if hints:
        raise Fault(404, f"AvailabilityZone {hints[0]} could not be found.", "AvailabilityZoneNotFound")
    return hints


def create(cloud: Cloud, values: Json, _: Caller) -> Json:
    is_flat = values["provider:network_type"] == "flat"
    limit = EXTERNAL_MTU if is_flat else MTU
    _check_mtu(values, limit)
    given = {
        **values,
        "mtu": values["mtu"] or limit,
        "status": "ACTIVE",
        "availability_zones": [],
        "ipv4_address_scope": None,
        "ipv6_address_scope": None,
        "qinq": False,
        "vlan_transparent": False,
    }
    if values["provider:network_type"] is UNSET:
        given |= {
            "provider:network_type": "vxlan",
            "provider:physical_network": None,
            "provider:segmentation_id": 1 + secrets.randbelow(10_000),
        }
    network = new(cloud, given)
    network.setdefault("provider:segmentation_id", None)
    network.setdefault("provider:physical_network", None)
    KIND.table(cloud)[network["id"]] = network
    return network


def _check_mtu(values: Json, limit: int) -> None:
    if values.get("mtu", 0) > limit:
        raise invalid_input(f"Requested MTU is too big, maximum is {limit}.")


def update(cloud: Cloud, network: Json, changes: Json, _: Caller) -> None:
    _check_mtu(changes, EXTERNAL_MTU if network["provider:network_type"] == "flat" else MTU)
    network.update(changes)
    touch(cloud, network)


def delete(cloud: Cloud, network: Json, _: Caller) -> None:
    """Delete a network with its subnets, unless a port is on it."""
    ports = cloud.table("network", "ports")
    on_it = [port for port in ports.values() if port["network_id"] == network["id"]]
    in_use = [port["id"] for port in on_it if port["device_owner"] not in AUTOMATIC_OWNERS]
    if in_use:
        raise Fault(
            409,
            f"Unable to complete operation on network {network['id']}. There are one or more ports still in use on "
            f"the network, id for these ports is: {','.join(sorted(in_use))}.",
            "NetworkInUse",
        )
    for port in on_it:
        ports.pop(port["id"])
    subnets = cloud.table("network", "subnets")
    for subnet_id in subnets_of(cloud, network["id"]):
        subnets.pop(subnet_id)
    KIND.table(cloud).pop(network["id"])


def subnets_of(cloud: Cloud, network_id: str) -> list[str]:
    """Return the ids of a network's subnets, in Neutron's order."""
    return sorted(
        subnet["id"] for subnet in cloud.table("network", "subnets").values() if subnet["network_id"] == network_id
    )


def view(cloud: Cloud, network: Json) -> Json:
    """Return a network; only external ones show whether they are the default."""
    shown = view_when_made(cloud, network)
    if not network["router:external"]:
        shown.pop("is_default")
    return shown


def view_when_made(cloud: Cloud, network: Json) -> Json:
    """Return a network as the answer to its POST shows it."""
    return {**network, "subnets": subnets_of(cloud, network["id"])}


def is_visible(cloud: Cloud, network: Json, caller: Caller) -> bool:
    return own(cloud, network, caller) or network["shared"] or network["router:external"]


def owns_network(cloud: Cloud, network_id: str, caller: Caller) -> bool:
    """Return whether the network belongs to the caller's project."""
    network = KIND.table(cloud).get(network_id)
    return caller.is_admin or (network is not None and network["project_id"] == caller.project_id)


KIND: Final = Kind(
    name="network",
    plural="networks",
    path="networks",
    attributes=(
        Attribute("name", "PUFS", checks.string(255), ""),
        Attribute("subnets", ""),
        Attribute("admin_state_up", "PUFS", checks.boolean, default=True),
        Attribute("status", "FS"),
        Attribute("shared", "PUFE", checks.boolean, default=False, admin="PU"),
        Attribute("ipv4_address_scope", ""),
        Attribute("ipv6_address_scope", ""),
        Attribute("is_default", "PUFE", checks.boolean, default=False, admin="PU"),
        Attribute("dns_domain", "PU", checks.string(255), ""),
        Attribute("router:external", "PUFE", checks.boolean, default=False, admin="PU"),
        Attribute("availability_zones", ""),
        Attribute("availability_zone_hints", "PS", _zone_hints, []),
        Attribute("mtu", "PUFS", checks.non_negative, 0),
        Attribute("port_security_enabled", "PUE", checks.boolean, default=True),
        Attribute("provider:network_type", "PUFE", checks.string(32), admin="PU"),
        Attribute("provider:physical_network", "PUFE", checks.or_none(checks.string(64)), admin="PU"),
        Attribute("provider:segmentation_id", "PUFE", checks.or_none(checks.integer), admin="PU"),
        Attribute("qinq", "PF", checks.boolean),
        Attribute("vlan_transparent", "PF", checks.boolean),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    view_when_made=view_when_made,
    is_visible=is_visible,
    is_owner=own,
    hidden=frozenset({"provider:network_type", "provider:physical_network", "provider:segmentation_id"}),
    unfiltered=frozenset({"is_default", "qinq"}),
    whole=frozenset({"mtu"}),
    lost_marker="refused",
)
