"""Subnets: gateway, allocation pools, overlap."""

from __future__ import annotations

import ipaddress
import itertools
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import addresses, checks, network, subnetpool
from capo.simulator.neutron.kind import REQUIRED, UNSET, Attribute, Caller, Kind, new, own, touch
from capo.simulator.neutron.service import disallowed, invalid_input
from capo.simulator.routing import Fault

V6_MODES: Final = ("dhcpv6-stateful", "dhcpv6-stateless", "slaac", None)
MAX_NAME_SERVERS: Final = 5
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


missing: Final = addresses.missing_subnet


def create(cloud: Cloud, values: Json, caller: Caller) -> Json:
    parent = network.KIND.table(cloud).get(values["network_id"])
    if parent is None:
        raise network.missing(values["network_id"])
    if not own(cloud, parent, caller):
        raise disallowed("rule:create_subnet")
    cidr, pool_id = _cidr(cloud, values, caller)
    gateway = values["gateway_ip"]
    if gateway is UNSET:
        # In a pool, it is the second address of either IP version.
        is_second = (cidr.version == 4 or pool_id) and cidr.num_addresses > 1
        gateway = str(cidr[1] if is_second else cidr[0])
    _check_gateway(cidr, gateway)
    pools = values["allocation_pools"]
    if pools is UNSET:
        pools = default_pools(cidr, gateway)
    else:
        check_pools(cidr, pools, gateway)
    given = {
        **values,
        "gateway_ip": gateway,
        "allocation_pools": pools,
        "cidr": str(cidr),
        "subnetpool_id": pool_id,
        "router:external": parent["router:external"],
    }
    _check_name_servers("new subnet", cidr.version, values["dns_nameservers"])
    for name in ("dns_nameservers", "host_routes", "service_types"):
        given[name] = [] if values[name] is UNSET else values[name]
    for name in ("ipv6_ra_mode", "ipv6_address_mode"):
        given[name] = None if values[name] is UNSET else values[name]
    for name in ("prefixlen", "use_default_subnetpool"):
        given.pop(name)
    subnet = new(cloud, given, revision=0)
    KIND.table(cloud)[subnet["id"]] = subnet
    touch(cloud, parent)
    addresses.add_slaac(cloud, subnet)
    return subnet


def _cidr(cloud: Cloud, values: Json, caller: Caller) -> tuple[Network, str | None]:
    """Return the CIDR of a new subnet, and the id of the pool that it is from."""
    given = None if values["cidr"] is UNSET else values["cidr"]
    pool_id = None if values["subnetpool_id"] is UNSET else values["subnetpool_id"]
    if given and values["prefixlen"] is not UNSET:
        raise _bad("cidr and prefixlen must not be supplied together.")
    if given is None and pool_id is None:
        raise _bad("a subnetpool must be specified in the absence of a cidr.")
    if given is None and values["allocation_pools"] is not UNSET:
        raise _bad("allocation_pools allowed only for specific subnet requests..")
    cidr = ipaddress.ip_network(given) if given else None
    if cidr is not None and cidr.version == values["ip_version"] == 6 and int(cidr.network_address) == 0:
        raise invalid_input("IPv6 subnet '::' is not supported.")
    if cidr is not None:
        _check_cidr(cloud, values, cidr)
    _check_modes(values, cidr)
    return cidr or subnetpool.take(cloud, str(pool_id), values, caller), pool_id


def _bad(message: str) -> Fault:
    return Fault(400, f"Bad subnets request: {message}", "BadRequest")


def _check_modes(values: Json, cidr: Network | None) -> None:
    """Refuse modes that do not fit to the subnet or to each other."""
    modes = {name: values[name] for name in ("ipv6_ra_mode", "ipv6_address_mode") if values[name] not in {UNSET, None}}
    for name in modes:
        if values["ip_version"] == 4:
            raise invalid_input(f"{name} is not valid when ip_version is 4.")
    if modes and not values["enable_dhcp"]:
        raise invalid_input("ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False.")
    if len(set(modes.values())) > 1:
        raise invalid_input(
            f"ipv6_ra_mode set to '{modes['ipv6_ra_mode']}' with ipv6_address_mode set to "
            f"'{modes['ipv6_address_mode']}' is not valid. If both attributes are set, they must be the same value."
        )
    is_automatic = modes.get("ipv6_address_mode") in addresses.SLAAC
    if is_automatic and cidr is not None and cidr.prefixlen != 64:
        raise invalid_input(
            f"Invalid CIDR {cidr} for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the "
            "prefix to be /64."
        )


def _check_cidr(cloud: Cloud, values: Json, cidr: Network) -> None:
    if cidr.version != values["ip_version"]:
        raise invalid_input(f"cidr '{cidr}' does not match the ip_version '{values['ip_version']}'.")
    if values["enable_dhcp"]:
        if cidr.num_addresses < 4:
            raise invalid_input("Subnet has a prefix length that is incompatible with DHCP service enabled.")
        if int(cidr.network_address) == 0:
            raise invalid_input(f"First IP '{cidr[0]}' of network is not supported if enable_dhcp is True..")
        for name, is_so in (("Multicast", cidr.is_multicast), ("Loopback", cidr.is_loopback)):
            if is_so:
                raise invalid_input(f"{name} IP subnet is not supported if enable_dhcp is True.")
    for other in KIND.table(cloud).values():
        if other["network_id"] != values["network_id"] or other["ip_version"] != cidr.version:
            continue
        if cidr.overlaps(ipaddress.ip_network(other["cidr"])):
            raise invalid_input(
                f"Requested subnet with cidr: {cidr} for network: {values['network_id']} overlaps with another subnet."
            )


def _check_name_servers(subnet_id: str, version: int, given: object) -> None:
    """Refuse too many name servers, and those of the other IP version."""
    servers = given if isinstance(given, list) else []
    if len(servers) > MAX_NAME_SERVERS:
        limit = f"The number of DNS nameservers exceeds the limit {MAX_NAME_SERVERS}."
        raise Fault(400, f"Unable to complete operation for {subnet_id}. {limit}", "DNSNameServersExhausted")
    for server in servers:
        if ipaddress.ip_address(server).version != version:
            raise invalid_input(f"dns_nameserver '{server}' does not match the ip_version '{version}'.")


def _check_gateway(cidr: Network, gateway: str | None) -> None:
    """Refuse the first and last address of a subnet as gateway; an address outside of it is accepted."""
    if gateway and cidr.version == 4 and cidr.num_addresses > 2 and gateway in {str(cidr[0]), str(cidr[-1])}:
        raise invalid_input("Gateway is not valid on subnet.")


def default_pools(cidr: Network, gateway: str | None) -> list[Json]:
    """Return the ranges of a subnet that can be allocated: all but its first and last address and the gateway."""
    first, last = int(cidr[0]), int(cidr[-1])
    if cidr.num_addresses > 2:
        first += 1
        last -= 1 if cidr.version == 4 else 0
    make = type(cidr[0])
    at = int(ipaddress.ip_address(gateway)) if gateway else None
    ranges = [(first, last)] if at is None or not first <= at <= last else [(first, at - 1), (at + 1, last)]
    return [{"start": str(make(low)), "end": str(make(high))} for low, high in ranges if low <= high]


def check_pools(cidr: Network, pools: list[Json], gateway: str | None) -> None:
    """Refuse pools that are no ranges, leave the subnet, overlap, or contain the gateway."""
    spans = []
    for pool in pools:
        start, end = ipaddress.ip_address(pool["start"]), ipaddress.ip_address(pool["end"])
        if start.version != end.version or int(start) > int(end):
            raise Fault(400, f"The allocation pool {pool} is not valid.", "InvalidAllocationPool")
        if start not in cidr or end not in cidr:
            message = f"The allocation pool {start}-{end} spans beyond the subnet cidr {cidr}."
            raise Fault(400, message, "OutOfBoundsAllocationPool")
        spans.append((int(start), int(end), f"{start}-{end}"))
    spans.sort()
    for (_, end_of_one, one), (start_of_other, _, other) in itertools.pairwise(spans):
        if start_of_other <= end_of_one:
            message = f"Found overlapping allocation pools: {one} {other} for subnet {cidr}."
            raise Fault(409, message, "OverlappingAllocationPools")
    at = int(ipaddress.ip_address(gateway)) if gateway else -1
    for low, high, text in spans:
        if low <= at <= high:
            message = f"Gateway ip {gateway} conflicts with allocation pool {text}."
            raise Fault(409, message, "GatewayConflictWithAllocationPools")


def update(cloud: Cloud, subnet: Json, changes: Json, _: Caller) -> None:
    _check_name_servers(subnet["id"], subnet["ip_version"], changes.get("dns_nameservers"))
    if "gateway_ip" in changes or "allocation_pools" in changes:
        cidr = ipaddress.ip_network(subnet["cidr"])
        _check_gateway(cidr, changes.get("gateway_ip"))
        pools: list[Json] = changes.get("allocation_pools") or subnet["allocation_pools"]
        check_pools(cidr, pools, changes.get("gateway_ip", subnet["gateway_ip"]))
    subnet.update(changes)
    touch(cloud, subnet)


def delete(cloud: Cloud, subnet: Json, _: Caller) -> None:
    for port in cloud.table("network", "ports").values():
        uses = any(fixed["subnet_id"] == subnet["id"] for fixed in port["fixed_ips"])
        if addresses.is_slaac(subnet) and not port["device_owner"].startswith("network:router_"):
            # Such addresses go with their subnet.
            port["fixed_ips"] = [fixed for fixed in port["fixed_ips"] if fixed["subnet_id"] != subnet["id"]]
        elif uses and port["device_owner"] not in network.AUTOMATIC_OWNERS:
            message = (
                f"Unable to complete operation on subnet {subnet['id']}: "
                "One or more ports have an IP allocation from this subnet."
            )
            raise Fault(409, message, "SubnetInUse")
    KIND.table(cloud).pop(subnet["id"])
    touch(cloud, network.KIND.table(cloud)[subnet["network_id"]])


def view(_: Cloud, subnet: Json) -> Json:
    return subnet


def _is_visible(cloud: Cloud, subnet: Json, caller: Caller) -> bool:
    if own(cloud, subnet, caller):
        return True
    parent = network.KIND.table(cloud).get(subnet["network_id"])
    return parent is not None and network.is_visible(cloud, parent, caller)


def _is_owner(cloud: Cloud, subnet: Json, caller: Caller) -> bool:
    return own(cloud, subnet, caller) or network.owns_network(cloud, subnet["network_id"], caller)


KIND: Final = Kind(
    name="subnet",
    plural="subnets",
    path="subnets",
    attributes=(
        Attribute("name", "PUFS", checks.string(255), ""),
        Attribute("ip_version", "PFS", checks.one_of((4, 6), checks.integer), REQUIRED),
        Attribute("network_id", "PFS", checks.uuid_text, REQUIRED),
        Attribute("subnetpool_id", "PFS", checks.or_none(checks.uuid_text)),
        Attribute("prefixlen", "P", checks.non_negative),
        Attribute("cidr", "PFS", checks.or_none(checks.cidr)),
        Attribute("gateway_ip", "PUFS", checks.or_none(checks.ip_text)),
        Attribute("allocation_pools", "PU", checks.pools),
        Attribute("dns_nameservers", "PU", checks.nameservers),
        Attribute("host_routes", "PU", checks.host_routes),
        Attribute("enable_dhcp", "PUFS", checks.boolean, default=True),
        Attribute("ipv6_ra_mode", "PFS", checks.one_of(V6_MODES)),
        Attribute("ipv6_address_mode", "PFS", checks.one_of(V6_MODES)),
        Attribute("shared", "F", checks.boolean),
        Attribute("use_default_subnetpool", "P", checks.boolean, default=False),
        Attribute("router:external", "F", checks.boolean),
        Attribute("service_types", "PUE", checks.list_of(checks.string(255)), admin="PU"),
    ),
    missing=missing,
    create=create,
    update=update,
    delete=delete,
    view=view,
    is_visible=_is_visible,
    is_owner=_is_owner,
    unfiltered=frozenset({"shared"}),
    whole=frozenset({"ip_version"}),
    filter_values={"cidr": checks.cidr},
)
