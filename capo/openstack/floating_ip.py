"""Neutron floating IPs.

Source: Networking API, "Floating IPs".
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.errors import ForeignResourceError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import view
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.resource_cache import Index, found_by

_NAME_ANOTHER: Final = "Dissociate it, or name another one."


class FloatingIP(view.View):
    """A floating IP as Neutron shows it. Source: Networking API, "Show floating IP details"."""

    id = view.text("id")
    description = view.text("description")
    address = view.text("floating_ip_address")
    fixed_address = view.optional_text("fixed_ip_address")
    port_id = view.optional_text("port_id")  # None if it leads nowhere
    router_id = view.optional_text("router_id")
    network_id = view.text("floating_network_id")
    tags = view.texts("tags")
    _project_id = view.optional_text("project_id")
    _tenant_id = view.optional_text("tenant_id")

    @property
    def project_id(self) -> str | None:
        """Its project; Neutron of old releases names it a tenant."""
        return self._project_id or self._tenant_id


BY_ADDRESS: Final = Index(lambda body: [body.get("floating_ip_address")])
BY_PORT: Final = Index(lambda body: [id_] if (id_ := FloatingIP(body).port_id) else [])
BY_ROUTER: Final = Index(lambda body: [id_] if (id_ := FloatingIP(body).router_id) else [])


def with_addresses(cloud_view: CloudView, *addresses: str, max_age_s: float | None = None) -> list[Body]:
    """Return the listed floating IPs that have one of the addresses, whatever their owner.

    Raises:
        NotYetObserved: the list is missing or too old.
    """
    among = found_by(BY_ADDRESS, *addresses)
    return cloud_view.list_matching("floating_ip", max_age_s=max_age_s, among=among)


def at_port(cloud_view: CloudView, port_id: str) -> list[Body]:
    """Return the listed floating IPs that are associated with a port, whatever their owner.

    Raises:
        NotYetObserved: the list is missing.
    """
    return cloud_view.list_matching("floating_ip", among=found_by(BY_PORT, port_id))


@dataclass(frozen=True)
class WantedFloatingIP:
    """A floating IP to create.

    Args:
        network_id: the external network that allocates it.
        port_id: the port to associate on creation, None for none.
        fixed_ip: address of the port, None for its first.
        address: the requested address (most clouds permit that to administrators only); None lets Neutron choose.
    """

    stamp: Stamp
    network_id: str
    description: str = ""
    port_id: str | None = None
    fixed_ip: str | None = None
    address: str | None = None


def create(cloud: Cloud, wanted: WantedFloatingIP) -> Body:
    """Create a floating IP, associated with the port if one is given."""
    body: Body = cloud.post("network", "/floatingips", json=request(wanted))["floatingip"]
    return body


def get(cloud: Cloud, floating_ip_id: str) -> Body:
    """Return a floating IP, read from Neutron.

    Raises:
        NotFoundError: it does not exist.
    """
    body: Body = cloud.get("network", f"/floatingips/{floating_ip_id}")["floatingip"]
    return body


def find_by_address(cloud: Cloud, address: str) -> Body | None:
    """Return the project's floating IP with an address, read from Neutron; None if there is none."""
    params = {"floating_ip_address": address, "project_id": cloud.project_id}
    found = cloud.list_all("network", "/floatingips", "floatingips", params=params)
    return next((body for body in found if body["floating_ip_address"] == address), None)


def associate(cloud: Cloud, floating_ip_id: str, *, port_id: str, fixed_ip: str | None = None) -> Body:
    """Associate a floating IP with a port, replacing any other association; return it."""
    target = {"port_id": port_id, **({"fixed_ip_address": fixed_ip} if fixed_ip else {})}
    body: Body = cloud.put("network", f"/floatingips/{floating_ip_id}", json={"floatingip": target})["floatingip"]
    return body


def dissociate(cloud: Cloud, floating_ip_id: str) -> Body:
    """Dissociate a floating IP from its port; return it."""
    body: Body = cloud.put("network", f"/floatingips/{floating_ip_id}", json={"floatingip": {"port_id": None}})[
        "floatingip"
    ]
    return body


def delete(cloud: Cloud, floating_ip_id: str) -> None:
    """Delete a floating IP; succeed if it does not exist."""
    cloud.remove("network", f"/floatingips/{floating_ip_id}")


def refresh_if_unused(cloud: Cloud, cloud_view: CloudView, floating_ip_id: str, *, ports: Container[str]) -> Body:
    """Read a floating IP of the user again, because it may have been associated since the last list; return it.

    Args:
        ports: the ports with which it may be associated.

    Raises:
        ForeignResourceError: it is associated with another port.
    """
    now = get(cloud, floating_ip_id)
    cloud_view.upsert("floating_ip", now)
    require_unused(now, ports=ports)
    return now


def require_unused(body: Mapping[str, Any], *, ports: Container[str], next_step: str = _NAME_ANOTHER) -> None:
    """Refuse a floating IP that is in use: it is never taken from its port.

    Args:
        ports: the ports with which it may be associated.
        next_step: what the user can do.

    Raises:
        ForeignResourceError: it is associated with another port.
    """
    port_id = body.get("port_id")
    if port_id and port_id not in ports:
        what = f"floating IP {body['floating_ip_address']} leads to"
        raise ForeignResourceError(
            f"{what} port {port_id} and is not taken from it",
            if_shared=f"{what} another port and is not taken from it",
            resource=f"floating_ip {body['id']}",
            next_step=next_step,
        )


def request(wanted: WantedFloatingIP) -> Body:
    """Return the body of the create."""
    optional = {
        "port_id": wanted.port_id,
        "fixed_ip_address": wanted.fixed_ip,
        "floating_ip_address": wanted.address,
    }
    return {
        "floatingip": {
            "floating_network_id": wanted.network_id,
            "description": names.stamped(wanted.description, wanted.stamp),
            **{name: value for name, value in optional.items() if value},
        }
    }
