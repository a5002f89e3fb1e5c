"""What the Go provider made for a server, and how it is told from what others made.

It leaves no mark but names. They count only for objects that were taken over from it (ADR 0001, 7), and only where no
other server uses what has the name. Source: behaviour reference, machines.md 1.1 and 1.4 to 1.10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from capo import names
from capo.controllers.openstackserver.scope import SERVER_ROLE, ServerScope, port_role, trunk_role, volume_role
from capo.engine.steps import Resource

Fits = Callable[[Mapping[str, Any]], bool]


def find(scope: ServerScope, kind: str, role: str) -> Resource | None:
    """Return the resource of a role, or None when it is proven that there is none; see ``Observed.find``."""
    marks = dict(_marks(scope, kind)) if scope.turn.is_taken_over else {}
    return scope.observed.find(kind, role, upstream=marks.get(role))


def owned(scope: ServerScope, kind: str) -> list[Resource]:
    """Return everything of a kind that is ours, for its deletion; the Go provider's for one taken over from it."""
    if scope.turn.is_taken_over:
        for role, _ in list(_marks(scope, kind)):
            find(scope, kind, role)
    return list(scope.observed.owned(kind))


def _marks(scope: ServerScope, kind: str) -> Iterator[tuple[str, Fits]]:
    """Yield the roles of a kind with what tells the resource without a stamp that is meant."""
    spec, name = scope.server.spec, scope.name
    match kind:
        case "server":
            yield SERVER_ROLE, lambda body: body.get("name") == name
        case "port":
            for index, port in enumerate(spec.ports):
                yield port_role(index), _port(scope, names.port(name, index, port.name_suffix))
        case "trunk":
            for index in range(len(spec.ports)):
                if port_id := scope.turn.ledger.id_of(port_role(index)):
                    yield trunk_role(index), _trunk(port_id)
        case "volume":
            if spec.root_volume:
                yield volume_role(None), _volume(scope, names.volume(name, "root"))
            for index, device in enumerate(spec.additional_block_devices):
                yield volume_role(index), _volume(scope, names.volume(name, device.name))


def _port(scope: ServerScope, name: str) -> Fits:
    users = _users(scope)
    return lambda body: body.get("name") == name and (not users or body.get("device_id") in users)


def _trunk(port_id: str) -> Fits:
    return lambda body: body.get("port_id") == port_id


def _volume(scope: ServerScope, name: str) -> Fits:
    users = _users(scope)

    def fits(body: Mapping[str, Any]) -> bool:
        servers = {attachment.get("server_id") for attachment in body.get("attachments") or ()} or {""}
        return body.get("name") == name and (not users or servers <= users)

    return fits


def _users(scope: ServerScope) -> set[str]:
    """Return what may be told as the user of a part: the server, or nobody; empty as long as no server is known."""
    return {scope.known_server_id, ""} if scope.known_server_id else set()
