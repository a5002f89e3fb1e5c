"""What the Go provider made for a server, and what proves that.

It leaves no mark but names, and a name proves nothing: users and other clusters use the same. A resource is adopted if
it carries no stamp, has the name, and belongs to the one server that is known: a port by its device, a trunk by that
port, a volume by Nova's own record that it goes with the server. The server is known by the status, the taken-over
annotation, the provider ID of the machine, or as the device of the ports that the status names. By its name alone it is
adopted only before the deletion of the object is requested (ADR 0001, 7). Source: behaviour reference, machines.md 1.1
and 1.4 to 1.10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from capo import names
from capo.contract import references
from capo.controllers.openstackserver import wanted
from capo.controllers.openstackserver.scope import SERVER_ROLE, ServerScope, port_role, trunk_role, volume_role
from capo.engine.steps import Resource
from capo.errors import BlockedError, CapoError, CloudUnavailableError, ForeignResourceError, NotYetObserved
from capo.kube.kinds import OPENSTACK_MACHINE
from capo.openstack import extension

Fits = Callable[[Mapping[str, Any]], bool]

_PARTS: Final = ("port", "trunk", "volume")
"""In this order: a trunk is known by its port."""
_ATTACHED: Final = "os-extended-volumes:volumes_attached"


def find(scope: ServerScope, kind: str, role: str) -> Resource | None:
    """Return the resource of a role, or None when it is proven that there is none; see ``Observed.find``."""
    if not scope.turn.is_taken_over:
        return scope.observed.find(kind, role)
    return scope.observed.find(kind, role, upstream=_marks(scope, kind).get(role))


def record(scope: ServerScope) -> None:
    """Record everything that the Go provider made for the server.

    Raises:
        NotYetObserved: a list is under way.
        BlockedError: the object is being deleted, and nothing but its name tells whose a server is.
    """
    if _server(scope) is None and scope.turn.is_deleting:
        _refuse_namesakes(scope)
    for kind in _PARTS:
        for role in _marks(scope, kind):
            _own(scope, kind, role)


def is_recorded(scope: ServerScope) -> bool:
    """Tell whether everything that exists of the server is recorded, so that a takeover is over."""
    try:
        record(scope)
        server = _server(scope)
    except (NotYetObserved, CapoError):
        return False
    if server is None:
        return scope.turn.is_deleting or not (scope.known_server_id or id_that_machine_knows(scope))
    return scope.turn.is_deleting or server.get("status") != "BUILD"  # its ports have no device at first


def id_that_machine_knows(scope: ServerScope) -> str | None:
    """Return the id in the provider ID of the machine that the object was made for; None while it has none.

    It outlives a move, the object's status does not: a server that vanished before it is not made a second time.
    """
    owner = references.owner(scope.turn.obj, group=names.GROUP, kind=OPENSTACK_MACHINE.kind)
    machine = scope.turn.tools.store.get(OPENSTACK_MACHINE, scope.namespace, owner.name) if owner else None
    if machine is None or not references.is_owned_by(scope.turn.obj, machine):
        return None
    return str(machine["spec"].get("providerID") or "").rpartition("/")[2] or None


def _own(scope: ServerScope, kind: str, role: str) -> Resource | None:
    """Return the resource of a role; what is somebody else's does not hold up a deletion and is left alone."""
    try:
        return find(scope, kind, role)
    except ForeignResourceError:
        if scope.turn.is_deleting:
            return None
        raise


def _server(scope: ServerScope) -> Resource | None:
    return _own(scope, "server", SERVER_ROLE)


def _refuse_namesakes(scope: ServerScope) -> None:
    """Leave it to a person whose a server is that has the name of an object which is being deleted.

    Raises:
        BlockedError: there is one without an owner, and nothing that was recorded names another one.
    """
    if scope.server.status.instance_id or id_that_machine_knows(scope):
        return
    items = scope.observed.others("server", lambda body: body.get("name") == scope.name)
    ids = sorted(item.body["id"] for item in items if item.stamp is None)
    if ids:
        raise BlockedError(
            f"server {' and server '.join(ids)} may be the one of this object: the name is the same, "
            f"and neither status nor machine names a server",
            resource=f"OpenStackServer {scope.name}",
            next_step=f"To have it deleted, set the annotation {names.TAKEN_OVER_ANNOTATION} to the id; "
            f"to keep it, remove the annotation.",
        )


def _marks(scope: ServerScope, kind: str) -> dict[str, Fits]:
    """Return, by role, what tells the resources of a kind that the Go provider made."""
    if kind == "server":
        mark = _server_mark(scope)
        return {SERVER_ROLE: mark} if mark else {}
    if kind == "trunk":
        return dict(_trunks(scope))
    server = _server(scope)
    if server is None:
        return {}
    return dict(_ports(scope, server["id"]) if kind == "port" else _volumes(scope, server))


def _server_mark(scope: ServerScope) -> Fits | None:
    """Return what tells the server; None when nothing does."""
    known_id = scope.known_server_id or id_that_machine_knows(scope) or _device_of_ports(scope)
    if known_id:
        return lambda body: body["id"] == known_id and body.get("name") == scope.name
    return None if scope.turn.is_deleting else lambda body: body.get("name") == scope.name


def _device_of_ports(scope: ServerScope) -> str | None:
    """Return the id of the one server that uses the ports which the status names; None when there is none."""
    ports = [scope.observed.find("port", record.role) for record in scope.turn.ledger.of_kind("port")]
    devices = {str(port["device_id"]) for port in ports if port and port.get("device_id")}
    return devices.pop() if len(devices) == 1 else None


def _ports(scope: ServerScope, server_id: str) -> Iterator[tuple[str, Fits]]:
    for index, port in enumerate(scope.server.spec.ports):
        yield port_role(index), _port(names.port(scope.name, index, port.name_suffix), server_id)


def _port(name: str, server_id: str) -> Fits:
    return lambda body: body.get("name") == name and body.get("device_id") == server_id


def _trunks(scope: ServerScope) -> Iterator[tuple[str, Fits]]:
    """Yield the trunks; a cloud without the extension cannot even list them."""
    spec = scope.server.spec
    wishes = [port.trunk if port.trunk is not None else bool(spec.trunk) for port in spec.ports]
    if not any(wishes) or not extension.is_there(scope.cloud, extension.TRUNK):
        return
    for index, port in enumerate(spec.ports):
        port_id = scope.turn.ledger.id_of(port_role(index))
        if wishes[index] and port_id:
            yield trunk_role(index), _trunk(names.port(scope.name, index, port.name_suffix), port_id)


def _trunk(name: str, port_id: str) -> Fits:
    return lambda body: body.get("name") == name and body.get("port_id") == port_id


def _volumes(scope: ServerScope, server: Resource) -> Iterator[tuple[str, Fits]]:
    """Yield the volumes; disks on the host have none (W-25).

    Raises:
        CloudUnavailableError: the server's cell is down, so that nobody can list what is attached.
    """
    spec, name = scope.server.spec, scope.name
    if _ATTACHED not in server and wanted.volume_roles(scope.server):
        raise CloudUnavailableError(f"volumes of server {server['id']} cannot be listed: its Nova cell is down")
    if spec.root_volume:
        yield volume_role(None), _volume(names.volume(name, "root"), server)
    for index, device in enumerate(spec.additional_block_devices):
        if device.storage.type == "Volume":
            yield volume_role(index), _volume(names.volume(name, device.name), server)


def _volume(name: str, server: Resource) -> Fits:
    """Return what tells a volume that Nova deletes with the server; one that a user attached is not deleted with it."""
    attached = server.get(_ATTACHED) or ()
    dying = {each["id"] for each in attached if each.get("delete_on_termination") is not False}

    def fits(body: Mapping[str, Any]) -> bool:
        users = {attachment.get("server_id") for attachment in body.get("attachments") or ()}
        return body.get("name") == name and body["id"] in dying and users <= {server["id"]}

    return fits
