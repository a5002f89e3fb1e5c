"""The bastion's OpenStackServer: which action it needs, and what is reported of it; pure.

Source: docs/explanation/go-provider.md, G-15, and W-60. ``bastion_hash.py`` decides which edits replace the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from capo import names
from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1beta2 import OpenStackCluster
from capo.api.v1beta2.openstackcluster import Bastion, BastionReplacement, BastionStatus
from capo.contract import references
from capo.controllers import server_child
from capo.controllers.openstackcluster import bastion_hash
from capo.engine import conditions
from capo.engine.steps import Wait
from capo.kube.kinds import OPENSTACK_SERVER

Object = Mapping[str, Any]

_VANISHED: Final = ("InstanceNotFound", "InstanceDeleted")
_ON_THE_WAY: Final = ("InstanceNotReady", "Building", "VolumeNotReady", "AnswerLost")
CONDITION: Final = "BastionReady"
REPLACING: Final = "Replacing"
SPEC_CHANGED: Final = "SpecChanged"
SERVER_DELETED: Final = "ServerDeleted"
OBJECT_DELETED: Final = "ObjectDeleted"
_WORDS: Final = {
    SERVER_DELETED: "its server was deleted externally",
    OBJECT_DELETED: "the former one was deleted",
}
STEPS: Final = 2
"""Delete the former server, create the new one."""
_STEP: Final = "; step "
_OF_CLUSTER: Final = ("network", "fixedIPs", "securityGroups")


class Action(Enum):
    """The action for the bastion's OpenStackServer."""

    NOTHING = "none exists and none is wanted"
    CREATE = "create it"
    MARK = "write the hash or the owner to it, and keep it"
    KEEP = "keep it"
    DELETE = "delete it"
    AWAIT_GONE = "wait until it is deleted"
    REFUSE = "it belongs to somebody else"


def is_enabled(bastion: Bastion | None) -> bool:
    """Return whether the spec asks for a bastion."""
    return bastion is not None and bastion.enabled and bastion.spec is not None


def decide(child: Object | None, cluster: Object, wanted: str | None) -> Action:
    """Return the action for the bastion's OpenStackServer.

    Args:
        child: the object with the bastion's name, None when there is none.
        cluster: the OpenStackCluster.
        wanted: the fingerprint of the bastion, None when the spec asks for none.
    """
    if child is None:
        return Action.NOTHING if wanted is None else Action.CREATE
    is_orphan = not references.owners(child)
    if not (references.is_owned_by(child, cluster) or (is_orphan and _is_labelled_alike(child, cluster))):
        return Action.NOTHING if wanted is None else Action.REFUSE
    if child["metadata"].get("deletionTimestamp"):
        return Action.AWAIT_GONE
    if wanted is None or _has_vanished(child):
        return Action.DELETE
    known = hash_of(child)
    if known is None or is_orphan:
        return Action.MARK
    return Action.KEEP if known == wanted else Action.DELETE


def hash_of(child: Object) -> str | None:
    """Return the hash annotation of the child; None when it has none, or one of another version."""
    known: str = (child["metadata"].get("annotations") or {}).get(names.BASTION_HASH_ANNOTATION, "")
    return known if bastion_hash.is_known(known) else None


def _is_labelled_alike(child: Object, cluster: Object) -> bool:
    name = references.owner_cluster_name(cluster)
    return name is not None and references.cluster_name(child) == name


def _has_vanished(child: Object) -> bool:
    """Return whether the server was deleted externally."""
    # An OpenStackServer never recreates its server: the bastion needs a new OpenStackServer.
    shown = conditions.find((child.get("status") or {}).get("conditions") or (), "InstanceReady")
    return shown is not None and shown.get("status") == "False" and shown.get("reason") in _VANISHED


def mark(child: Object, cluster: Object, wanted: str) -> dict[str, Any]:
    """Return the merge patch that writes hash and owner on a child."""
    owned = references.is_owned_by(child, cluster)
    owners = [] if owned else [references.controller_reference(cluster)]
    return {
        "metadata": {
            "resourceVersion": child["metadata"]["resourceVersion"],
            "annotations": {names.BASTION_HASH_ANNOTATION: wanted},
            **({"ownerReferences": [*(child["metadata"].get("ownerReferences") or ()), *owners]} if owners else {}),
        }
    }


def wanted_object(cluster: Object, *, name: str, cluster_name: str, spec: Object, fingerprint: str) -> dict[str, Any]:
    """Return the whole object, with finalizer, owner id and owner reference from its creation on.

    Args:
        cluster: the OpenStackCluster.
        name: the name of the child.
        spec: the spec of the server.
    """
    kind, namespace = OPENSTACK_SERVER.kind, cluster["metadata"]["namespace"]
    watch_filter = (cluster["metadata"].get("labels") or {}).get(names.WATCH_FILTER_LABEL)
    return {
        "apiVersion": OPENSTACK_SERVER.api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                names.CLUSTER_NAME_LABEL: cluster_name,
                **({names.WATCH_FILTER_LABEL: watch_filter} if watch_filter else {}),
            },
            "annotations": {
                names.BASTION_HASH_ANNOTATION: fingerprint,
                names.OWNER_ID_ANNOTATION: names.new_owner_id(kind, namespace, name),
            },
            "finalizers": [names.finalizer(kind)],
            "ownerReferences": [references.controller_reference(cluster)],
        },
        "spec": spec,
    }


def is_alike(child: Object, spec: Object) -> bool:
    """Return whether a child without our hash is the server that the spec asks for, ignoring ids of the cluster."""
    return _comparable(child["spec"]) == _comparable(spec)


def _comparable(spec: Object) -> dict[str, Any]:
    fields = {"spec": {**spec, "identityRef": {"name": "any", "cloudName": "any"}}}
    shown = OpenStackServer.model_validate(fields).spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude_none=True
    )
    ports = [{k: v for k, v in port.items() if k not in _OF_CLUSTER} for port in shown.get("ports") or ()]
    return {**shown, "ports": ports}


def port_id(child: OpenStackServer, network_id: str) -> str | None:
    """Return the port for a floating IP: the first on the cluster's network, else the first; None if none exists."""
    status = child.status
    ports = status.resolved.ports if status.resolved else ()
    index = next((i for i, port in enumerate(ports) if port.network_id == network_id), 0)
    made = status.resources.ports if status.resources else ()
    return made[index].id if index < len(made) else None


def status(
    child: OpenStackServer, floating_ip: Mapping[str, Any] | None, known: BastionStatus | None = None
) -> BastionStatus:
    """Return ``status.bastion``.

    Args:
        floating_ip: the floating IP at its port, None without one.
        known: the former status of this server, whose addresses are kept while it is not up.
    """
    internal = [a.address for a in child.status.addresses if a.type == "InternalIP"]
    leads_to = floating_ip.get("fixed_ip_address") if floating_ip else None
    shown = BastionStatus(
        id=child.status.instance_id or "",
        name=child.metadata.name,
        ssh_key_name=child.spec.ssh_key_name,
        state=child.status.instance_state or "",
        ip=leads_to or next(iter(internal), ""),
        floating_ip=floating_ip["floating_ip_address"] if floating_ip else "",
    )
    return shown.model_copy(update={"ip": known.ip, "floating_ip": known.floating_ip}) if known else shown


def with_address(shown: BastionStatus, known: BastionStatus | None) -> BastionStatus:
    """Return ``status.bastion`` with the former address until the OpenStackServer reports one."""
    if shown.ip or known is None or known.id != shown.id:
        return shown
    return shown.model_copy(update={"ip": known.ip})


def remembered(cluster: OpenStackCluster, child: Object | None) -> BastionStatus | None:
    """Return the status during a replacement: only the address, for the new bastion; None without one.

    Args:
        child: the OpenStackServer being replaced; an address from a pool is released with it.
    """
    known = cluster.status.bastion
    if known is None or not known.floating_ip or (child and child["spec"].get("floatingIPPoolRef")):
        return None
    return BastionStatus(floating_ip=known.floating_ip) if child or not known.id else None


def former_address(cluster: OpenStackCluster) -> str | None:
    """Return the address of the former bastion until the status shows the new one."""
    known = cluster.status.bastion
    return known.floating_ip or None if known and not known.id else None


def waits_for(child: OpenStackServer) -> Wait | None:
    """Return why a bastion is not up; None when it is up.

    Errors and waits for anything but the cloud are reported in the words of the OpenStackServer. Progress is not: each
    change of the message would be a write.
    """
    if child.status.instance_state == "ACTIVE" and child.status.ready:
        return None
    told = server_child.not_ready_reason(child.to_dict())
    if told and told.reason not in _ON_THE_WAY:
        return told
    on_the_way = Wait("InstanceNotReady", f"waiting for OpenStackServer {child.metadata.name} to become ready")
    return server_child.waits_for_others(child.to_dict()) or on_the_way


# -- a replacement ---------------------------------------------------------------------------------------------------


def cause(child: Object, wanted: str, known: BastionReplacement | None) -> BastionReplacement:
    """Return why a child is replaced.

    Args:
        wanted: the fingerprint of the bastion.
        known: the replacement in progress.
    """
    if fields := bastion_hash.changed_fields(hash_of(child) or "", wanted):
        return BastionReplacement(cause=SPEC_CHANGED, changed_fields=tuple(fields))
    if _has_vanished(child):
        return BastionReplacement(cause=SERVER_DELETED)
    return known or BastionReplacement(cause=OBJECT_DELETED)


def under_way(cluster: OpenStackCluster) -> BastionReplacement | None:
    """Return the replacement that an earlier reconcile began, None without one."""
    return cluster.status.bastion_replacement or _in_message(cluster)


def _in_message(cluster: OpenStackCluster) -> BastionReplacement | None:
    """Return the cause that the last release recorded only in ``BastionReady``'s message; removed in the next one."""
    shown = next((c for c in cluster.status.conditions if c.type == CONDITION), None)
    if shown is None or shown.status == "True" or shown.reason != REPLACING:
        return None
    text = (shown.message or "").partition(_STEP)[0]
    if text == "its server was deleted by somebody else":
        return BastionReplacement(cause=SERVER_DELETED)
    if text.endswith(" changed"):
        return BastionReplacement(
            cause=SPEC_CHANGED, changed_fields=tuple(text.removesuffix(" changed").split(" and "))
        )
    return BastionReplacement(cause=OBJECT_DELETED)


def replacing(why: BastionReplacement, step: int, what: str) -> Wait:
    """Return the wait of a replacement: its cause, its step, and what the step waits for."""
    return Wait(REPLACING, f"{_words(why)}{_STEP}{step} of {STEPS}: {what}")


def _words(why: BastionReplacement) -> str:
    return f"{' and '.join(why.changed_fields)} changed" if why.changed_fields else _WORDS.get(why.cause, why.cause)
