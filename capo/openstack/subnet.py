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

_REFERENCE: Final = Reference(kinds.SUBNET, SubnetNotFoundError)


class Subnet(view.View):
    """A subnet as Neutron shows it. Source: Networking API, "Show subnet details"."""

    id = view.text("id")
    network_id = view.text("network_id")
    cidr = view.text("cidr")


@dataclass(frozen=True)
class WantedSubnet:
    """A subnet to create.

    Args:
        allocation_pools: first and last address of each; empty lets Neutron choose.
    """

    stamp: Stamp
    name: str
    network_id: str
    cidr: str
    description: str = ""
    dns_nameservers: Sequence[str] = ()
    allocation_pools: Sequence[tuple[str, str]] = ()


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
    try:
        version = ipaddress.ip_network(wanted.cidr, strict=False).version
    except ValueError as error:
        raise InvalidSpecError(f"subnet {wanted.name}: {error}") from error
    pools = [{"start": first, "end": last} for first, last in wanted.allocation_pools]
    return {
        "subnet": {
            "name": wanted.name,
            "description": names.stamped(wanted.description, wanted.stamp),
            "network_id": wanted.network_id,
            "ip_version": version,
            "cidr": wanted.cidr,
            **({"dns_nameservers": list(wanted.dns_nameservers)} if wanted.dns_nameservers else {}),
            **({"allocation_pools": pools} if pools else {}),
        }
    }


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
