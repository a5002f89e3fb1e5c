"""The steps of an OpenStackServer: references, ports, volumes, server; removed in the opposite order.

Decisions are in ``resolve.py`` and ``wanted.py``; what is shown beside the conditions of the steps is in ``status.py``.
"""

from __future__ import annotations

import datetime
from functools import partial
from typing import Final

from capo.api.v1alpha1.openstackserver import ResolvedServerSpec
from capo.controllers.openstackserver import resolve, wanted
from capo.controllers.openstackserver.scope import SERVER_ROLE, ServerScope, port_role, trunk_role
from capo.controllers.openstackserver.userdata import user_data
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Plan, Resource, Step, Wait, nothing
from capo.errors import CapoError, NoValidHostError, ServerFailedError, VolumeFailedError
from capo.openstack import port, server, trunk, volume
from capo.openstack.server import WantedServer
from capo.openstack.trunk import WantedTrunk


def resolve_references(scope: ServerScope) -> Outcome:
    """Have every reference of the spec resolved; pinned before anything is made from it."""
    if scope.resolved is None:
        found = resolve.resolved(scope)
        scope.turn.pinned["resolved"] = found.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    return Done()


def ensure_ports(scope: ServerScope) -> Outcome:
    """Have all ports of the server; they are made in one call."""
    found = {role: scope.observed.find("port", role) for role in _wanted_ports(scope)}
    missing = {role: _wanted_ports(scope)[role] for role, body in found.items() if body is None}
    if missing and scope.known_server_id is not None:
        return Done(f"gone behind the server's back: {', '.join(missing)}; a running server gets no new port")
    if missing:
        return Create("port", tuple(missing), lambda: _created_ports(scope, missing))
    for role, body in found.items():
        _tag(scope, role, body)
    return Done()


def _wanted_ports(scope: ServerScope) -> dict[str, port.WantedPort]:
    ports = enumerate(_resolved(scope).ports)
    return {port_role(i): wanted.port(p, scope.stamp(port_role(i))) for i, p in ports}


def _created_ports(scope: ServerScope, missing: dict[str, port.WantedPort]) -> dict[str, Resource]:
    return dict(zip(missing, port.create_all(scope.cloud, list(missing.values())), strict=True))


def _tag(scope: ServerScope, role: str, body: Resource | None) -> None:
    """Have the user's tags on a port; Neutron takes none while it makes it."""
    index = int(role.rpartition("-")[2])
    tags = set(_resolved(scope).ports[index].tags)
    if body is not None and tags and tags != set(body.get("tags") or ()):
        scope.observed.learn("port", port.replace_tags(scope.cloud, body, sorted(tags)))


def remove_ports(scope: ServerScope) -> Outcome:
    """Have no port of ours left."""
    for body in scope.observed.owned("port"):
        port.delete(scope.cloud, body["id"])
        scope.observed.forget("port", body["id"])
    return Done()


def ensure_trunks(scope: ServerScope) -> Outcome:
    """Have a trunk on every port that asks for one."""
    roles = [(i, trunk_role(i)) for i, p in enumerate(_resolved(scope).ports) if p.trunk]
    for index, role in roles:
        if scope.observed.find("trunk", role) is None:
            return Create("trunk", (role,), partial(_created_trunk, scope, index, role))
    return Done() if roles else NotNeeded()


def _created_trunk(scope: ServerScope, index: int, role: str) -> dict[str, Resource]:
    resolved = _resolved(scope).ports[index]
    port_id = scope.turn.ledger.id_of(port_role(index)) or ""
    wanted_trunk = WantedTrunk(scope.stamp(role), resolved.name, port_id=port_id, description=resolved.description)
    return {role: trunk.create(scope.cloud, wanted_trunk)}


def remove_trunks(scope: ServerScope) -> Outcome:
    """Have no trunk of ours left; subports are detached, their ports stay with whoever made them."""
    for body in scope.observed.owned("trunk") if _has_trunks(scope) else ():
        trunk.delete(scope.cloud, body["id"])
        scope.observed.forget("trunk", body["id"])
    return Done()


def ensure_volumes(scope: ServerScope) -> Outcome:
    """Have every volume of the server, available or in use."""
    volumes = wanted.volumes(scope.server, _resolved(scope).image_id, scope.turn.owner)
    for role, volume_ in volumes.items():
        found = scope.observed.find("volume", role)
        if found is None and scope.known_server_id is not None:
            continue
        if found is None:
            return Create("volume", (role,), partial(_created_volume, scope, role, volume_))
        if found["status"].startswith("error"):
            raise VolumeFailedError(
                f"volume {found['name']} is in state {found['status']}", resource=f"volume {found['id']}"
            )
        if found["status"] not in _USABLE:
            scope.observed.poll("volume")
            return Wait("VolumeNotReady", f"volume {found['name']} is {found['status']}")
    return Done() if volumes else NotNeeded()


def _created_volume(scope: ServerScope, role: str, wanted_volume: volume.WantedVolume) -> dict[str, Resource]:
    return {role: volume.create(scope.cloud, wanted_volume)}


_USABLE: Final = ("available", "in-use", "attaching", "reserved")
_GOING: Final = ("in-use", "detaching", "attaching", "deleting", "creating", "downloading")


def remove_volumes(scope: ServerScope) -> Outcome:
    """Have no volume of ours left; Nova deletes those that it attached, the rest is deleted here."""
    left = scope.observed.owned("volume") if _has_volumes(scope) else []
    for body in left:
        if body["status"] in _GOING:
            continue
        if body["status"] == "reserved":  # the server is gone by now, or never came
            volume.release(scope.cloud, body["id"])
        volume.delete(scope.cloud, body["id"])
        scope.observed.wrote("volume")
    if not left:
        return Done()
    scope.observed.poll("volume")
    return Wait("Deleting", f"{len(left)} volumes are being deleted")


def ensure_server(scope: ServerScope) -> Outcome:
    """Have one Nova server for this object, in state ACTIVE; one that vanished is never made again."""
    found = scope.observed.find("server", SERVER_ROLE)
    if found is None and scope.known_server_id is not None:
        return Wait("InstanceNotFound", f"server {scope.known_server_id} vanished; replace the Machine")
    if found is None:
        _release_volumes(scope)
        server_ = _wanted_server(scope)
        return Create("server", (SERVER_ROLE,), lambda: {SERVER_ROLE: _created_server(scope, server_)})
    return _of_state(scope, found)


def _created_server(scope: ServerScope, wanted_server: WantedServer) -> Resource:
    """Make the server; after a refusal nothing is believed of its volumes: Nova may have left them reserved."""
    try:
        return server.create(scope.cloud, wanted_server)
    except CapoError:
        for record in scope.turn.ledger.of_kind("volume"):
            scope.observed.doubt("volume", record.id)
        raise


def _release_volumes(scope: ServerScope) -> None:
    """Have no volume reserved for a server that Nova refused; one that may still come keeps its own."""
    until_s = scope.observed.pending_until("server")
    if until_s is not None and scope.turn.started_s < until_s:
        return
    for record in scope.turn.ledger.of_kind("volume"):
        if scope.observed.get("volume", record.id)["status"] == "reserved":
            volume.release(scope.cloud, record.id)
            scope.observed.doubt("volume", record.id)


def _of_state(scope: ServerScope, found: Resource) -> Outcome:
    """Return what a server's state means (behaviour reference, machines.md 1.13)."""
    state = found.get("status") or "UNKNOWN"
    if state == "ACTIVE":
        return Done()
    if state == "ERROR":
        raise _failure(found)
    if state == "DELETED":
        return Wait("InstanceDeleted", f"server {found['id']} was deleted; replace the Machine")
    scope.observed.poll("server")
    if state == "BUILD":
        _refuse_endless_build(scope, found)
        limit_s = scope.turn.tools.settings.instance_create_timeout_s
        return Wait("InstanceNotReady", f"server {found['id']} is being built", after_s=limit_s)
    return Wait("InstanceNotReady", f"server {found['id']} is {state}", status="Unknown")


def _refuse_endless_build(scope: ServerScope, found: Resource) -> None:
    limit_s = scope.turn.tools.settings.instance_create_timeout_s
    created = found.get("created")
    if created and scope.turn.started_s - datetime.datetime.fromisoformat(created).timestamp() > limit_s:
        raise ServerFailedError(found["id"], fault=f"the server is in BUILD for more than {limit_s:.0f} s")


def _failure(found: Resource) -> ServerFailedError:
    fault = found.get("fault") or {}
    text = fault.get("message") or "the server is in state ERROR and Nova gives no fault"
    kind = NoValidHostError if "No valid host" in text else ServerFailedError
    return kind(found["id"], fault=text, code=fault.get("code"))


def _wanted_server(scope: ServerScope) -> WantedServer:
    resolved = _resolved(scope)
    ids = {record.role: record.id for record in scope.turn.ledger.records.values()}
    parts = wanted.Parts(
        port_ids=[ids[port_role(index)] for index in range(len(resolved.ports))],
        volume_ids={role: id_ for role, id_ in ids.items() if role.startswith("volume-")},
        user_data=user_data(scope),
    )
    return wanted.server(scope.server, resolved, stamp=scope.stamp(SERVER_ROLE), parts=parts)


def remove_server(scope: ServerScope) -> Outcome:
    """Have no server of ours left."""
    left = [body for body in scope.observed.owned("server") if body.get("status") != "DELETED"]
    for body in left:
        if body.get("OS-EXT-STS:task_state") != "deleting":
            server.delete(scope.cloud, body["id"])
            _look_for_its_end(scope, body)
    if not left:
        return Done()
    scope.observed.poll("server")
    return Wait("Deleting", f"server {left[0]['id']} is being deleted")


def _look_for_its_end(scope: ServerScope, body: Resource) -> None:
    """Have a deleted server gone from what is seen as soon as Nova is done with it.

    One that ran is then found as DELETED among the changes that are polled for; one that never got a host vanishes
    without a trace, so everything has to be listed.
    """
    if body.get("OS-SRV-USG:launched_at"):
        scope.observed.learn("server", {**body, "OS-EXT-STS:task_state": "deleting"})
    else:
        scope.observed.wrote("server")
    scope.observed.wrote("volume")  # Nova takes them away with it: what was seen of them before is no use


def _resolved(scope: ServerScope) -> ResolvedServerSpec:
    if scope.resolved is None:
        raise AssertionError("references are resolved by the first step, which all others need")
    return scope.resolved


def _has_trunks(scope: ServerScope) -> bool:
    spec = scope.server.spec
    return bool(spec.trunk or any(p.trunk for p in spec.ports) or scope.turn.ledger.of_kind("trunk"))


def _has_volumes(scope: ServerScope) -> bool:
    spec = scope.server.spec
    return bool(spec.root_volume or spec.additional_block_devices or scope.turn.ledger.of_kind("volume"))


STEPS: Final = (
    Step("DependenciesResolved", ensure=resolve_references, remove=nothing),
    Step("PortsReady", ensure=ensure_ports, remove=remove_ports, needs=("DependenciesResolved",)),
    Step("TrunksReady", ensure=ensure_trunks, remove=remove_trunks, needs=("PortsReady",)),
    Step("VolumesReady", ensure=ensure_volumes, remove=remove_volumes, needs=("DependenciesResolved",)),
    Step(
        "InstanceReady",
        ensure=ensure_server,
        remove=remove_server,
        needs=("PortsReady", "TrunksReady", "VolumesReady"),
    ),
)
PLAN: Final = Plan(STEPS)
