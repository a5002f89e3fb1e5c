"""Volumes of a server: created before it, replaced until it is created, deleted after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.errors import BlockedError, CapoError, VolumeFailedError
from capo.json_types import Body
from capo.openstack import volume
from capo.openstack.resource_cache import with_ids
from capo.openstack.volume import Volume
from controllers.openstackserver import desired, needs, takeover
from controllers.openstackserver.scope import ServerScope

_USABLE: Final = ("available", "in-use", "attaching", "reserved")
_GOING: Final = ("in-use", "detaching", "attaching", "deleting", "creating", "downloading")


def ensure_volumes(scope: ServerScope) -> Outcome:
    """Create every volume of the server and wait until all are usable."""
    if scope.known_server_id is not None:
        return _of_running(scope)
    volumes = desired.volumes(scope.server, scope.dependencies.image_id, scope.context.owner)
    _look_at_all(scope)
    found = {role: _found(scope, role) for role in volumes}
    missing = {role: volumes[role] for role, each in found.items() if each is None}
    if missing and takeover.was_created(scope):
        return _of_running(scope)
    if missing:
        return Create(
            "volume",
            tuple(missing),
            lambda: _created(scope, missing),
            needs=lambda: needs.of_volumes_and_server(scope, missing),
        )
    there = {role: each for role, each in found.items() if each is not None}
    for role, each in there.items():
        if each.status == "error":
            _replace(scope, role, each, volumes[role])
    coming = [f"{each.name} is {each.status}" for each in there.values() if each.status not in _USABLE]
    if coming:
        scope.cloud_view.poll("volume")
        return Wait("VolumeNotReady", f"volume {', '.join(coming)}")
    return Done() if volumes else NotNeeded()


def _found(scope: ServerScope, role: str) -> Volume | None:
    body = takeover.find(scope, "volume", role)
    return Volume(body) if body else None


def invalidate(scope: ServerScope, error: CapoError) -> None:
    """Invalidate the cached volumes after a create of their server failed: Nova may have left them reserved."""
    for record in scope.context.ledger.records_of_kind("volume"):
        scope.cloud_view.failed("volume", record.id, error)
    scope.cloud_view.mark_written("volume")


def _look_at_all(scope: ServerScope) -> None:
    """Require one list if several volumes are invalidated; otherwise each would cost a request.

    Raises:
        NotYetObserved: the list is being polled.
    """
    ids = {record.id for record in scope.context.ledger.records_of_kind("volume")}
    if len(ids) - len(scope.cloud_view.peek("volume", among=with_ids(ids))) > 1:
        scope.cloud_view.list_matching("volume", among=with_ids(ids))


def _created(scope: ServerScope, missing: Mapping[str, volume.WantedVolume]) -> dict[str, Body]:
    """Create volumes one after another; those created are cached even if the next is refused."""
    made: dict[str, Body] = {}
    for role, wanted_volume in missing.items():
        made[role] = volume.create(scope.cloud, wanted_volume)
        scope.cloud_view.upsert("volume", made[role])
    return made


def _of_running(scope: ServerScope) -> Outcome:
    """Report the volumes of a server that was created; none is created or waited for any more."""
    states = {}
    for role in desired.volume_roles(scope.server):
        found = _found(scope, role)
        states[role] = found.status if found else "gone"
    odd = [f"{role} is {state}" for role, state in states.items() if state not in _USABLE]
    return Done(", ".join(odd)) if states else NotNeeded()


def _replace(scope: ServerScope, role: str, found: Volume, wanted: volume.WantedVolume) -> None:
    """Delete a failed volume, so that the next attempt creates another one.

    Raises:
        VolumeFailedError: always; the next attempt follows after a delay.
    """
    scope.cloud.quota_holds.places.keep(scope.context.key, role, needs.of_volumes({role: wanted}))
    volume.delete(scope.cloud, found.id)
    scope.cloud_view.invalidate("volume", found.id)
    scope.cloud_view.mark_written("volume")
    raise VolumeFailedError(
        f"volume {found.name} of {found.size_gib} GiB is in state error; deleting it and creating another one",
        resource=f"volume {found.id}",
    )


def remove_volumes(scope: ServerScope) -> Outcome:
    """Delete all volumes of the server; Nova deletes those that it attached, the others are deleted here.

    Raises:
        BlockedError: another owner's server uses one.
        VolumeFailedError: Cinder failed to delete one.
    """
    has_any = desired.volume_roles(scope.server) or scope.context.ledger.records_of_kind("volume")
    left = [Volume(body) for body in scope.cloud_view.owned("volume")] if has_any else []
    stuck = {each.id: error for each in left if (error := _stuck(scope, each))}
    for each in left:
        if each.status not in _GOING and each.id not in stuck:
            _delete(scope, each)
    if stuck:
        raise next(iter(stuck.values()))
    if not left:
        return Done()
    scope.cloud_view.poll("volume")
    return Wait("Deleting", f"volumes are being deleted: {', '.join(map(_described, left))}")


def _delete(scope: ServerScope, found: Volume) -> None:
    if found.status == "reserved":  # the server is deleted by now, or was never created
        volume.release(scope.cloud, found.id)
    volume.delete(scope.cloud, found.id)
    scope.cloud_view.end("volume", found.id)
    scope.cloud_view.mark_written("volume")


def _stuck(scope: ServerScope, found: Volume) -> CapoError | None:
    """Return why a volume cannot be deleted until the user acts, else None; the next attempt reads it again."""
    error: CapoError | None = None
    among = with_ids(found.server_ids)
    if users := scope.cloud_view.peek("server", among=among):  # ours is deleted by now
        named = ", ".join(f"{server['id']} ({server.get('name')})" for server in users)
        what = f"volume {found.name} is attached to"
        error = BlockedError(
            f"{what} server {named}",
            resource=f"volume {found.id}",
            next_step="Detach it there.",
            if_shared=f"{what} another server",
        )
    elif found.status == "error_deleting":
        error = VolumeFailedError(
            f"Cinder could not delete volume {found.name}",
            resource=f"volume {found.id}",
            next_step="Have Cinder's administrator delete it by force, or reset its state to `available`.",
        )
    if error:
        scope.cloud_view.invalidate("volume", found.id)
    return error


def _described(found: Volume) -> str:
    users = ", ".join(sorted(found.server_ids))
    return f"{found.name} is {found.status}{f' by server {users}' if users else ''}"
