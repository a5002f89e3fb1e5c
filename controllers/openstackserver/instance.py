"""The Nova server: made once, looked at from then on, never made again.

What its states mean is in machines.md 1.13 of the behaviour reference.
"""

from __future__ import annotations

from typing import Final

from capo.controllers.openstackserver import drift, nova_faults, resolve, traces, upstream, volumes, wanted
from capo.controllers.openstackserver.scope import SERVER_ROLE, ServerScope, port_role
from capo.controllers.openstackserver.userdata import user_data
from capo.engine.steps import Create, Done, Outcome, Resource, Wait
from capo.errors import BlockedError, CapoError, ServerFailedError, ServerRebuiltError, UnsupportedByCloudError
from capo.openstack import server, volume
from capo.openstack.server import WantedServer

_MAX_FAULT: Final = 600
_DELETION: Final = "deletion"
"""What is noted of a server when Nova is asked to delete it: how, and which fault it had by then."""


def ensure_server(scope: ServerScope) -> Outcome:
    """Have one Nova server for this object, in state ACTIVE; one that vanished is never made again."""
    found = upstream.find(scope, "server", SERVER_ROLE)
    if found is None and (known_id := scope.known_server_id or upstream.id_that_machine_knows(scope)):
        return Wait("InstanceNotFound", f"server {known_id} vanished; replace the Machine")
    if found is None:
        _release_volumes(scope)
        server_ = _wanted_server(scope)
        return Create("server", (SERVER_ROLE,), lambda: {SERVER_ROLE: _created_server(scope, server_)})
    if scope.turn.is_taken_over:
        _take_image(scope, found)
    return _of_state(scope, found)


def _created_server(scope: ServerScope, wanted_server: WantedServer) -> Resource:
    """Make the server; after a refusal nothing is believed of its volumes."""
    try:
        return server.create(scope.cloud, wanted_server)
    except CapoError as error:
        volumes.doubt(scope, error)
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
        _refuse_rebuilt(scope, found)
        traces.refuse_wiped(scope, found)
        return Done("; ".join([*_changes(scope, found), *traces.told(scope, found)]))
    if state == "ERROR":
        raise _failure(scope, found)
    if state == "DELETED":
        return Wait("InstanceDeleted", f"server {found['id']} was deleted; replace the Machine")
    if state == "BUILD" or found.get("OS-EXT-STS:task_state"):
        scope.observed.poll("server")  # it is on its way to another state; one that stays is looked at once a minute
    if state == "BUILD":
        return Wait("InstanceNotReady", f"server {found['id']} is being built", after_s=_left_to_build_s(scope, found))
    return Wait("InstanceNotReady", f"server {found['id']} is {state}", status="Unknown")


def _refuse_rebuilt(scope: ServerScope, found: Resource) -> None:
    """Refuse a server whose image is not the one that it was made from.

    Raises:
        ServerRebuiltError: it is another one.
    """
    if scope.server.status.instance_id is None:
        _take_image(scope, found)
    if image_id := _other_image(scope, found):
        made_from = scope.resolved.image_id if scope.resolved else ""
        raise ServerRebuiltError(
            found["id"], fault=f"rebuilt from image {image_id} by somebody; it was made from {made_from}"
        )


def _take_image(scope: ServerScope, found: Resource) -> None:
    """Take the image of a server that was found and not made here as the one that it was made from.

    The references of one whose status was lost, or that was taken over, are resolved anew, maybe to another image by
    now: nothing is wrong with the server for that.
    """
    if (image_id := _other_image(scope, found)) and scope.resolved:
        scope.turn.pinned["resolved"] = resolve.pinned(scope.resolved, imageID=image_id)


def _other_image(scope: ServerScope, found: Resource) -> str | None:
    """Return the image of a server if it differs from the recorded one; one that boots from a volume shows none."""
    resolved, image_id = scope.resolved, (found.get("image") or {}).get("id")
    if not image_id or resolved is None or resolved.image_id.lower() in ("", image_id.lower()):
        return None
    return str(image_id)


def _changes(scope: ServerScope, found: Resource) -> list[str]:
    """Return what somebody made of the server meanwhile, in words; empty when it is what it was made as."""
    spec = scope.server.spec
    flavor = (found.get("flavor") or {}).get("original_name")
    changes = []
    if flavor and spec.flavor and not spec.flavor_id and flavor != spec.flavor:
        changes.append(f"resized to flavor {flavor}; it was made with {spec.flavor}")
    volume_ids = {record.id for record in scope.turn.ledger.of_kind("volume")}
    return [*changes, *drift.of_server(spec, volume_ids, found)]


def _left_to_build_s(scope: ServerScope, found: Resource) -> float:
    """Return for how many seconds more a server may be in BUILD.

    Raises:
        ServerFailedError: for none.
    """
    limit_s = scope.turn.tools.settings.instance_create_timeout_s
    if not (created := found.get("created")):
        return limit_s
    left_s = limit_s - scope.cloud.ages.age_s("compute", found["id"], created)
    if left_s < 0:
        raise ServerFailedError(found["id"], fault=f"the server is in BUILD for more than {limit_s:.0f} s")
    return left_s + 1.0


def _failure(scope: ServerScope, found: Resource) -> ServerFailedError:
    words = _fault_words(found)
    return ServerFailedError(
        found["id"],
        fault=words,
        code=(found.get("fault") or {}).get("code"),
        request_id=_request_id(scope, found),
        cause=nova_faults.cause_of(words),
    )


def _fault_words(found: Resource) -> str:
    """Return Nova's fault of a server in ERROR with its code."""
    fault = found.get("fault") or {}
    text = str(fault.get("message") or "the server is in state ERROR and Nova gives no fault")[:_MAX_FAULT]
    return f"{text.rstrip(' .')} (fault code {fault['code']})" if fault.get("code") else text


def _request_id(scope: ServerScope, found: Resource) -> str | None:
    """Return the id of the request that put the server into ERROR; that it cannot be told is no fault of its own."""
    try:
        since = str((found.get("fault") or {}).get("created"))
        return server.failed_request_id(scope.cloud, found["id"], since=since)
    except CapoError:
        return None


def _wanted_server(scope: ServerScope) -> WantedServer:
    resolved = scope.dependencies
    ids = {record.role: record.id for record in scope.turn.ledger.records.values()}
    parts = wanted.Parts(
        port_ids=[ids[port_role(index)] for index in range(len(resolved.ports))],
        volume_ids={role: id_ for role, id_ in ids.items() if role.startswith("volume-")},
        user_data=user_data(scope),
    )
    return wanted.server(scope.server, resolved, stamp=scope.stamp(SERVER_ROLE), parts=parts)


def remove_server(scope: ServerScope) -> Outcome:
    """Have no server of ours left.

    Raises:
        BlockedError: Nova could not delete one; it is asked again after pauses that grow.
    """
    if scope.turn.is_taken_over:
        upstream.record(scope)  # what was attached cannot be told any more once the server is gone
        return Wait("Deleting", "what belongs to the server is recorded before it is deleted", after_s=0.0)
    left = _left(scope)
    failures = [failure for body in left if (failure := _ask_for_deletion(scope, body))]
    if failures:
        raise failures[0]
    if not left:
        scope.sightings.forget(scope.known_server_id or "")
        return Done()
    scope.observed.poll("server")
    fault = f"; its fault: {_fault_words(left[0])}" if left[0].get("status") == "ERROR" else ""
    return Wait("Deleting", f"server {left[0]['id']} is being deleted{fault}")


def _left(scope: ServerScope) -> list[Resource]:
    """Return the servers that are still there; a Nova that is too old is not asked about one that there never was."""
    try:
        return [body for body in scope.observed.owned("server") if body.get("status") != "DELETED"]
    except UnsupportedByCloudError:
        pending = {each.kind for each in scope.turn.ledger.pending.values()}
        if scope.known_server_id or "server" in pending or scope.turn.is_history_lost:
            raise
        return []


def _ask_for_deletion(scope: ServerScope, body: Resource) -> BlockedError | None:
    """Have Nova delete a server unless it does; return why it did not when it was asked before."""
    is_going = body.get("OS-EXT-STS:task_state") == "deleting"
    way = "force" if body.get("status") == "SOFT_DELETED" else "delete"
    fault = str((body.get("fault") or {}).get("created"))
    asked_way, _, fault_then = (scope.sightings.last(body["id"], _DELETION) or "").partition(" ")
    was_asked = asked_way == way
    # One that is in ERROR all the same may have been given up before this process began.
    is_under_way = fault == fault_then if was_asked else body.get("status") != "ERROR"
    if is_going and is_under_way:
        return None
    _delete(scope, body)
    scope.sightings.note(body["id"], _DELETION, f"{way} {fault}", now_s=scope.turn.tools.clock.wall())
    _look_for_its_end(scope, body)
    return _failed_deletion(body) if was_asked else None


def _failed_deletion(body: Resource) -> BlockedError:
    """Return what to tell of a server that Nova was asked to delete, and that is there: Nova may leave it in ERROR."""
    state = body.get("status")
    words = _fault_words(body) if state == "ERROR" else f"it is {state}"
    return BlockedError(
        f"Nova was asked to delete it and gave up: {words}",
        resource=f"server {body['id']}",
        next_step="Correct the cause, or have Nova's administrator delete it.",
    )


def _delete(scope: ServerScope, body: Resource) -> None:
    """Have Nova delete a server; one that the cloud keeps for a while after its deletion is not kept (W-30).

    Its ports would be gone and its volumes stay, seen by nobody, until the cloud's reclaim interval is over.
    """
    if body.get("status") == "SOFT_DELETED":
        server.force_delete(scope.cloud, body["id"])
    else:
        server.delete(scope.cloud, body["id"])


def _look_for_its_end(scope: ServerScope, body: Resource) -> None:
    """Have a deleted server gone from what is seen as soon as Nova is done with it.

    One that ran is then found as DELETED among the changes that are polled for; one that never got a host vanishes
    without a trace, so everything has to be listed.
    """
    if body.get("OS-SRV-USG:launched_at"):
        scope.observed.learn("server", {**body, "OS-EXT-STS:task_state": "deleting"})
    else:
        scope.observed.wrote("server")
    scope.observed.end("server", body["id"])
    for record in scope.turn.ledger.of_kind("volume"):
        scope.observed.end("volume", record.id)
    scope.observed.wrote("volume")  # Nova takes them away with it: what was seen of them before is no use
