"""Neutron routers and their interfaces.

Source: Networking API, "Routers".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2.network import RouterParam
from capo import names
from capo.errors import AmbiguousAnswerError, InvalidSpecError, NotFoundError, RouterNotFoundError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import kinds, view
from capo.openstack.cloud import Cloud
from capo.openstack.port import FixedIP
from capo.openstack.references import Reference

_REFERENCE: Final = Reference(kinds.ROUTER, RouterNotFoundError)


class Router(view.View):
    """A router as Neutron shows it. Source: Networking API, "Show router details"."""

    gateway_network_id = view.optional_text("external_gateway_info", "network_id")
    external_fixed_ips = view.views(FixedIP, "external_gateway_info", "external_fixed_ips")


class Interface(view.View):
    """The answer to a new interface. Source: Networking API, "Add interface to router"."""

    port_id = view.optional_text("port_id")
    subnet_id = view.text("subnet_id")
    network_id = view.optional_text("network_id")


@dataclass(frozen=True)
class WantedRouter:
    """A router to create.

    Args:
        external_network_id: None for a router without a gateway.
        external_fixed_ips: subnet id and IP address of each gateway address, either may be None; empty leaves it to
            Neutron. Some clouds take fixed gateway addresses in an update only, so they are never in the create.
    """

    stamp: Stamp
    name: str
    description: str = ""
    external_network_id: str | None = None
    external_fixed_ips: Sequence[tuple[str | None, str | None]] = ()


def create(cloud: Cloud, wanted: WantedRouter) -> Body:
    """Create a router."""
    body: Body = cloud.post("network", "/routers", json=request(wanted))["router"]
    return body


def update(cloud: Cloud, router_id: str, changes: Mapping[str, Any]) -> Body:
    """Change fields of a router; return it."""
    body: Body = cloud.put("network", f"/routers/{router_id}", json={"router": dict(changes)})["router"]
    return body


def delete(cloud: Cloud, router_id: str) -> None:
    """Delete a router; succeed if it does not exist.

    Raises:
        ConflictError: it has interfaces left.
    """
    cloud.remove("network", f"/routers/{router_id}")


def add_interface(cloud: Cloud, router_id: str, subnet_id: str) -> Body:
    """Connect a subnet; return ``port_id`` and ``subnet_id``, nothing if it was connected already."""
    try:
        return cloud.put("network", f"/routers/{router_id}/add_router_interface", json={"subnet_id": subnet_id})
    except InvalidSpecError as error:
        if "already has a port on subnet" in error.message:
            return {}
        raise


def remove_interface(cloud: Cloud, router_id: str, subnet_id: str) -> None:
    """Disconnect a subnet; succeed if it is not connected.

    Raises:
        ConflictError: a floating IP needs the connection.
    """
    try:
        answer = cloud.put("network", f"/routers/{router_id}/remove_router_interface", json={"subnet_id": subnet_id})
    except NotFoundError:
        return
    if answer["id"] != router_id:
        raise AmbiguousAnswerError(f"network answered for router {answer['id']} in place of {router_id}")


def request(wanted: WantedRouter) -> Body:
    """Return the body of the create."""
    has_gateway = wanted.external_network_id and not wanted.external_fixed_ips
    gateway = {"external_gateway_info": {"network_id": wanted.external_network_id}} if has_gateway else {}
    return {
        "router": {
            "name": wanted.name,
            "description": names.stamped(wanted.description, wanted.stamp),
            **gateway,
        }
    }


def difference(wanted: WantedRouter, found: Mapping[str, Any]) -> Body:
    """Return the fields of a router to change: a missing gateway, or one with other addresses than wanted."""
    if wanted.external_network_id is None:
        return {}
    gateway = found.get("external_gateway_info") or {}
    has = gateway.get("external_fixed_ips") or ()
    is_right_network = gateway.get("network_id") == wanted.external_network_id
    is_right = all(any(_fits(ip, *each) for ip in has) for each in wanted.external_fixed_ips)
    if is_right_network and is_right and (not wanted.external_fixed_ips or len(has) == len(wanted.external_fixed_ips)):
        return {}
    fixed_ips = [
        {**({"subnet_id": subnet_id} if subnet_id else {}), **({"ip_address": address} if address else {})}
        for subnet_id, address in wanted.external_fixed_ips
    ]
    return {
        "external_gateway_info": {
            "network_id": wanted.external_network_id,
            **({"external_fixed_ips": fixed_ips} if fixed_ips else {}),
        }
    }


def _fits(found: Mapping[str, Any], subnet_id: str | None, address: str | None) -> bool:
    return subnet_id in (None, found.get("subnet_id")) and address in (None, found["ip_address"])


def addresses(found: Mapping[str, Any]) -> list[str]:
    """Return the addresses of a router's gateway."""
    gateway = found.get("external_gateway_info") or {}
    return [ip["ip_address"] for ip in gateway.get("external_fixed_ips") or ()]


def resolve(cloud: Cloud, wanted: RouterParam) -> Body:
    """Return the router that is named.

    Raises:
        RouterNotFoundError: none matches.
        AmbiguousMatchError: more than one does.
    """
    if wanted.id:
        return _REFERENCE.get(cloud, wanted.id)
    return _REFERENCE.only(cloud, _REFERENCE.query(wanted.filter))
