"""Ports of a server and their trunks; created before the server, never for a running one."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from api.v1beta2.port import ResolvedPortSpec
from capo.engine.steps import Create, Done, NotNeeded, Outcome
from capo.errors import CapoError, NotYetObserved
from capo.json_types import Body
from capo.openstack import extension, port, trunk
from capo.openstack.port import Port
from capo.openstack.trunk import Trunk, WantedTrunk
from controllers import address_pairs, attempts, roles
from controllers.openstackserver import desired, needs, repairs, takeover
from controllers.openstackserver.scope import ServerScope


def ensure_ports(scope: ServerScope) -> Outcome:
    """Create all ports of the server in one call, and reconcile their tags."""
    if scope.known_server_id is None:
        # Both lists at once: the server is created right after its ports.
        scope.cloud_view.prefetch("server", roles.SERVER)
    count = len(scope.server.spec.ports)
    found = {index: takeover.find(scope, "port", roles.port(index)) for index in range(count)}
    missing = [index for index, body in found.items() if body is None]
    if missing and takeover.was_created(scope):
        gone = ", ".join(map(roles.port, missing))
        return Done(f"{gone} was deleted externally; ports of a running server are not recreated")
    if missing:
        return Create(
            "port",
            tuple(map(roles.port, missing)),
            lambda: _created_ports(scope, missing),
            next=_created_after_ports(scope),
            needs=lambda: needs.of_ports(scope, len(missing)),
        )
    attempts.try_each(found, lambda index: _tag(scope, "port", found[index], index))
    return Done("; ".join(_changes(scope, found)))


def _created_after_ports(scope: ServerScope) -> tuple[tuple[str, str], ...]:
    """Return kind and role of what the same reconcile creates; the server only if it need not wait for volumes."""
    if scope.context.is_taken_over:
        return ()
    trunks = (("trunk", roles.trunk(index)) for index, each in enumerate(scope.dependencies.ports) if each.trunk)
    volumes = tuple(("volume", role) for role in desired.volume_roles(scope.server))
    return (*trunks, *(volumes or (("server", roles.SERVER),)))


def _changes(scope: ServerScope, found: Mapping[int, Body | None]) -> Iterator[str]:
    """Yield external changes of the ports as messages; those that the policy names are repaired."""
    resolved = scope.resolved.ports if scope.resolved else ()
    record = address_pairs.record_of(scope.context.obj)
    edited = dict(enumerate(record.pairs)) if record else {}
    for index, wish in enumerate(resolved):
        body = found.get(index)
        if body is None or (record and index in record.changes):
            continue
        if text := repairs.port_message(scope, roles.port(index), wish, Port(body), edited=edited.get(index)):
            yield text


def _created_ports(scope: ServerScope, missing: list[int]) -> dict[str, Body]:
    ports = scope.dependencies.ports
    wishes = [desired.port(ports[index], scope.stamp(roles.port(index))) for index in missing]
    return dict(zip(map(roles.port, missing), port.create_all(scope.cloud, wishes), strict=True))


def _tag(scope: ServerScope, kind: str, body: Body | None, index: int) -> None:
    """Set the user's tags on a port or trunk: Neutron accepts none when it creates it. Their order is insignificant."""
    resolved = scope.resolved
    tags = set(resolved.ports[index].tags) if resolved and index < len(resolved.ports) else set()
    if body is None or not tags or tags == set(body.get("tags") or ()):
        return
    replace = port.replace_tags if kind == "port" else trunk.replace_tags
    try:
        scope.cloud_view.upsert(kind, replace(scope.cloud, body, sorted(tags)))
    except CapoError as error:
        scope.cloud_view.failed(kind, body["id"], error)
        raise


def remove_ports(scope: ServerScope) -> Outcome:
    """Delete all ports of the server; a failure does not stop the deletion of the others."""
    _delete_ports(scope, kept=())
    return Done()


def _delete_ports(scope: ServerScope, *, kept: Collection[str]) -> None:
    def delete(port_id: str) -> None:
        port.delete(scope.cloud, port_id)
        scope.cloud_view.forget("port", port_id)

    attempts.try_each((body["id"] for body in scope.cloud_view.owned("port") if body["id"] not in kept), delete)


def ensure_trunks(scope: ServerScope) -> Outcome:
    """Create a trunk on every port that asks for one, and reconcile its tags."""
    resolved = scope.resolved
    wishes = {index: each for index, each in enumerate(resolved.ports) if each.trunk} if resolved else {}
    found: dict[int, Body | None] = {}
    for index, wish in wishes.items():
        found[index] = takeover.find(scope, "trunk", roles.trunk(index))
        if found[index] is None and not takeover.was_created(scope):
            return Create("trunk", (roles.trunk(index),), partial(_created_trunk, scope, index, wish))
    attempts.try_each(found, lambda index: _tag(scope, "trunk", found[index], index))
    if missing := [roles.trunk(index) for index, body in found.items() if body is None]:
        return Done(f"{', '.join(missing)} was deleted externally; trunks of a running server are not recreated")
    return Done() if wishes else NotNeeded()


def _created_trunk(scope: ServerScope, index: int, wish: ResolvedPortSpec) -> dict[str, Body]:
    role = roles.trunk(index)
    port_id = scope.context.ledger.id_of(roles.port(index)) or ""
    wanted_trunk = WantedTrunk(scope.stamp(role), wish.name, port_id=port_id, description=wish.description)
    return {role: trunk.create(scope.cloud, wanted_trunk)}


def remove_trunks(scope: ServerScope) -> Outcome:
    """Delete all trunks of the server; subports are detached and kept."""
    owned = map(Trunk, scope.cloud_view.owned("trunk")) if _has_trunks(scope) else ()
    left = {each.id: each.port_id for each in owned}

    def delete(trunk_id: str) -> None:
        trunk.delete(scope.cloud, trunk_id)
        scope.cloud_view.forget("trunk", trunk_id)
        del left[trunk_id]

    # The step of the ports waits for all trunks: if one cannot be deleted, delete the ports without trunks here.
    try:
        attempts.try_each(tuple(left), delete)
    except CapoError:
        with contextlib.suppress(CapoError, NotYetObserved):  # the step of the ports reports them
            _delete_ports(scope, kept=set(left.values()))
        raise
    return Done()


def _has_trunks(scope: ServerScope) -> bool:
    """Return whether trunks may exist: a cloud without the extension cannot list them."""
    if scope.context.ledger.records_of_kind("trunk"):
        return True
    spec = scope.server.spec
    is_wanted = bool(spec.trunk or any(p.trunk for p in spec.ports))
    return is_wanted and extension.is_there(scope.cloud, extension.TRUNK)
