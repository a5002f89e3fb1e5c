"""The bastion's OpenStackServer: what is to be done with the one that is there, and what is told of it; pure.

Source: behaviour reference, cluster.md 3 and W10. What makes another server is decided in ``bastion_hash.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from capo import names
from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1beta2 import OpenStackCluster
from capo.api.v1beta2.openstackcluster import Bastion, BastionStatus
from capo.contract import references
from capo.controllers import server_child
from capo.controllers.openstackcluster import bastion_hash
from capo.engine import conditions
from capo.engine.steps import Wait
from capo.kube.kinds import OPENSTACK_SERVER

Object = Mapping[str, Any]

_VANISHED: Final = ("InstanceNotFound", "InstanceDeleted")
_ON_THE_WAY: Final = ("InstanceNotReady", "Building", "VolumeNotReady", "AnswerLost")
REPLACING: Final = "Replacing"
STEPS: Final = 2
"""The former server goes, the new one comes."""
_STEP: Final = "; step "
_OF_CLUSTER: Final = ("network", "fixedIPs", "securityGroups")


class Action(Enum):
    """What is to be done with the bastion's OpenStackServer."""

    NOTHING = "there is none and there should be none"
    CREATE = "make it"
    MARK = "write the hash or the owner on it, and keep it"
    KEEP = "keep it"
    DELETE = "delete it"
    AWAIT_GONE = "wait until it is gone"
    REFUSE = "it belongs to somebody else"


def is_enabled(bastion: Bastion | None) -> bool:
    """Tell whether there is to be a bastion."""
    return bastion is not None and bastion.enabled and bastion.spec is not None


def decide(child: Object | None, cluster: Object, wanted: str | None) -> Action:
    """Return what is to be done.

    Args:
        child: the object of the bastion's name, None when there is none.
        cluster: the OpenStackCluster.
        wanted: the fingerprint of the bastion, None when there is to be none.
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
    """Return the hash that the child carries; None when it has none, or one of another version."""
    known: str = (child["metadata"].get("annotations") or {}).get(names.BASTION_HASH_ANNOTATION, "")
    return known if bastion_hash.is_known(known) else None


def _is_labelled_alike(child: Object, cluster: Object) -> bool:
    name = references.owner_cluster_name(cluster)
    return name is not None and references.cluster_name(child) == name


def _has_vanished(child: Object) -> bool:
    """Tell whether the server was deleted behind our back: only a new OpenStackServer makes another."""
    shown = conditions.find((child.get("status") or {}).get("conditions") or (), "InstanceReady")
    return shown is not None and shown.get("status") == "False" and shown.get("reason") in _VANISHED


def mark(child: Object, cluster: Object, wanted: str) -> dict[str, Any]:
    """Return the merge patch that gives a child its hash and its owner."""
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
    """Return the whole object, with finalizer, owner id and owner from the first write on.

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
    """Tell whether a child without our hash is the server that the spec asks for, ids of the cluster aside."""
    return _comparable(child["spec"]) == _comparable(spec)


def _comparable(spec: Object) -> dict[str, Any]:
    fields = {"spec": {**spec, "identityRef": {"name": "any", "cloudName": "any"}}}
    shown = OpenStackServer.model_validate(fields).spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude_none=True
    )
    ports = [{k: v for k, v in port.items() if k not in _OF_CLUSTER} for port in shown.get("ports") or ()]
    return {**shown, "ports": ports}


def port_id(child: OpenStackServer, network_id: str) -> str | None:
    """Return the port for a floating IP: the first on the cluster's network, else the first; None if none is made."""
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
        known: what was shown of this server before: it keeps its addresses while it is not up.
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
    """Return ``status.bastion`` with the address that was shown before, until the OpenStackServer reports one."""
    if shown.ip or known is None or known.id != shown.id:
        return shown
    return shown.model_copy(update={"ip": known.ip})


def remembered(cluster: OpenStackCluster, child: Object | None) -> BastionStatus | None:
    """Return what is shown while a bastion is replaced: its address alone, for the one that follows; None without one.

    Args:
        child: the OpenStackServer that goes; an address out of a pool goes with it.
    """
    known = cluster.status.bastion
    if known is None or not known.floating_ip or (child and child["spec"].get("floatingIPPoolRef")):
        return None
    return BastionStatus(floating_ip=known.floating_ip) if child or not known.id else None


def former_address(cluster: OpenStackCluster) -> str | None:
    """Return the address that the former bastion had, as long as the one that follows it is not shown."""
    known = cluster.status.bastion
    return known.floating_ip or None if known and not known.id else None


def waits_for(child: OpenStackServer) -> Wait | None:
    """Return what keeps a bastion from being up; None when it is up.

    Trouble, and what is waited for beside the cloud, is told in the words of its OpenStackServer; progress is not, each
    word would be a write.
    """
    if child.status.instance_state == "ACTIVE" and child.status.ready:
        return None
    told = server_child.said(child.to_dict())
    if told and told.reason not in _ON_THE_WAY:
        return told
    on_the_way = Wait("InstanceNotReady", f"OpenStackServer {child.metadata.name} is on the way")
    return server_child.waits_for_others(child.to_dict()) or on_the_way


# -- a replacement, from its cause to its end -----------------------------------------------------------------------


def cause(child: Object, wanted: str, shown: Object | None) -> str:
    """Return why a child is replaced.

    Args:
        wanted: the fingerprint of the bastion.
        shown: the condition of the bastion, which knows the cause of a replacement that is under way.
    """
    if fields := bastion_hash.changed_fields(hash_of(child) or "", wanted):
        return f"{' and '.join(fields)} changed"
    if _has_vanished(child):
        return "its server was deleted by somebody else"
    return cause_of(shown) or "the former one was deleted"


def cause_of(shown: Object | None) -> str | None:
    """Return the cause of the replacement that a condition shows; None when it shows none."""
    if shown is None or shown.get("status") == "True" or shown.get("reason") != REPLACING:
        return None
    text: str = shown.get("message", "")
    return text.partition(_STEP)[0]


def replacing(why: str, step: int, what: str) -> Wait:
    """Return the wait of a replacement: its cause, how far it is, and what is under way."""
    return Wait(REPLACING, f"{why}{_STEP}{step} of {STEPS}: {what}")
