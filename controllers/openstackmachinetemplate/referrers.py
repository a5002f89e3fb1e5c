"""Which objects of Cluster API refer to a template; pure.

The owner reference to a Cluster, which Cluster API sets, stays after a rollout to another template: only together with
a reference it shows that machines are created from the template. Source: docs/reference/contract.md, C-47.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from capo import names
from capo.contract import references
from capo.engine.store import Index, Store
from capo.json_types import Object
from capo.kube.kinds import (
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE_TEMPLATE,
    Kind,
)

KINDS: Final = (MACHINE_DEPLOYMENT, MACHINE_SET, KUBEADM_CONTROL_PLANE)
Referrer = tuple[str, str, int]
"""Kind, uid and generation: another generation is an edit, such as another number of replicas."""


def of(template: Object, store: Store) -> frozenset[Referrer]:
    """Return what refers to a template; empty for templates without a Cluster, as those of a ClusterClass."""
    cluster = cluster_of(template, store)
    if cluster is None:
        return frozenset()
    found = {
        (kind.kind, str(each["metadata"]["uid"]), int(each["metadata"].get("generation") or 0))
        for kind, each in _known(template, cluster, store)
    }
    # The reference of a control plane of another kind is not known.
    control_plane = (cluster.get("spec") or {}).get("controlPlaneRef") or {}
    if control_plane and control_plane.get("kind") != KUBEADM_CONTROL_PLANE.kind:
        found.add((str(control_plane.get("kind")), "", 0))
    return frozenset(found)


def zones(template: Object, store: Store) -> list[str]:
    """Return the availability zones in which what refers to a template wants its machines, sorted."""
    cluster = cluster_of(template, store)
    known = _known(template, cluster, store) if cluster else ()
    machines = (((each.get("spec") or {}).get("template") or {}).get("spec") or {} for _, each in known)
    return sorted({str(zone) for machine in machines if (zone := machine.get("failureDomain"))})


def zones_of_machines(template: Object, store: Store) -> list[str]:
    """Return the zones in which machines will be, sorted: of a control plane, the failure domains of its cluster."""
    cluster = cluster_of(template, store)
    if cluster is None:
        return []
    found = set(zones(template, store))
    if any(kind == KUBEADM_CONTROL_PLANE for kind, _ in _known(template, cluster, store)):
        infra = _infrastructure_of(cluster, store) or {}
        domains = (infra.get("status") or {}).get("failureDomains") or ()
        found |= {str(domain["name"]) for domain in domains if domain.get("controlPlane")}
    return sorted(found)


def _known(template: Object, cluster: Object, store: Store) -> Iterator[tuple[Kind, Object]]:
    namespace, name = template["metadata"]["namespace"], template["metadata"]["name"]
    for kind in KINDS:
        for each in store.by_label(kind, namespace, names.CLUSTER_NAME_LABEL, cluster["metadata"]["name"]):
            if template_name(each) == name and not _is_of_deployment(each):
                yield kind, each


def template_name(referrer: Object) -> str | None:
    """Return the name of the template that an object refers to, None if it refers to none of ours."""
    return references.template_name(referrer, OPENSTACK_MACHINE_TEMPLATE.kind)


def cluster_of(template: Object, store: Store) -> Object | None:
    """Return the Cluster that owns a template."""
    name = references.owner_cluster_name(template)
    return store.get(CLUSTER, template["metadata"]["namespace"], name) if name else None


def own_identity_ref(template: Object) -> Object | None:
    """Return the credentials that a template itself names."""
    found: Object | None = template["spec"]["template"]["spec"].get("identityRef")
    return found


def identity_ref(template: Object, store: Store) -> Object | None:
    """Return the credentials of a template's machines: its own, else those of its cluster; None if neither is known."""
    if own := own_identity_ref(template):
        return own
    cluster = cluster_of(template, store)
    infra = _infrastructure_of(cluster, store) if cluster else None
    return (infra.get("spec") or {}).get("identityRef") if infra else None


def _infrastructure_of(cluster: Object, store: Store) -> Object | None:
    name = references.infrastructure_name(cluster, OPENSTACK_CLUSTER.kind)
    return store.get(OPENSTACK_CLUSTER, cluster["metadata"]["namespace"], name) if name else None


def of_cluster(namespace: str, cluster_name: str, store: Store) -> Iterable[tuple[str, str]]:
    """Return the templates that a Cluster owns."""
    return [
        (namespace, str(template["metadata"]["name"]))
        for template in store.find(_OF_CLUSTER, (namespace, cluster_name))
    ]


def _owning_cluster(template: Object) -> Iterable[tuple[str, str]]:
    name = references.owner_cluster_name(template)
    return [(template["metadata"]["namespace"], name)] if name else []


_OF_CLUSTER: Final = Index(OPENSTACK_MACHINE_TEMPLATE, _owning_cluster)


def _is_of_deployment(referrer: Object) -> bool:
    """Return whether a MachineSet belongs to a MachineDeployment: that one decides which template is used."""
    return references.owner(referrer, group=references.CORE_GROUP, kind=MACHINE_DEPLOYMENT.kind) is not None
