"""Neutron networks.

Source: Networking API, "Networks".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2.network import NetworkParam
from capo import names
from capo.errors import AmbiguousMatchError, NetworkNotFoundError
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import kinds, references, view
from capo.openstack.cloud import Cloud
from capo.openstack.references import Reference

_REFERENCE: Final = Reference(kinds.NETWORK, NetworkNotFoundError)


class Network(view.View):
    """A network as Neutron shows it. Source: Networking API, "Show network details"."""

    subnet_ids = view.texts("subnets")
    mtu = view.number("mtu")


@dataclass(frozen=True)
class WantedNetwork:
    """A network to create.

    Args:
        description: text before the stamp; the Go provider writes none.
        has_port_security: False disables it for new ports; None leaves it to the cloud.
        mtu: None leaves it to the cloud.
    """

    stamp: Stamp
    name: str
    description: str = ""
    has_port_security: bool | None = None
    mtu: int | None = None


def create(cloud: Cloud, wanted: WantedNetwork) -> Body:
    """Create a network."""
    body: Body = cloud.post("network", "/networks", json=request(wanted))["network"]
    return body


def update(cloud: Cloud, network_id: str, changes: Mapping[str, Any]) -> Body:
    """Change fields of a network; return it."""
    body: Body = cloud.put("network", f"/networks/{network_id}", json={"network": dict(changes)})["network"]
    return body


def delete(cloud: Cloud, network_id: str) -> None:
    """Delete a network; succeed if it does not exist.

    Raises:
        ConflictError: it still has ports.
    """
    cloud.remove("network", f"/networks/{network_id}")


def request(wanted: WantedNetwork) -> Body:
    """Return the body of the create."""
    optional = {"port_security_enabled": wanted.has_port_security, "mtu": wanted.mtu}
    return {
        "network": {
            "name": wanted.name,
            "description": names.stamped(wanted.description, wanted.stamp),
            "admin_state_up": True,
            **{name: value for name, value in optional.items() if value is not None},
        }
    }


def resolve(cloud: Cloud, wanted: NetworkParam) -> Body:
    """Return the named network.

    Raises:
        NetworkNotFoundError: none matches.
        AmbiguousMatchError: more than one does.
    """
    if wanted.id:
        return _REFERENCE.get(cloud, wanted.id)
    return _REFERENCE.only(cloud, _REFERENCE.query(wanted.filter))


def listed(cloud: Cloud, wanted: NetworkParam) -> str:
    """Return the id of the named network, by lists alone.

    Raises:
        NetworkNotFoundError: the lists have none.
        AmbiguousMatchError: more than one matches.
    """
    return references.only_id(_REFERENCE.listed(cloud, wanted.id, wanted.filter), "network")


def external(cloud: Cloud, wanted: NetworkParam | None) -> Body | None:
    """Return the named external network, or the only one; None if there is none and none is named.

    Raises:
        NetworkNotFoundError: nothing matches the name or filter, or the network with that id is not external.
        AmbiguousMatchError: several match, or none is named and there are several.
    """
    if wanted is not None and wanted.id:
        return _that_is_external(_REFERENCE.get(cloud, wanted.id))
    is_external = {"router:external": "true"}
    if wanted is not None:
        return _REFERENCE.only(cloud, {**_REFERENCE.query(wanted.filter), **is_external})
    try:
        return _REFERENCE.only(cloud, is_external)
    except NetworkNotFoundError:
        return None
    except AmbiguousMatchError as error:
        # Shown with shared credentials, too: the cloud offers external networks to all, and the user has to name one.
        raise AmbiguousMatchError(error.message, next_step="Name the one in spec.externalNetwork.") from error


def _that_is_external(found: Body) -> Body:
    """Return a network; raise if it is not external, before a gateway or floating IP is requested from it."""
    if not found.get("router:external"):
        raise NetworkNotFoundError(
            f"network {found['id']} is not external", next_step="Name an external one in spec.externalNetwork."
        )
    return found
