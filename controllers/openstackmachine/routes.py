"""Which OpenStackMachines are requeued when another object changes; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from api.v1beta2 import OpenStackIdentityReference
from capo import names
from capo.contract import clusters, machines, references, rules
from capo.engine import conditions
from capo.engine.store import Route, Store
from capo.json_types import Object
from capo.kube.kinds import (
    CLUSTER,
    MACHINE,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
)
from controllers import cloned_from
from controllers.openstackmachine import address_pairs, build_timeout, control_plane
from controllers.pause_conditions import PAUSED
from controllers.server_child import credentials_change

Idents = Iterable[tuple[str, str]]


def keys_for_machine(machine: Object, _store: Store) -> Idents:
    """Requeue the OpenStackMachine that a Machine refers to: its owner, bootstrap data or zone may be available now."""
    name = references.infrastructure_name(machine, OPENSTACK_MACHINE.kind)
    return [(machine["metadata"]["namespace"], name)] if name else []


def keys_for_cluster(cluster: Object, store: Store) -> Idents:
    """Requeue the OpenStackMachines of a Cluster if its pause changed, or if they are not provisioned (C-40)."""
    # A Cluster's status changes often; provisioned machines are requeued only for a changed pause.
    return [_ident(m) for m in _of_cluster(cluster, cluster["metadata"]["name"], store) if _is_concerned(m, cluster)]


def _is_concerned(obj: Object, cluster: Object) -> bool:
    known = conditions.is_true((obj.get("status") or {}).get("conditions") or (), PAUSED)
    return known != (rules.pause_cause(obj, cluster) is not None) or not clusters.is_provisioned(obj)


def keys_for_openstack_cluster(infra: Object, store: Store) -> Idents:
    """Requeue machines that wait for the infrastructure, and the control plane: pools or floating IP may have changed.

    Workers only depend on the credentials of their servers (W-12).
    """
    name = references.owner_cluster_name(infra) or references.cluster_name(infra)
    found = _of_cluster(infra, name, store) if name else []
    ref = OpenStackIdentityReference.model_validate(infra["spec"]["identityRef"])
    return [
        _ident(m)
        for m in found
        if machines.is_control_plane(m) or not clusters.is_provisioned(m) or _has_others(m, ref, store)
    ]


def _has_others(machine: Object, ref: OpenStackIdentityReference, store: Store) -> bool:
    server = store.get(OPENSTACK_SERVER, *_ident(machine))
    return bool(server and not machine["spec"].get("identityRef") and credentials_change(server, ref))


def keys_for_server(server: Object, _store: Store) -> Idents:
    """Requeue the OpenStackMachine that owns an OpenStackServer."""
    owner = references.owner(server, group=names.GROUP, kind=OPENSTACK_MACHINE.kind)
    return [(server["metadata"]["namespace"], owner.name)] if owner else []


def keys_for_template(template: Object, store: Store) -> Idents:
    """Requeue the machines of a template that lack its allowed address pairs, or its build timeout while it matters."""
    clones = cloned_from.clones(template, store)
    return [_ident(m) for m in clones if address_pairs.is_due(m, template) or _lacks_timeout(m, template, store)]


def _lacks_timeout(obj: Object, template: Object, store: Store) -> bool:
    return build_timeout.is_due(obj, template, store.get(OPENSTACK_SERVER, *_ident(obj)))


def keys_for_sibling(obj: Object, store: Store) -> Idents:
    """Requeue the rest of the control plane when one of it fails or is deleted: the floating IP may have to move."""
    name = references.cluster_name(obj)
    if not name or not machines.is_control_plane(obj) or not _is_leaving(obj):
        return []
    siblings = control_plane.of_cluster(obj["metadata"]["namespace"], name, store)
    return [_ident(m) for m in siblings if m["metadata"]["name"] != obj["metadata"]["name"]]


def _is_leaving(obj: Object) -> bool:
    ready = conditions.find((obj.get("status") or {}).get("conditions") or (), conditions.READY)
    is_dead = clusters.is_provisioned(obj) and ready is not None and ready["status"] != "True"
    return is_dead or bool(obj["metadata"].get("deletionTimestamp"))


def _of_cluster(obj: Object, cluster_name: str, store: Store) -> list[Object]:
    namespace = obj["metadata"]["namespace"]
    return store.by_label(OPENSTACK_MACHINE, namespace, names.CLUSTER_NAME_LABEL, cluster_name)


def _ident(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


ROUTES: Final = (
    Route(MACHINE, keys_for_machine),
    Route(CLUSTER, keys_for_cluster),
    Route(OPENSTACK_CLUSTER, keys_for_openstack_cluster),
    Route(OPENSTACK_SERVER, keys_for_server),
    Route(OPENSTACK_MACHINE, keys_for_sibling),
    Route(OPENSTACK_MACHINE_TEMPLATE, keys_for_template),
)
