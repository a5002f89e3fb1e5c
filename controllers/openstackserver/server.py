"""The Nova server: created once, then observed, never recreated.

Source of the meaning of its states: docs/explanation/go-provider.md, G-27.
"""

from __future__ import annotations

from typing import Final

from api import server_build_timeout
from capo.engine.steps import Create, Done, Outcome, Wait
from capo.errors import (
    BlockedError,
    CapoError,
    ServerBuildTimeoutError,
    ServerFailedError,
    ServerRebuiltError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.openstack import server, volume
from capo.openstack.server import Server, WantedServer
from controllers import roles
from controllers.openstackserver import (
    desired,
    external_changes,
    needs,
    nova_faults,
    repairs,
    resolve,
    takeover,
    volumes,
)
from controllers.openstackserver.scope import ServerScope
from controllers.openstackserver.userdata import user_data

_MAX_FAULT: Final = 600
_DELETION: Final = "deletion"
"""Recorded when Nova is asked to delete a server: how it was asked, and the server's fault at that time."""


def ensure_server(scope: ServerScope) -> Outcome:
    """Create the Nova server once and wait until it is ACTIVE; a deleted one is never recreated."""
    found = takeover.find_server(scope)
    if found is None and (known_id := scope.known_server_id or takeover.id_that_machine_knows(scope)):
        return Wait("InstanceNotFound", f"server {known_id} vanished; replace the Machine")
    if found is None:
        _release_volumes(scope)
        server_ = _wanted_server(scope)
        return Create(
            "server",
            (roles.SERVER,),
            lambda: {roles.SERVER: _created_server(scope, server_)},
            needs=lambda: needs.of_server(scope),
        )
    if scope.context.is_taken_over:
        _take_image(scope, found)
    return _of_state(scope, found)


def _created_server(scope: ServerScope, wanted_server: WantedServer) -> Body:
    """Create the server; invalidate its cached volumes if Nova refuses."""
    try:
        return server.create(scope.cloud, wanted_server)
    except CapoError as error:
        volumes.invalidate(scope, error)
        raise


def _release_volumes(scope: ServerScope) -> None:
    """Release volumes that Nova reserved for a refused server, unless the server may still appear."""
    until_s = scope.cloud_view.pending_until("server")
    if until_s is not None and scope.context.started_s < until_s:
        return
    for record in scope.context.ledger.records_of_kind("volume"):
        if scope.cloud_view.get("volume", record.id)["status"] == "reserved":
            volume.release(scope.cloud, record.id)
            scope.cloud_view.invalidate("volume", record.id)


def _of_state(scope: ServerScope, found: Server) -> Outcome:
    """Return the outcome for a server's state (G-27)."""
    state = found.status or "UNKNOWN"
    if state == "ACTIVE":
        _refuse_rebuilt(scope, found)
        external_changes.refuse_wiped(scope, found)
        return Done("; ".join([*_changes(scope, found), *external_changes.noticed(scope, found)]))
    if state == "ERROR":
        raise _failure(scope, found)
    if state == "DELETED":
        return Wait("InstanceDeleted", f"server {found.id} was deleted; replace the Machine")
    if state == "BUILD" or found.task_state:
        scope.cloud_view.poll("server")  # it is changing state; any other server is polled once a minute
    if state == "BUILD":
        return _of_building(scope, found)
    return Wait("InstanceNotReady", f"server {found.id} is {state}", status="Unknown")


def _refuse_rebuilt(scope: ServerScope, found: Server) -> None:
    """Refuse a server whose image is not the one that it was created from.

    Raises:
        ServerRebuiltError: it has another image.
    """
    if scope.server.status.instance_id is None:
        _take_image(scope, found)
    if image_id := _other_image(scope, found):
        made_from = scope.resolved.image_id if scope.resolved else ""
        raise ServerRebuiltError(
            found.id, fault=f"rebuilt from image {image_id} externally; it was created from {made_from}"
        )


def _take_image(scope: ServerScope, found: Server) -> None:
    """Record the image of a server that was found, not created here, as the one it was created from.

    If its status was lost or it was taken over, its references are resolved again, maybe to another image by now: that
    is no fault of the server.
    """
    if (image_id := _other_image(scope, found)) and scope.resolved:
        scope.context.pinned["resolved"] = resolve.pinned(scope.resolved, imageID=image_id)


def _other_image(scope: ServerScope, found: Server) -> str | None:
    """Return the image of a server if it differs from the recorded one; one that boots from a volume shows none."""
    resolved, image_id = scope.resolved, found.image_id
    if not image_id or resolved is None or resolved.image_id.lower() in ("", image_id.lower()):
        return None
    return image_id


def _changes(scope: ServerScope, found: Server) -> list[str]:
    """Return external changes of the server as messages; those that the policy names are repaired."""
    spec = scope.server.spec
    flavor = found.flavor_name
    changes = []
    if flavor and spec.flavor and not spec.flavor_id and flavor != spec.flavor:
        changes.append(f"resized to flavor {flavor}; it was created with {spec.flavor}")
    volume_ids = {record.id for record in scope.context.ledger.records_of_kind("volume")}
    return [*changes, *repairs.server_messages(scope, found, volume_ids)]


def _of_building(scope: ServerScope, found: Server) -> Wait:
    """Return the wait for a server that Nova builds.

    Raises:
        ServerBuildTimeoutError: its time to build is over; if it becomes ACTIVE later, it counts.
    """
    limit_s, mistake = _build_timeout_s(scope)
    words = "; ".join(filter(None, (f"server {found.id} is being built", mistake)))
    if not (created := found.created):
        return Wait("InstanceNotReady", words, after_s=limit_s)
    left_s = limit_s - scope.cloud.ages.age_s("compute", found.id, created)
    if left_s < 0:
        late = f"the server is in BUILD for more than {limit_s:.0f} s"
        raise ServerBuildTimeoutError(found.id, fault="; ".join(filter(None, (late, mistake))))
    return Wait("InstanceNotReady", words, after_s=left_s + 1.0)


def _build_timeout_s(scope: ServerScope) -> tuple[float, str]:
    """Return for how many seconds a server may be in BUILD, and what is wrong with the annotation that says so."""
    default_s = scope.context.deps.settings.server_build_timeout_s
    try:
        return server_build_timeout.seconds_in(scope.context.obj) or default_s, ""
    except ValueError as error:
        return default_s, str(error)


def _failure(scope: ServerScope, found: Server) -> ServerFailedError:
    words = _fault_words(found)
    return ServerFailedError(
        found.id,
        fault=words,
        code=found.fault_code,
        request_id=_request_id(scope, found),
        cause=nova_faults.cause_of(words),
    )


def _fault_words(found: Server) -> str:
    """Return Nova's fault of a server in ERROR with its code."""
    text = (found.fault_message or "the server is in state ERROR and Nova gives no fault")[:_MAX_FAULT]
    return f"{text.rstrip(' .')} (fault code {found.fault_code})" if found.fault_code else text


def _request_id(scope: ServerScope, found: Server) -> str | None:
    """Return the id of the request that put the server into ERROR; None if Nova cannot be asked."""
    try:
        return server.failed_request_id(scope.cloud, found.id, since=str(found.fault_created))
    except CapoError:
        return None


def _wanted_server(scope: ServerScope) -> WantedServer:
    resolved = scope.dependencies
    ids = {record.role: record.id for record in scope.context.ledger.records.values()}
    parts = desired.Parts(
        port_ids=[ids[roles.port(index)] for index in range(len(resolved.ports))],
        volume_ids={role: id_ for role, id_ in ids.items() if roles.is_volume(role)},
        user_data=user_data(scope),
    )
    return desired.server(scope.server, resolved, stamp=scope.stamp(roles.SERVER), parts=parts)


def remove_server(scope: ServerScope) -> Outcome:
    """Delete the server.

    Raises:
        BlockedError: Nova failed to delete it; retried with increasing delays.
    """
    if scope.context.is_taken_over:
        takeover.record(scope)  # attachments cannot be read once the server is deleted
        return Wait("Deleting", "recording ports, trunks and volumes before the server is deleted", after_s=0.0)
    left = _left(scope)
    failures = [failure for each in left if (failure := _ask_for_deletion(scope, each))]
    if failures:
        raise failures[0]
    if not left:
        scope.sightings.forget(scope.known_server_id or "")
        return Done()
    scope.cloud_view.poll("server")
    fault = f"; its fault: {_fault_words(left[0])}" if left[0].status == "ERROR" else ""
    return Wait("Deleting", f"server {left[0].id} is being deleted{fault}")


def _left(scope: ServerScope) -> list[Server]:
    """Return the remaining servers; a Nova that is too old is asked only if a server may exist."""
    try:
        return [each for each in map(Server, scope.cloud_view.owned("server")) if each.status != "DELETED"]
    except UnsupportedByCloudError:
        pending = {each.kind for each in scope.context.ledger.pending.values()}
        if scope.known_server_id or "server" in pending or scope.context.is_history_lost:
            raise
        return []


def _ask_for_deletion(scope: ServerScope, found: Server) -> BlockedError | None:
    """Ask Nova to delete a server unless it is doing so; return why an earlier request failed."""
    is_going = found.task_state == "deleting"
    way = "force" if found.status == "SOFT_DELETED" else "delete"
    fault = str(found.fault_created)
    asked_way, _, fault_then = (scope.sightings.last(found.id, _DELETION) or "").partition(" ")
    was_asked = asked_way == way
    # A server in ERROR may have been given up by Nova before this process started.
    is_under_way = fault == fault_then if was_asked else found.status != "ERROR"
    if is_going and is_under_way:
        return None
    _delete(scope, found)
    scope.sightings.note(found.id, _DELETION, f"{way} {fault}", now_s=scope.context.deps.clock.wall())
    _look_for_its_end(scope, found)
    return _failed_deletion(found) if was_asked else None


def _failed_deletion(found: Server) -> BlockedError:
    """Return the error for a server that exists although Nova was asked to delete it: Nova may leave it in ERROR."""
    words = _fault_words(found) if found.status == "ERROR" else f"it is {found.status}"
    return BlockedError(
        f"Nova was asked to delete it and gave up: {words}",
        resource=f"server {found.id}",
        next_step="Correct the cause, or have Nova's administrator delete it.",
    )


def _delete(scope: ServerScope, found: Server) -> None:
    """Delete a server, without the cloud's soft-delete period (W-30)."""
    # During that period its ports would be deleted while its volumes stay, unreported.
    if found.status == "SOFT_DELETED":
        server.force_delete(scope.cloud, found.id)
    else:
        server.delete(scope.cloud, found.id)


def _look_for_its_end(scope: ServerScope, found: Server) -> None:
    """Ensure that the lists show a deleted server's end as soon as Nova has deleted it."""
    # A server that ran appears as DELETED in Nova's list of changes; one that never had a host vanishes without an
    # entry, so a full list is needed.
    if found.launched_at:
        scope.cloud_view.upsert("server", found.being_deleted())
    else:
        scope.cloud_view.mark_written("server")
    scope.cloud_view.end("server", found.id)
    for record in scope.context.ledger.records_of_kind("volume"):
        scope.cloud_view.end("volume", record.id)
    scope.cloud_view.mark_written("volume")  # Nova deletes them with it: earlier lists are outdated
