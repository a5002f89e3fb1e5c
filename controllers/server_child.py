"""What OpenStackMachines and the bastion of an OpenStackCluster have to do with their OpenStackServer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from capo.api.v1beta2 import OpenStackIdentityReference
from capo.engine.conditions import READY, find
from capo.engine.steps import Wait
from capo.engine.turn import Turn
from capo.kube.kinds import OPENSTACK_SERVER

Object = Mapping[str, Any]

DELETING: Final = "Deleting"
_PREREQUISITES: Final = ("DependenciesResolved", "AddressClaimed")
"""Steps of an OpenStackServer that wait for other controllers and for people."""
_SPEAKERS: Final = ("InstanceReady", READY)


def credentials_change(server: Mapping[str, Any], wanted: OpenStackIdentityReference | None) -> dict[str, Any] | None:
    """Return the merge patch by which a server goes on with the credentials of its owner; None when it has them.

    Whoever takes over credentials takes the old Secret away, and nothing could be deleted any more (W-12). The region
    stays: it is where the server is.

    Args:
        server: an OpenStackServer.
        wanted: None when nobody is left who could tell.
    """
    known = OpenStackIdentityReference.model_validate(server["spec"]["identityRef"])
    if wanted is None or wanted.model_copy(update={"region": known.region}) == known:
        return None
    fields = {name: value for name, value in wanted.model_dump(mode="json", by_alias=True).items() if name != "region"}
    return {"metadata": {"resourceVersion": server["metadata"]["resourceVersion"]}, "spec": {"identityRef": fields}}


def said(server: Object, speakers: Sequence[str] = _SPEAKERS) -> Wait | None:
    """Return what keeps an OpenStackServer from being ready in its own words; None when it says nothing.

    Args:
        speakers: condition types, the first that is there and not True speaks.
    """
    shown = (server.get("status") or {}).get("conditions") or ()
    for type_ in speakers:
        condition = find(shown, type_)
        if condition and condition["status"] != "True":
            return Wait(condition["reason"], condition.get("message", ""), status=condition["status"])
    return None


def waits_for_others(server: Object) -> Wait | None:
    """Return what an OpenStackServer waits for before its server can be created: an image, an address; None: nothing.

    That is worth a write of its owner: people look there, and can do something about it.
    """
    for step in _PREREQUISITES:
        if told := said(server, (step,)):
            return Wait(told.reason, f"{step}: {told.message}", status=told.status)
    return None


def delete(turn: Turn, server: Object) -> None:
    """Delete an OpenStackServer; the next pass of its owner sees that it was, whenever the watch shows it."""
    metadata = server["metadata"]
    answer = turn.tools.kube.delete(OPENSTACK_SERVER, metadata["namespace"], metadata["name"], uid=metadata["uid"])
    if answer is not None:
        turn.tools.store.apply_own(OPENSTACK_SERVER, answer, by=turn.key)


def deletion(server: Object) -> Wait:
    """Return the wait for an OpenStackServer to be gone, with what is in its way if anything is; pure."""
    metadata = server["metadata"]
    told = said(server, (READY,)) if metadata.get("deletionTimestamp") else None
    why = _trouble(told) if told else ""
    return Wait(DELETING, f"OpenStackServer {metadata['name']} is being deleted{f': {why}' if why else ''}")


def _trouble(told: Wait) -> str:
    """Return what holds up a deletion out of ``Ready``, which may still tell of what was wrong before; pure."""
    if told.reason == "OpenStackAuthenticationFailed":
        return told.message
    prefix = f"{DELETING}: "
    return told.message.removeprefix(prefix) if told.message.startswith(prefix) else ""
