"""Lookups of Nova and Octavia in Neutron; their changes are in `neutron.internal`."""

from __future__ import annotations

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import group, internal, port
from capo.simulator.neutron.kind import Caller


def find(cloud: Cloud, port_id: str, caller: Caller) -> Json | None:
    """Return a port that the caller may use."""
    found = internal.find_port(cloud, port_id)
    return found if found is not None and port.KIND.is_visible(cloud, found, caller) else None


def ports_of_device(cloud: Cloud, device_id: str, order: list[str]) -> list[Json]:
    """Return the ports of a device, first those named in the order, in this order."""
    owned = {found["id"]: found for found in internal.ports_of(cloud, device_id)}
    first = [owned.pop(port_id) for port_id in order if port_id in owned]
    return [*first, *owned.values()]


def network_name(cloud: Cloud, found: Json) -> str:
    """Return the name of a port's network."""
    return str(cloud.table("network", "networks")[found["network_id"]]["name"])


def floating_addresses(cloud: Cloud, found: Json) -> list[str]:
    """Return the floating IPs on a port."""
    floating = cloud.table("network", "floatingips").values()
    return [str(item["floating_ip_address"]) for item in floating if item["port_id"] == found["id"]]


def group_names(cloud: Cloud, found: Json) -> list[str]:
    """Return the names of a port's security groups."""
    groups = group.KIND.table(cloud)
    return [str(groups[group_id]["name"]) for group_id in found["security_groups"] if group_id in groups]


def find_groups(cloud: Cloud, name_or_id: str, project_id: str) -> list[Json]:
    """Return the project's security groups of an id or a name."""
    if name_or_id == group.DEFAULT:
        return [group.ensure_default(cloud, project_id)]
    owned = [found for found in group.KIND.table(cloud).values() if found["project_id"] == project_id]
    return [found for found in owned if name_or_id in {found["id"], found["name"]}]
