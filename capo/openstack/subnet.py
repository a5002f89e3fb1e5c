"""Neutron subnets.

Source: Networking API, "Subnets".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2.network import SubnetParam
from capo import names
from capo.errors import InvalidSpecError, SubnetNotFoundError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import kinds, references, view
from capo.openstack.cloud import Cloud
from capo.openstack.references import Reference
from capo.openstack.resource_cache import Index

_REFERENCE: Final = Reference(kinds.SUBNET, SubnetNotFoundError)
_AUTOMATIC: Final = frozenset({"slaac", "dhcpv6-stateless"})


class Subnet(view.View):
    """A subnet as Neutron shows it. Source: Networking API, "Show subnet details"."""

    id = view.text("id")
    network_id = view.text("network_id")
    cidr = view.text("cidr")
    dns_nameservers = view.texts("dns_nameservers")
    ipv6_address_mode = view.optional_text("ipv6_address_mode")
    ipv6_ra_mode = view.optional_text("ipv6_ra_mode")

    @property
    def assigns_addresses(self) -> bool:
        """Return whether addresses are made of MAC addresses (SLAAC), so that Neutron admits no chosen one."""
        return not _AUTOMATIC.isdisjoint((self.ipv6_address_mode, self.ipv6_ra_mode))


BY_NETWORK: Final = Index(lambda body: [Subnet(body).network_id])


@dataclass(frozen=True)
class WantedSubnet:
    """A subnet to create.

    Args:
        cidr: empty takes one from the pool.
        allocation_pools: first and last address of each; empty lets Neutron choose.
        ip_version: 4 or 6; None derives it from the CIDR.
        pool_id: the subnet pool to take a CIDR from.
        prefix_length: of that CIDR; None is the pool's default.
        ipv6_address_mode: how Neutron assigns addresses; None for IPv4, and for addresses that it only records.
        ipv6_ra_mode: what the router advertises; None for nothing.
    """

    stamp: Stamp
    name: str
    network_id: str
    cidr: str = ""
    description: str = ""
    dns_nameservers: Sequence[str] = ()
    allocation_pools: Sequence[tuple[str, str]] = ()
    ip_version: int | None = None
    pool_id: str | None = None
    prefix_length: int | None = None
    ipv6_address_mode: str | None = None
    ipv6_ra_mode: str | None = None


def create(cloud: Cloud, wanted: WantedSubnet) -> Body:
    """Create a subnet."""
    body: Body = cloud.post("network", "/subnets", json=request(wanted))["subnet"]
    return body


def update(cloud: Cloud, subnet_id: str, changes: Mapping[str, Any]) -> Body:
    """Change fields of a subnet; return it."""
    body: Body = cloud.put("network", f"/subnets/{subnet_id}", json={"subnet": dict(changes)})["subnet"]
    return body


def delete(cloud: Cloud, subnet_id: str) -> None:
    """Delete a subnet; succeed if it does not exist.

    Raises:
        ConflictError: ports have addresses of it.
    """
    cloud.remove("network", f"/subnets/{subnet_id}")


def request(wanted: WantedSubnet) -> Body:
    """Return the body of the create.

    Raises:
        InvalidSpecError: the CIDR is invalid.
    """
    pools = [{"start": first, "end": last} for first, last in wanted.allocation_pools]
    optional = {
        "cidr": wanted.cidr,
        "subnetpool_id": wanted.pool_id,
        "prefixlen": wanted.prefix_length,
        "dns_nameservers": list(wanted.dns_nameservers),
        "allocation_pools": pools,
        "ipv6_address_mode": wanted.ipv6_address_mode,
        "ipv6_ra_mode": wanted.ipv6_ra_mode,
    }
    return {
        "subnet": {
            "name": wanted.name,
            "description": names.stamped(wanted.description, wanted.stamp),
            "network_id": wanted.network_id,
            "ip_version": wanted.ip_version or _version(wanted),
            **{name: value for name, value in optional.items() if value},
        }
    }


def _version(wanted: WantedSubnet) -> int:
    try:
        return ipaddress.ip_network(wanted.cidr, strict=False).version
    except ValueError as error:
        raise InvalidSpecError(f"subnet {wanted.name}: {error}") from error


def difference(wanted: WantedSubnet, found: Mapping[str, Any]) -> Body:
    """Return the fields of a subnet to change: only name servers, whose order matters."""
    nameservers = list(wanted.dns_nameservers)
    return {} if nameservers == list(found.get("dns_nameservers") or ()) else {"dns_nameservers": nameservers}


def resolve(cloud: Cloud, wanted: SubnetParam, *, network_id: str | None = None) -> Body:
    """Return the subnet that is named.

    Args:
        network_id: network that it must be in; None for any.

    Raises:
        SubnetNotFoundError: none matches.
        AmbiguousMatchError: more than one does.
    """
    if wanted.id:
        found = _REFERENCE.get(cloud, wanted.id)
        if network_id and found["network_id"] != network_id:
            raise SubnetNotFoundError(f"subnet {wanted.id} is not one of network {network_id}")
        return found
    of_network = {"network_id": network_id} if network_id else {}
    return _REFERENCE.only(cloud, {**_REFERENCE.query(wanted.filter), **of_network})


def listed(cloud: Cloud, wanted: SubnetParam, *, network_id: str | None = None) -> str:
    """Return the id of the named subnet, by lists alone.

    Args:
        network_id: network that it must be in; None for any.

    Raises:
        SubnetNotFoundError: the lists have none.
        AmbiguousMatchError: more than one matches.
    """
    of_network = {"network_id": network_id} if network_id else {}
    return references.only_id(_REFERENCE.listed(cloud, wanted.id, wanted.filter, **of_network), "subnet")


def list_in_network(cloud: Cloud, network_id: str) -> list[Body]:
    """Return the subnets of a network, at least one, in the order of their ids.

    Raises:
        SubnetNotFoundError: it has none.
    """
    return sorted(_REFERENCE.all(cloud, {"network_id": network_id}), key=lambda body: str(body["id"]))
