"""The plan for the bastion's OpenStackServer, and what is reported of it; pure.

Source: docs/explanation/go-provider.md, G-15, and W-60. ``bastion_hash.py`` decides which edits replace the server;
``bastion.py`` carries out the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster
from api.v1beta2.openstackcluster import Bastion, OpenStackClusterSpec
from api.v1beta2.openstackclusterstatus import BastionReplacement, BastionStatus
from capo import names
from capo.contract import references
from capo.engine import conditions
from capo.engine.steps import Wait
from capo.json_types import Object
from capo.openstack.floating_ip import FloatingIP
from controllers import server_child
from controllers.openstackcluster import bastion_hash

_VANISHED: Final = ("InstanceNotFound", "InstanceDeleted")
_ON_THE_WAY: Final = (server_child.NOT_READY, "Building", "VolumeNotReady", "AnswerLost")
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


@dataclass(frozen=True)
class Nothing:
    """None is wanted, and the cluster has none."""


@dataclass(frozen=True)
class Create:
    """Create the OpenStackServer.

    Args:
        replacement: the replacement of which this is the second step; None when there was no former bastion.
    """

    fingerprint: str
    replacement: BastionReplacement | None


@dataclass(frozen=True)
class Keep:
    """Keep it.

    Args:
        replacement: the replacement that is not completed while the child is not ready; None without one.
    """

    child: Object
    replacement: BastionReplacement | None


@dataclass(frozen=True)
class Mark:
    """Write the fingerprint and the owner to it, and keep it: from then on its fingerprint decides."""

    child: Object
    fingerprint: str
    replacement: BastionReplacement | None


@dataclass(frozen=True)
class Replace:
    """Delete it, or wait until it is deleted; a later plan creates the next one."""

    child: Object
    cause: BastionReplacement


@dataclass(frozen=True)
class Delete:
    """Delete it, or wait until it is deleted."""

    child: Object


@dataclass(frozen=True)
class Refuse:
    """Change nothing: the object with the bastion's name belongs to another one."""


Plan = Nothing | Create | Keep | Mark | Replace | Delete | Refuse


def is_enabled(bastion: Bastion | None) -> bool:
    """Return whether the spec asks for a bastion."""
    return bastion is not None and bastion.enabled and bastion.spec is not None


def fingerprint(spec: OpenStackClusterSpec) -> str | None:
    """Return the fingerprint of the bastion, None when the spec asks for none."""
    if spec.bastion is None or not is_enabled(spec.bastion):
        return None
    return bastion_hash.fingerprint(spec.bastion, spec.tags)


def plan(child: Object | None, cluster: Object, *, wanted: str | None, known: BastionReplacement | None) -> Plan:
    """Return the plan for the bastion's OpenStackServer.

    Args:
        child: the object with the bastion's name, None when there is none.
        cluster: the OpenStackCluster.
        wanted: the fingerprint of the bastion, None when the spec asks for none.
        known: the replacement in progress, None without one.
    """
    if child is None:
        return Nothing() if wanted is None else Create(wanted, known)
    is_orphan = not references.owners(child)
    if not (references.is_owned_by(child, cluster) or (is_orphan and _is_labelled_alike(child, cluster))):
        return Nothing() if wanted is None else Refuse()
    if wanted is None:
        return Delete(child)
    if child["metadata"].get("deletionTimestamp") or _has_vanished(child):
        return Replace(child, cause(child, wanted, known))
    marked = hash_of(child)
    if marked is None or is_orphan:
        return Mark(child, wanted, known)
    return Keep(child, known) if marked == wanted else Replace(child, cause(child, wanted, known))


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


def is_of_ipv6(child: OpenStackServer) -> bool:
    """Return whether a server has addresses, and none of IPv4."""
    internal = [each.address for each in child.status.addresses if each.type == "InternalIP"]
    return bool(internal) and all(":" in address for address in internal)


def status(
    child: OpenStackServer, floating_ip: Mapping[str, Any] | None, known: BastionStatus | None = None
) -> BastionStatus:
    """Return ``status.bastion``.

    Args:
        floating_ip: the floating IP at its port, None without one.
        known: the former status of this server, whose addresses are kept while it is not up.
    """
    internal = [a.address for a in child.status.addresses if a.type == "InternalIP"]
    leads_to = FloatingIP(floating_ip).fixed_address if floating_ip else None
    shown = BastionStatus(
        id=child.status.instance_id or "",
        name=child.metadata.name,
        ssh_key_name=child.spec.ssh_key_name,
        state=child.status.instance_state or "",
        ip=leads_to or next(iter(internal), ""),
        floating_ip=FloatingIP(floating_ip).address if floating_ip else "",
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
    return server_child.waits_for_others(child.to_dict()) or server_child.becoming_ready(child.metadata.name)


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


def replacing(why: BastionReplacement, step: int, wait: Wait) -> Wait:
    """Return the wait of a replacement: its cause, its step, and what the step waits for."""
    return replace(wait, reason=REPLACING, message=f"{words(why)}{_STEP}{step} of {STEPS}: {wait.message}")


def waiting(wait: Wait, replacement: BastionReplacement | None) -> Wait:
    """Return the wait of a new bastion as the second step of the replacement in progress.

    A wait with a reason of its own is returned unchanged.
    """
    if replacement is None or wait.reason != server_child.NOT_READY:
        return wait
    return replacing(replacement, 2, wait)


def words(why: BastionReplacement) -> str:
    """Return the cause of a replacement for messages."""
    return f"{' and '.join(why.changed_fields)} changed" if why.changed_fields else _WORDS.get(why.cause, why.cause)
