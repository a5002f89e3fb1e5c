"""Neutron's interface for Nova and Octavia: as admin, in the project of the user they serve.

Refusals are Neutron's own `Fault`s (over quota, no address left); the caller words them for its own users.
"""

from __future__ import annotations

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import group, port, rule, trunk
from capo.simulator.neutron.kind import Caller, Kind, enforce_quota, touch, values_of_post


def create_port(cloud: Cloud, project_id: str, body: Json) -> Json:
    """Create a port and return it, with the fields that only an admin sees.

    Args:
        body: As in a POST, without the outer `port`.
    """
    group.ensure_default(cloud, project_id)
    return _create(cloud, port.KIND, project_id, body)


def bind_port(cloud: Cloud, port_id: str, *, device_id: str, device_owner: str, host: str = "") -> Json:
    """Assign a port to a device; with a host it is bound there and becomes ACTIVE."""
    found = port.KIND.find(cloud, port_id, Caller("", is_admin=True))
    found |= {"device_id": device_id, "device_owner": device_owner}
    touch(cloud, found)
    if host:
        port.bind(cloud, found, host)
    return found


def unbind_port(cloud: Cloud, port_id: str) -> None:
    """Unassign a port from its device; a missing port is fine."""
    found = find_port(cloud, port_id)
    if found is not None:
        port.unbind(cloud, found)


def delete_port(cloud: Cloud, port_id: str) -> None:
    """Delete a port whatever owns it; a missing port is fine."""
    found = find_port(cloud, port_id)
    if found is not None:
        port.drop(cloud, found)


def find_port(cloud: Cloud, port_id: str) -> Json | None:
    """Return a port, or None."""
    return port.KIND.table(cloud).get(port_id)


def ports_of(cloud: Cloud, device_id: str) -> list[Json]:
    """Return the ports of a device."""
    return [found for found in port.KIND.table(cloud).values() if found["device_id"] == device_id]


def find_trunk(cloud: Cloud, port_id: str) -> Json | None:
    """Return the trunk on a parent port, or None."""
    return next((found for found in trunk.KIND.table(cloud).values() if found["port_id"] == port_id), None)


def create_security_group(cloud: Cloud, project_id: str, body: Json) -> Json:
    """Create a security group and return it."""
    return _create(cloud, group.KIND, project_id, body)


def delete_security_group(cloud: Cloud, group_id: str) -> None:
    """Delete a security group; a missing one is fine."""
    found = group.KIND.table(cloud).get(group_id)
    if found is not None:
        group.delete(cloud, found, Caller("", is_admin=True))


def create_rule(cloud: Cloud, project_id: str, body: Json) -> Json:
    """Create a rule and return it."""
    return _create(cloud, rule.KIND, project_id, body)


def delete_rule(cloud: Cloud, rule_id: str) -> None:
    """Delete a rule; a missing one is fine."""
    found = rule.KIND.table(cloud).get(rule_id)
    if found is not None:
        rule.delete(cloud, found, Caller("", is_admin=True))


def _create(cloud: Cloud, kind: Kind, project_id: str, body: Json) -> Json:
    caller = Caller(project_id, is_admin=True)
    values = values_of_post(kind, body, caller)
    enforce_quota(cloud, kind, project_id)
    return kind.create(cloud, values, caller)
