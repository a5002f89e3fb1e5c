"""What OpenStackMachines and the bastion of an OpenStackCluster share about their OpenStackServer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from api.v1beta2 import OpenStackIdentityReference
from capo import names
from capo.contract import references
from capo.engine.conditions import READY, find
from capo.engine.context import ReconcileContext
from capo.engine.overall import AUTHENTICATION_FAILED
from capo.engine.steps import Wait
from capo.errors import ForeignResourceError, InvalidSpecError
from capo.json_types import Json, Object
from capo.kube import patches
from capo.kube.errors import Conflict, Denied, Invalid
from capo.kube.kinds import OPENSTACK_SERVER

DELETING: Final = "Deleting"
NOT_READY: Final = "InstanceNotReady"
_PREREQUISITES: Final = ("DependenciesResolved", "AddressClaimed")
"""Steps of an OpenStackServer that wait for other controllers or for users."""
_SPEAKERS: Final = ("InstanceReady", READY)


def wanted(
    owner: Object, *, name: str, cluster_name: str | None, spec: Object, annotations: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the whole object: spec, finalizer, owner id, owner reference and labels.

    It is created in one write: without its finalizer it could be deleted unnoticed before its first reconcile.

    Args:
        owner: the OpenStackMachine or OpenStackCluster.
        cluster_name: the name of Cluster API's Cluster, None or empty when it is not known.
        annotations: annotations besides the owner id.
    """
    kind, namespace = OPENSTACK_SERVER.kind, owner["metadata"]["namespace"]
    labels = {
        names.CLUSTER_NAME_LABEL: cluster_name,
        names.WATCH_FILTER_LABEL: (owner["metadata"].get("labels") or {}).get(names.WATCH_FILTER_LABEL),
    }
    return {
        "apiVersion": OPENSTACK_SERVER.api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {label: value for label, value in labels.items() if value},
            "annotations": {
                **(annotations or {}),
                names.OWNER_ID_ANNOTATION: names.new_owner_id(kind, namespace, name),
            },
            "finalizers": [names.finalizer(kind)],
            "ownerReferences": [references.controller_reference(owner)],
        },
        "spec": spec,
    }


def create(context: ReconcileContext, body: Object) -> Wait:
    """Create an OpenStackServer; return the wait for it to become ready.

    Raises:
        InvalidSpecError: the API server refuses it.
    """
    name, minted = body["metadata"]["name"], context.deps.minted
    try:
        # Create, not apply: if another process has created the object, its owner id must stay, because stamps carry it.
        with minted.creating(body):
            created = context.deps.kube.create(OPENSTACK_SERVER, body)
            minted.add(created)
    except Conflict:
        return Wait(NOT_READY, f"OpenStackServer {name} exists and is not known yet", after_s=1)
    except (Invalid, Denied) as error:
        raise InvalidSpecError(f"the API server refuses OpenStackServer {name}: {error}") from error
    context.deps.store.apply_own(OPENSTACK_SERVER, created, by=context.key)
    return becoming_ready(name)


def becoming_ready(name: str) -> Wait:
    """Return the wait for an OpenStackServer whose conditions report nothing more specific."""
    return Wait(NOT_READY, f"waiting for OpenStackServer {name} to become ready")


def foreign(name: str) -> ForeignResourceError:
    """Return the error for an OpenStackServer that has the name of the owner's, but belongs to another object."""
    return ForeignResourceError(
        f"OpenStackServer {name} exists and belongs to another object", resource=f"server {name}"
    )


def adoption(server: Object, owner: Object, *, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the merge patch that writes annotations, and the owner reference if it is missing (C-46).

    Other owner references are kept.
    """
    known = server["metadata"].get("ownerReferences") or ()
    is_owned = references.is_owned_by(server, owner)
    return {
        "metadata": {
            "resourceVersion": server["metadata"]["resourceVersion"],
            **({"annotations": dict(annotations)} if annotations else {}),
            **({} if is_owned else {"ownerReferences": [*known, references.controller_reference(owner)]}),
        }
    }


def patch(context: ReconcileContext, server: Object, change: Mapping[str, Any]) -> Object:
    """Write a merge patch to an OpenStackServer; return the updated object.

    Raises:
        Conflict: it has changed since it was read.
    """
    metadata = server["metadata"]
    changed: Object = context.deps.kube.patch(OPENSTACK_SERVER, metadata["namespace"], metadata["name"], change)
    context.deps.store.apply_own(OPENSTACK_SERVER, changed, by=context.key)
    return changed


def credentials_change(server: Object, wanted: OpenStackIdentityReference | None) -> list[Json]:
    """Return the JSON patch that gives a server the current credentials of its owner; empty when it has them.

    A user who replaces credentials deletes the old Secret; without this, no resource could be deleted any more (W-12).
    The region is kept: it is the server's location.

    Args:
        server: an OpenStackServer.
        wanted: None when the owners that have credentials were deleted.
    """
    known = OpenStackIdentityReference.model_validate(server["spec"]["identityRef"])
    if wanted is None or wanted.model_copy(update={"region": known.region}) == known:
        return []
    fields = {name: value for name, value in wanted.model_dump(mode="json", by_alias=True).items() if name != "region"}
    stored = server["spec"]["identityRef"]
    metadata = {"uid": server["metadata"]["uid"]}
    return patches.precise(
        {"metadata": metadata, "spec": {"identityRef": stored}},
        {"metadata": metadata, "spec": {"identityRef": {**stored, **fields}}},
    )


def write_credentials(context: ReconcileContext, server: Object, wanted: OpenStackIdentityReference | None) -> Object:
    """Give a server the current credentials of its owner; return the server as it is then.

    Somebody may change labels or annotations at the same time: that is no conflict. Who changes the credentials
    themselves wins, and the watch event of that requeues the owner.
    """
    operations = credentials_change(server, wanted)
    if not operations:
        return server
    metadata = server["metadata"]
    try:
        changed: Object = context.deps.kube.json_patch(
            OPENSTACK_SERVER, metadata["namespace"], metadata["name"], operations
        )
    except Conflict:
        return server
    context.deps.store.apply_own(OPENSTACK_SERVER, changed, by=context.key)
    return changed


def follow_filter(context: ReconcileContext, server: Object) -> Object:
    """Give an OpenStackServer its owner's label of ``--watch-filter``; return the server as it is then.

    Users label what they create, and so one manager reconciles owner and server.
    """
    label, metadata = names.WATCH_FILTER_LABEL, server["metadata"]
    wanted = (context.obj["metadata"].get("labels") or {}).get(label)
    if wanted == (metadata.get("labels") or {}).get(label):
        return server
    return patch(context, server, {"metadata": {"uid": metadata["uid"], "labels": {label: wanted}}})


def not_ready_reason(server: Object, speakers: Sequence[str] = _SPEAKERS) -> Wait | None:
    """Return why an OpenStackServer is not ready, in its own words; None when no condition says so.

    Args:
        speakers: condition types; the first one that exists and is not True is used.
    """
    shown = (server.get("status") or {}).get("conditions") or ()
    for type_ in speakers:
        condition = find(shown, type_)
        if condition and condition["status"] != "True":
            return Wait(condition["reason"], condition.get("message", ""), status=condition["status"])
    return None


def waits_for_others(server: Object) -> Wait | None:
    """Return what an OpenStackServer waits for before its server can be created, an image or an address; None: nothing.

    It justifies a write of the owner's status: users read that, and can act on it.
    """
    for step in _PREREQUISITES:
        if told := not_ready_reason(server, (step,)):
            return Wait(told.reason, f"{step}: {told.message}", status=told.status)
    return None


def remove(context: ReconcileContext, server: Object) -> Wait:
    """Delete an OpenStackServer, unless it is being deleted; return the wait for the end of its deletion."""
    if not server["metadata"].get("deletionTimestamp"):
        _delete(context, server)
    return deletion(server)


def _delete(context: ReconcileContext, server: Object) -> None:
    """Delete an OpenStackServer; its owner's next reconcile finds it deleted, however late the watch is."""
    metadata = server["metadata"]
    answer = context.deps.kube.delete(OPENSTACK_SERVER, metadata["namespace"], metadata["name"], uid=metadata["uid"])
    if answer is not None:
        context.deps.store.apply_own(OPENSTACK_SERVER, answer, by=context.key)


def deletion(server: Object) -> Wait:
    """Return the wait for an OpenStackServer to be deleted, with what blocks the deletion; pure."""
    metadata = server["metadata"]
    blocked = _blocked(server) if metadata.get("deletionTimestamp") else ""
    wait = being_deleted(metadata["name"])
    return replace(wait, message=f"{wait.message}: {blocked}") if blocked else wait


def being_deleted(name: str) -> Wait:
    """Return the wait for the end of a deletion that nothing blocks."""
    return Wait(DELETING, f"OpenStackServer {name} is being deleted")


def _blocked(server: Object) -> str:
    """Return what blocks a deletion, from ``Ready``, which may still show an error from before the deletion; pure."""
    shown = find((server.get("status") or {}).get("conditions") or (), READY)
    if shown is None or shown["status"] == "True" or shown["reason"] == DELETING:
        return ""
    # Each deletion request increases the generation.
    is_of_deletion = shown.get("observedGeneration") == server["metadata"].get("generation")
    is_for_all = shown["reason"] == AUTHENTICATION_FAILED
    return str(shown.get("message", "")) if is_of_deletion or is_for_all else ""
