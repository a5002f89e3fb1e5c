"""Which resources the Go provider created for a server, and what proves it.

It marks them only by names, which prove nothing: users and other clusters use the same. A resource is adopted if it has
no stamp, has the name, and belongs to the one known server: a port by its device, a trunk by that port, a volume by
Nova's record that it is deleted with the server. The server is identified by the status, the taken-over annotation, the
provider ID of the machine, or as the device of the ports in the status. By its name alone it is adopted only before the
deletion of the object is requested (ADR 0001, 7). Source: docs/explanation/go-provider.md, G-1 and G-19 to G-25.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.contract import references
from capo.errors import BlockedError, CapoError, CloudUnavailableError, ForeignResourceError, NotYetObserved
from capo.json_types import Body
from capo.kube.kinds import OPENSTACK_MACHINE
from capo.openstack import extension
from capo.openstack.port import Port
from capo.openstack.resource_cache import BY_NAME, Selection, found_by, with_ids
from capo.openstack.server import Server
from capo.openstack.trunk import Trunk
from capo.openstack.volume import Volume
from controllers import roles
from controllers.openstackserver import desired
from controllers.openstackserver.scope import ServerScope


@dataclass(frozen=True)
class _Mark:
    """How to recognise a resource that the Go provider created.

    Args:
        fits: returns whether a resource without a stamp is the one.
        among: selects those that may be.
    """

    fits: Callable[[Mapping[str, Any]], bool]
    among: Selection


_PARTS: Final = ("port", "trunk", "volume")
"""In this order: a trunk is identified by its port."""


def find(scope: ServerScope, kind: str, role: str) -> Body | None:
    """Return the resource of a role, or None when its absence is proven; see ``CloudView.find``."""
    if not scope.context.is_taken_over:
        return scope.cloud_view.find(kind, role)
    mark = _marks(scope, kind).get(role)
    if mark is None:
        return scope.cloud_view.find(kind, role)
    return scope.cloud_view.find(kind, role, upstream=mark.fits, among=mark.among)


def find_server(scope: ServerScope) -> Server | None:
    """Return the server, or None when its absence is proven."""
    found = find(scope, "server", roles.SERVER)
    return Server(found) if found else None


def was_created(scope: ServerScope) -> bool:
    """Return whether the server was created before; its parts are not recreated then.

    Raises:
        NotYetObserved: its absence is not proven yet; a status that was lost, as by a restore, names no server.
    """
    if scope.known_server_id is None:
        find_server(scope)  # which records it
    return bool(scope.known_server_id or id_that_machine_knows(scope))


def record(scope: ServerScope) -> None:
    """Record all resources that the Go provider created for the server.

    Raises:
        NotYetObserved: a list is being polled.
        BlockedError: the object is being deleted, and only its name attributes a server to it.
    """
    if _server(scope) is None and scope.context.is_deleting:
        _refuse_namesakes(scope)
    for kind in _PARTS:
        for role in _marks(scope, kind):
            _own(scope, kind, role)


def is_recorded(scope: ServerScope) -> bool:
    """Return whether all existing resources of the server are recorded, so that the takeover is complete."""
    try:
        record(scope)
        server = _server(scope)
    except (NotYetObserved, CapoError):
        return False
    if server is None:
        return scope.context.is_deleting or not (scope.known_server_id or id_that_machine_knows(scope))
    return scope.context.is_deleting or server.status != "BUILD"  # its ports have no device at first


def id_that_machine_knows(scope: ServerScope) -> str | None:
    """Return the server id in the provider ID of the machine that owns the object; None without one.

    A move keeps it but not the object's status, so a server that was deleted before is not created a second time.
    """
    owner = references.owner(scope.context.obj, group=names.GROUP, kind=OPENSTACK_MACHINE.kind)
    machine = scope.context.deps.store.get(OPENSTACK_MACHINE, scope.namespace, owner.name) if owner else None
    if machine is None or not references.is_owned_by(scope.context.obj, machine):
        return None
    return str(machine["spec"].get("providerID") or "").rpartition("/")[2] or None


def _own(scope: ServerScope, kind: str, role: str) -> Body | None:
    """Return the resource of a role; one of another owner blocks no deletion and is left alone."""
    try:
        return find(scope, kind, role)
    except ForeignResourceError:
        if scope.context.is_deleting:
            return None
        raise


def _server(scope: ServerScope) -> Server | None:
    found = _own(scope, "server", roles.SERVER)
    return Server(found) if found else None


def _refuse_namesakes(scope: ServerScope) -> None:
    """Require the user's decision on a server that has the name of an object being deleted.

    Raises:
        BlockedError: such a server has no owner, and neither status nor machine names another one.
    """
    if scope.server.status.instance_id or id_that_machine_knows(scope):
        return
    items = scope.cloud_view.namesakes("server", [scope.name])
    ids = sorted(item.body["id"] for item in items if item.stamp is None)
    if ids:
        why = "may be the one of this object: the name is the same, and neither status nor machine names a server"
        raise BlockedError(
            f"server {' and server '.join(ids)} {why}",
            if_shared=f"a server {why}",
            resource=f"OpenStackServer {scope.name}",
            next_step=f"To have it deleted, set the annotation {names.TAKEN_OVER_ANNOTATION} to the id; "
            f"to keep it, remove the annotation.",
        )


def _marks(scope: ServerScope, kind: str) -> dict[str, _Mark]:
    """Return, by role, the marks of resources of a kind that the Go provider created."""
    if kind == "server":
        mark = _server_mark(scope)
        return {roles.SERVER: mark} if mark else {}
    if kind == "trunk":
        return dict(_trunks(scope))
    server = _server(scope)
    if server is None:
        return {}
    return dict(_ports(scope, server.id) if kind == "port" else _volumes(scope, server))


def _server_mark(scope: ServerScope) -> _Mark | None:
    """Return the mark of the server; None if nothing identifies it."""
    known_id = scope.known_server_id or id_that_machine_knows(scope) or _device_of_ports(scope)
    if known_id:
        return _Mark(lambda body: body["id"] == known_id and body.get("name") == scope.name, with_ids([known_id]))
    return None if scope.context.is_deleting else _named(scope.name, lambda _body: True)


def _named(name: str, fits: Callable[[Mapping[str, Any]], bool]) -> _Mark:
    """Return the mark of a resource that has a name, and fits."""
    return _Mark(lambda body: body.get("name") == name and fits(body), found_by(BY_NAME, name))


def _device_of_ports(scope: ServerScope) -> str | None:
    """Return the id of the server that uses the ports in the status; None if there is none, or several."""
    ports = [scope.cloud_view.find("port", record.role) for record in scope.context.ledger.records_of_kind("port")]
    devices = {device_id for body in ports if body and (device_id := Port(body).device_id)}
    return devices.pop() if len(devices) == 1 else None


def _ports(scope: ServerScope, server_id: str) -> Iterator[tuple[str, _Mark]]:
    for index, port in enumerate(scope.server.spec.ports):
        yield roles.port(index), _port(names.port(scope.name, index, port.name_suffix), server_id)


def _port(name: str, server_id: str) -> _Mark:
    return _named(name, lambda body: Port(body).device_id == server_id)


def _trunks(scope: ServerScope) -> Iterator[tuple[str, _Mark]]:
    """Yield the trunks; a cloud without the extension cannot list them."""
    spec = scope.server.spec
    wishes = [port.trunk if port.trunk is not None else bool(spec.trunk) for port in spec.ports]
    if not any(wishes) or not extension.is_there(scope.cloud, extension.TRUNK):
        return
    for index, port in enumerate(spec.ports):
        port_id = scope.context.ledger.id_of(roles.port(index))
        if wishes[index] and port_id:
            yield roles.trunk(index), _trunk(names.port(scope.name, index, port.name_suffix), port_id)


def _trunk(name: str, port_id: str) -> _Mark:
    return _named(name, lambda body: Trunk(body).port_id == port_id)


def _volumes(scope: ServerScope, server: Server) -> Iterator[tuple[str, _Mark]]:
    """Yield the volumes; disks on the host have none (W-25).

    Raises:
        CloudUnavailableError: the server's cell is down, so its attachments cannot be listed.
    """
    spec, name = scope.server.spec, scope.name
    if server.volumes is None and desired.volume_roles(scope.server):
        raise CloudUnavailableError(f"volumes of server {server.id} cannot be listed: its Nova cell is down")
    if spec.root_volume:
        yield roles.volume(None), _volume(names.volume(name, "root"), server)
    for index, device in enumerate(spec.additional_block_devices):
        if device.storage.type == "Volume":
            yield roles.volume(index), _volume(names.volume(name, device.name), server)


def _volume(name: str, server: Server) -> _Mark:
    """Return the mark of a volume that Nova deletes with the server; it keeps volumes that a user attached."""
    dying = {each.id for each in server.volumes or () if each.is_deleted_with_server}

    def fits(body: Mapping[str, Any]) -> bool:
        found = Volume(body)
        return found.id in dying and found.server_ids <= {server.id}

    return _named(name, fits)
