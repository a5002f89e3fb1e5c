"""Fixed addresses: which are in use, which are valid, and which one is next."""

from __future__ import annotations

import ipaddress
import secrets
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron.kind import touch
from capo.simulator.neutron.service import invalid_input
from capo.simulator.routing import Fault

# Enough random tries to probably find a free address in a pool that is not nearly full.
GUESSES: Final = 16
SLAAC: Final = frozenset({"slaac", "dhcpv6-stateless"})
INTERFACE: Final = "network:router_interface"
INTERFACES: Final = (INTERFACE, "network:router_interface_distributed", "network:ha_router_replicated_interface")
"""Device owners of a router's interfaces: of a plain one, a distributed one, and one with L3 HA."""


def missing_subnet(subnet_id: str) -> Fault:
    return Fault(404, f"Subnet {subnet_id} could not be found.", "SubnetNotFound")


def taken(cloud: Cloud, subnet_id: str, *, but: str = "") -> set[str]:
    """Return the addresses in use on a subnet, except those of one port."""
    return {
        fixed["ip_address"]
        for port in cloud.table("network", "ports").values()
        if port["id"] != but
        for fixed in port["fixed_ips"]
        if fixed["subnet_id"] == subnet_id
    }


class Allocation:
    """The addresses of one port, allocated from the subnets of its network."""

    def __init__(self, cloud: Cloud, network_id: str, mac: str, *, port_id: str = "") -> None:
        self.cloud = cloud
        self.network_id = network_id
        self.mac = mac
        self.port_id = port_id
        self.found: list[Json] = []
        on_network = [item for item in cloud.table("network", "subnets").values() if item["network_id"] == network_id]
        self.subnets = sorted(on_network, key=lambda item: str(item["id"]))

    def automatic(self) -> list[Json]:
        """Allocate an address of each IP version of the network."""
        for version in (4, 6):
            candidates = [item for item in self.subnets if item["ip_version"] == version and not is_slaac(item)]
            if candidates:
                self._take_from_any(candidates)
        self._add_slaac()
        return self._sorted()

    def requested(
        self, wanted: list[Json], *, current: list[Json] | None = None, with_slaac: bool = True
    ) -> list[Json]:
        """Allocate the requested addresses.

        Args:
            wanted: Entries with an address, a subnet or both.
            current: The port's present addresses; one is kept if only its subnet is requested.
            with_slaac: Whether addresses that routers advertise are added.
        """
        keep = list(current or [])
        for entry in wanted:
            if "ip_address" in entry:
                self._take_address(entry["ip_address"], entry.get("subnet_id"), with_slaac=with_slaac)
            elif "subnet_id" in entry:
                self._take_in_subnet(entry["subnet_id"], keep)
            else:
                raise invalid_input("IP allocation requires subnet_id or ip_address.")
        if with_slaac:
            self._add_slaac()
        return self._sorted()

    def _take_in_subnet(self, subnet_id: str, keep: list[Json]) -> None:
        subnet = self._subnet(subnet_id)
        kept = next((fixed for fixed in keep if fixed["subnet_id"] == subnet_id), None)
        if kept is not None:
            keep.remove(kept)
            self.found.append(kept)
        elif is_slaac(subnet):
            self.found.append({"subnet_id": subnet_id, "ip_address": eui64(subnet["cidr"], self.mac)})
        else:
            self._take_from_any([subnet])

    def _take_address(self, address: str, subnet_id: str | None, *, with_slaac: bool) -> None:
        if subnet_id is not None:
            subnet = self._subnet(subnet_id)
            if not is_usable(address, subnet):
                message = f"IP address {address} is not a valid IP for the specified subnet."
                raise Fault(400, message, "InvalidIpForSubnet")
        else:
            subnet = next((item for item in self.subnets if is_usable(address, item)), {})
            if not subnet:
                message = f"IP address {address} is not a valid IP for any of the subnets on the specified network."
                raise Fault(400, message, "InvalidIpForNetwork")
        if with_slaac and is_slaac(subnet) and address != eui64(subnet["cidr"], self.mac):
            message = (
                f"IPv6 address {address} cannot be directly assigned to a port on subnet {subnet['id']} as the subnet "
                "is configured for automatic addresses"
            )
            raise Fault(400, message, "AllocationOnAutoAddressSubnet")
        if address in self._taken(subnet["id"]):
            message = f"IP address {address} already allocated in subnet {subnet['id']}"
            raise Fault(409, message, "IpAddressAlreadyAllocated")
        self.found.append({"subnet_id": subnet["id"], "ip_address": address})

    def _take_from_any(self, candidates: list[Json]) -> None:
        for subnet in candidates:
            address = next_free(subnet, self._taken(subnet["id"]))
            if address is not None:
                self.found.append({"subnet_id": subnet["id"], "ip_address": address})
                return
        message = f"No more IP addresses available on network {self.network_id}."
        raise Fault(409, message, "IpAddressGenerationFailure")

    def _add_slaac(self) -> None:
        have = {fixed["subnet_id"] for fixed in self.found}
        for subnet in self.subnets:
            if is_slaac(subnet) and subnet["id"] not in have:
                self.found.append({"subnet_id": subnet["id"], "ip_address": eui64(subnet["cidr"], self.mac)})

    def _subnet(self, subnet_id: str) -> Json:
        subnet = self.cloud.table("network", "subnets").get(subnet_id)
        if subnet is None:
            raise missing_subnet(subnet_id)
        if subnet["network_id"] != self.network_id:
            raise invalid_input(
                f"Failed to create port on network {self.network_id}, because fixed_ips included invalid subnet "
                f"{subnet_id}."
            )
        return subnet

    def _taken(self, subnet_id: str) -> set[str]:
        mine = {fixed["ip_address"] for fixed in self.found if fixed["subnet_id"] == subnet_id}
        return mine | taken(self.cloud, subnet_id, but=self.port_id)

    def _sorted(self) -> list[Json]:
        return sorted(self.found, key=lambda fixed: str(fixed["ip_address"]))


def is_slaac(subnet: Json) -> bool:
    """Return whether addresses of the subnet are derived from the MAC address."""
    return subnet["ipv6_address_mode"] in SLAAC


def add_slaac(cloud: Cloud, subnet: Json) -> None:
    """Give the ports of a network their address in a new subnet with automatic addresses; routers get none."""
    if not is_slaac(subnet):
        return
    for port in cloud.table("network", "ports").values():
        if port["network_id"] == subnet["network_id"] and port["device_owner"] not in INTERFACES:
            fixed = {"subnet_id": subnet["id"], "ip_address": eui64(subnet["cidr"], port["mac_address"])}
            port["fixed_ips"] = sorted([*port["fixed_ips"], fixed], key=lambda each: str(each["ip_address"]))
            touch(cloud, port)


def is_usable(address: str, subnet: Json) -> bool:
    """Return whether an address may be used on a subnet: within it, and not its first or last one for IPv4."""
    cidr, wanted = ipaddress.ip_network(subnet["cidr"]), ipaddress.ip_address(address)
    if wanted not in cidr:
        return False
    return cidr.version == 6 or cidr.num_addresses <= 2 or wanted not in {cidr[0], cidr[-1]}


def next_free(subnet: Json, used: set[str]) -> str | None:
    """Return a random free address of the subnet's pools, as Neutron does; None if there is none."""
    for pool in subnet["allocation_pools"]:
        start, end = ipaddress.ip_address(pool["start"]), ipaddress.ip_address(pool["end"])
        make, size = type(start), int(end) - int(start) + 1
        guesses = (int(start) + secrets.randbelow(size) for _ in range(GUESSES))
        for number in guesses:
            if str(make(number)) not in used:
                return str(make(number))
        for number in range(int(start), min(int(end), int(start) + len(used)) + 1):
            if str(make(number)) not in used:
                return str(make(number))
    return None


def eui64(cidr: str, mac: str) -> str:
    """Return the address that a host with this MAC address uses on an advertised prefix.

    Source: RFC 4291, appendix A.
    """
    octets = [int(part, 16) for part in mac.split(":")]
    octets[0] ^= 2
    host = bytes([*octets[:3], 0xFF, 0xFE, *octets[3:]])
    network = ipaddress.ip_network(cidr)
    return str(ipaddress.IPv6Address(int(network.network_address) + int.from_bytes(host, "big")))
