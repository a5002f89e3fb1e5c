"""Volumes of a server: made before it, replaced as long as it is not made, deleted after it."""

from __future__ import annotations

from typing import Final

from capo.controllers.openstackserver import wanted
from capo.controllers.openstackserver.scope import ServerScope
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Resource, Wait
from capo.errors import VolumeFailedError
from capo.openstack import volume

_USABLE: Final = ("available", "in-use", "attaching", "reserved")
_GOING: Final = ("in-use", "detaching", "attaching", "deleting", "creating", "downloading")


def ensure_volumes(scope: ServerScope) -> Outcome:
    """Have every volume of the server, available or in use."""
    if scope.known_server_id is not None:
        return _of_running(scope)
    volumes = wanted.volumes(scope.server, scope.dependencies.image_id, scope.turn.owner)
    for role, volume_ in volumes.items():
        found = scope.observed.find("volume", role)
        if found is None:
            return Create("volume", (role,), lambda r=role, v=volume_: {r: volume.create(scope.cloud, v)})  # type: ignore[misc]
        if found["status"] == "error":
            _replace(scope, found)
        if found["status"] not in _USABLE:
            scope.observed.poll("volume")
            return Wait("VolumeNotReady", f"volume {found['name']} is {found['status']}")
    return Done() if volumes else NotNeeded()


def _of_running(scope: ServerScope) -> Outcome:
    """Look after the volumes of a server that was made: nothing is made for it any more, and nothing is waited for."""
    states = {}
    for role in wanted.volume_roles(scope.server):
        found = scope.observed.find("volume", role)
        states[role] = found["status"] if found else "gone"
    odd = [f"{role} is {state}" for role, state in states.items() if state not in _USABLE]
    return Done(", ".join(odd)) if states else NotNeeded()


def _replace(scope: ServerScope, found: Resource) -> None:
    """Delete a volume that failed, so that the next attempt makes another one.

    Raises:
        VolumeFailedError: always; the next attempt comes after a pause.
    """
    volume.delete(scope.cloud, found["id"])
    scope.observed.doubt("volume", found["id"])
    scope.observed.wrote("volume")
    raise VolumeFailedError(
        f"volume {found['name']} of {found['size']} GiB came into state error; it is deleted, and another one is made",
        resource=f"volume {found['id']}",
    )


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


def _has_volumes(scope: ServerScope) -> bool:
    return bool(wanted.volume_roles(scope.server) or scope.turn.ledger.of_kind("volume"))
