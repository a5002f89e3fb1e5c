"""Subnet pools: prefixes from which subnets take their CIDR."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import checks
from capo.simulator.neutron.kind import REQUIRED, UNSET, Attribute, Caller, Kind, new, own, touch
from capo.simulator.routing import Fault

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
SHORTEST: Final = {4: 8, 6: 64}
"""Shortest prefix of a subnet, by IP version, if the pool sets none."""


def missing(pool_id: str) -> Fault:
    return Fault(404, f"Subnet pool {pool_id} could not be found.", "SubnetPoolNotFound")


def create(cloud: Cloud, values: Json, _: Caller) -> Json:
    prefixes = [ipaddress.ip_network(prefix) for prefix in values["prefixes"]]
    version = prefixes[0].version
    shortest = SHORTEST[version] if values["min_prefixlen"] is UNSET else values["min_prefixlen"]
    longest = prefixes[0].max_prefixlen if values["max_prefixlen"] is UNSET else values["max_prefixlen"]
    usual = shortest if values["default_prefixlen"] is UNSET else values["default_prefixlen"]
    given = {
        **values,
        "prefixes": [str(prefix) for prefix in prefixes],
        "ip_version": version,
        # Neutron shows them as text.
        "min_prefixlen": str(shortest),
        "max_prefixlen": str(longest),
        "default_prefixlen": str(usual),
    }
    pool = new(cloud, given, revision=0)
    KIND.table(cloud)[pool["id"]] = pool
    return pool


def update(cloud: Cloud, pool: Json, changes: Json, _: Caller) -> None:
    pool.update(changes)
    touch(cloud, pool)


def delete(cloud: Cloud, pool: Json, _: Caller) -> None:
    if any(subnet["subnetpool_id"] == pool["id"] for subnet in cloud.table("network", "subnets").values()):
        message = "Unable to delete subnet pool: Subnet pool has existing allocations."
        raise Fault(400, message, "SubnetPoolDeleteError")
    KIND.table(cloud).pop(pool["id"])


def view(_: Cloud, pool: Json) -> Json:
    return pool


def _is_visible(cloud: Cloud, pool: Json, caller: Caller) -> bool:
    return own(cloud, pool, caller) or bool(pool["shared"])


def take(cloud: Cloud, pool_id: str, values: Json, caller: Caller) -> Network:
    """Return a CIDR of a pool for the values of a new subnet.

    Raises:
        Fault: there is no such pool, it is of the other IP version, or it has no prefix of this length.
    """
    pool = KIND.find(cloud, pool_id, caller)
    if pool["ip_version"] != values["ip_version"]:
        raise Fault(
            400,
            f"Bad subnets request: Cannot allocate IPv{values['ip_version']} subnet from IPv{pool['ip_version']} "
            "subnet pool.",
            "BadRequest",
        )
    length = int(pool["default_prefixlen"]) if values["prefixlen"] is UNSET else values["prefixlen"]
    free = _free(cloud, pool, length)
    if free is None:
        message = f"Failed to allocate subnet: Insufficient prefix space to allocate subnet size /{length}."
        raise Fault(500, message, "SubnetAllocationError")
    return free


def _free(cloud: Cloud, pool: Json, length: int) -> Network | None:
    """Return the first free CIDR of a length."""
    longest = 32 if pool["ip_version"] == 4 else 128
    if length > longest:
        first = ipaddress.IPv4Address(0) if longest == 32 else ipaddress.IPv6Address(0)
        raise Fault(400, f"invalid IPNetwork {first}/{length}", "AddrFormatError")
    _check_length(pool, length)
    taken = list(_taken(cloud, pool))
    for prefix in map(ipaddress.ip_network, pool["prefixes"]):
        found = _gap(prefix, length, taken)
        if found is not None:
            return found
    return None


def _check_length(pool: Json, length: int) -> None:
    text = f"Unable to allocate subnet with prefix length {length}"
    if length > int(pool["max_prefixlen"]):
        message = f"{text}, maximum allowed prefix is {pool['max_prefixlen']}."
        raise Fault(400, message, "MaxPrefixSubnetAllocationError")
    if length < int(pool["min_prefixlen"]):
        message = f"{text}, minimum allowed prefix is {pool['min_prefixlen']}."
        raise Fault(400, message, "MinPrefixSubnetAllocationError")


def _taken(cloud: Cloud, pool: Json) -> Iterator[Network]:
    for subnet in cloud.table("network", "subnets").values():
        if subnet["subnetpool_id"] == pool["id"]:
            yield ipaddress.ip_network(subnet["cidr"])


def _gap(prefix: Network, length: int, taken: list[Network]) -> Network | None:
    if length < prefix.prefixlen:
        return None
    size = 1 << (prefix.max_prefixlen - length)
    at = int(prefix.network_address)
    while at <= int(prefix.broadcast_address):
        found = type(prefix)((at, length))
        overlapping = [each for each in taken if each.overlaps(found)]
        if not overlapping:
            return found
        after = max(int(each.broadcast_address) for each in overlapping) + 1
        at = -(-after // size) * size
    return None


KIND: Final = Kind(
    name="subnetpool",
    plural="subnetpools",
    path="subnetpools",
    attributes=(
        Attribute("name", "PUFS", checks.string(255), REQUIRED),
        Attribute("prefixes", "PU", checks.list_of(checks.cidr), REQUIRED),
        Attribute("default_quota", "PU", checks.or_none(checks.non_negative), None),
        Attribute("ip_version", "FS"),
        Attribute("default_prefixlen", "PUFS", checks.non_negative),
        Attribute("min_prefixlen", "PUFS", checks.non_negative),
        Attribute("max_prefixlen", "PUFS", checks.non_negative),
        Attribute("is_default", "PUFS", checks.boolean, default=False, admin="PU"),
        Attribute("shared", "PFS", checks.boolean, default=False, admin="P"),
        Attribute("address_scope_id", "PUFS", checks.or_none(checks.uuid_text), None),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=_is_visible,
    is_owner=own,
)
