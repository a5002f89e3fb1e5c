"""What uses a resource, so that its deletion would hurt more than the resource itself; pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from capo.json_types import Body
from capo.openstack import view
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.port import Port
from capo.openstack.security_group import SecurityGroup
from capo.openstack.server import Server
from capo.openstack.server_group import ServerGroup
from capo.openstack.volume import Volume
from capo.operations.inventory.resource import Resource
from controllers.openstackcluster import vip_ports

T = TypeVar("T")
ResourceKey = tuple[str, str]
"""Kind and id, in one project."""
_DHCP: Final = ("network:dhcp", "network:distributed")
_IDLE: Final = ("ERROR", "SHUTOFF")
_WITHOUT_TRAFFIC: Final = ("ERROR", "OFFLINE")
"""Source: Load-balancing API v2, "Operating Status Codes": in the others, such as DEGRADED, members get requests."""
_RUNNING: Final = 1
"""Source: Compute API, "Show Server Details", ``OS-EXT-STS:power_state``."""


@dataclass(frozen=True)
class Use:
    """One use.

    Args:
        text: for messages.
        keys: it ends with the deletion of any of these.
    """

    text: str
    keys: frozenset[ResourceKey]

    def is_left(self, deleted: Collection[ResourceKey]) -> bool:
        """Return whether it goes on when some resources are deleted."""
        return not any(key in deleted for key in self.keys)


class Uses:
    """The uses among the resources of one project."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        ports = [Port(each.body) for each in resources if each.kind == "port"]
        self._ports = {each.id: each for each in ports}
        self._in_network = _index(ports, lambda each: [each.network_id])
        self._in_subnet = _index(ports, lambda each: each.subnet_ids)
        self._with_group = _index(ports, lambda each: each.security_groups)
        self._on_device = _index(ports, lambda each: [each.device_id])
        addresses = [FloatingIP(each.body) for each in resources if each.kind == "floating_ip"]
        self._addresses = _index(addresses, lambda each: [each.port_id or ""])
        trunks = [each.body for each in resources if each.kind == "trunk"]
        self._trunks = _index(trunks, _ports_of_trunk)
        groups = [SecurityGroup(each.body) for each in resources if each.kind == "security_group"]
        self._referring = _index(groups, lambda each: {str(rule.get("remote_group_id")) for rule in each.rules})

    def of(self, resource: Resource) -> list[Use]:
        """Return what uses a resource."""
        found: Mapping[str, Callable[[Resource], Iterable[Use]]] = {
            "server": self._of_server,
            "volume": self._of_volume,
            "server_group": self._of_server_group,
            "floating_ip": self._of_floating_ip,
            "port": self._of_port,
            "trunk": self._of_trunk,
            "network": self._of_network,
            "subnet": self._of_subnet,
            "security_group": self._of_security_group,
            "router": self._of_router,
        }
        return list(found[resource.kind](resource)) if resource.kind in found else []

    def _of_server(self, resource: Resource) -> Iterator[Use]:
        for each in Server(resource.body).volumes or ():
            if each.is_deleted_with_server:
                yield Use(f"Nova deletes volume {each.id} with it", frozenset({("volume", each.id)}))

    def _of_volume(self, resource: Resource) -> Iterator[Use]:
        for server_id in sorted(Volume(resource.body).server_ids):
            yield Use(f"it is attached to server {server_id}", frozenset({("server", server_id)}))

    def _of_server_group(self, resource: Resource) -> Iterator[Use]:
        for server_id in ServerGroup(resource.body).members or ():
            yield Use(f"server {server_id} is a member", frozenset({("server", server_id)}))

    def _of_floating_ip(self, resource: Resource) -> Iterator[Use]:
        port_id = FloatingIP(resource.body).port_id
        if port_id:
            port = self._ports.get(port_id)
            keys = _ends_with(port) if port else {("port", port_id)}
            yield Use(f"it leads to port {port_id}", frozenset(keys))

    def _of_port(self, resource: Resource) -> Iterator[Use]:
        port = Port(resource.body)
        if port.device_id and (whole := _whole(port)):
            yield Use(f"it is attached to {whole[0].replace('_', ' ')} {whole[1]}", frozenset({whole}))
        for each in self._addresses.get(port.id, ()):
            yield Use(f"floating IP {each.address} leads to it", frozenset({("floating_ip", each.id)}))
        for trunk in self._trunks.get(port.id, ()):
            yield Use(f"trunk {trunk['id']} has it", frozenset({("trunk", str(trunk["id"]))}))

    def _of_trunk(self, resource: Resource) -> Iterator[Use]:
        for sub in resource.body.get("sub_ports") or ():
            port_id = str(sub.get("port_id"))
            yield Use(f"port {port_id} is a subport", frozenset({("port", port_id)}))
        parent = self._ports.get(str(resource.body.get("port_id")))
        if parent and parent.device_id and (whole := _whole(parent)):
            yield Use(f"it is attached to {whole[0]} {whole[1]}", frozenset({whole}))

    def _of_network(self, resource: Resource) -> Iterator[Use]:
        yield from _ports(self._in_network.get(resource.id, ()))

    def _of_subnet(self, resource: Resource) -> Iterator[Use]:
        yield from _ports(self._in_subnet.get(resource.id, ()))

    def _of_security_group(self, resource: Resource) -> Iterator[Use]:
        yield from _ports(self._with_group.get(resource.id, ()))
        # Neutron deletes these rules with the group that they refer to.
        for each in self._referring.get(resource.id, ()):
            if each.id != resource.id:
                yield Use(f"rules of security group {each.id} refer to it", frozenset({("security_group", each.id)}))

    def _of_router(self, resource: Resource) -> Iterator[Use]:
        """Yield the ports on the networks that it connects."""
        networks = {each.network_id for each in self._on_device.get(resource.id, ())}
        found = (each for network_id in sorted(networks) for each in self._in_network[network_id])
        yield from _ports(each for each in found if each.device_id != resource.id)


def _index(items: Iterable[T], keys: Callable[[T], Iterable[str]]) -> dict[str, list[T]]:
    """Return items by each of their keys: a project may have tens of thousands of ports."""
    found: dict[str, list[T]] = {}
    for each in items:
        for key in keys(each):
            found.setdefault(key, []).append(each)
    return found


def _ports_of_trunk(trunk: Body) -> set[str]:
    return {str(trunk.get("port_id")), *(str(each.get("port_id")) for each in trunk.get("sub_ports") or ())}


def _ports(found: Iterable[Port]) -> Iterator[Use]:
    for each in found:
        if each.device_owner not in _DHCP:
            yield Use(f"port {each.id} uses it", frozenset(_ends_with(each)))


def _ends_with(port: Port) -> set[ResourceKey]:
    """Return what a port is deleted with: itself, or the load balancer or router that it belongs to."""
    whole = _whole(port)
    is_part = whole is not None and whole[0] in ("load_balancer", "router")
    return {("port", port.id)} | ({whole} if whole and is_part else set())


def _whole(port: Port) -> ResourceKey | None:
    if balancer_id := vip_ports.load_balancer_id(port):
        return "load_balancer", balancer_id
    if not port.device_id:
        return None
    return ("router" if port.device_owner.startswith("network:") else "server"), port.device_id


class _Power(view.View):
    state = view.number("OS-EXT-STS:power_state")


class _Operation(view.View):
    provisioning_status = view.text("provisioning_status")
    operating_status = view.text("operating_status")


def state_doubt(resource: Resource) -> str | None:
    """Return why the state of a resource shows that it is used, None if it does not."""
    if resource.kind == "server" and not is_idle(resource):
        is_running = Server(resource.body).status in _IDLE
        return f"it is {resource.state}{', and it runs' if is_running else ''}"
    if resource.kind == "load_balancer":
        found = _Operation(resource.body)
        if found.provisioning_status != "ERROR" or found.operating_status not in _WITHOUT_TRAFFIC:
            return f"it is {found.provisioning_status}{f'/{found.operating_status}' if found.operating_status else ''}"
    return None


def is_idle(server: Resource) -> bool:
    """Return whether a server does not run; one in ERROR may."""
    return Server(server.body).status in _IDLE and _Power(server.body).state != _RUNNING
