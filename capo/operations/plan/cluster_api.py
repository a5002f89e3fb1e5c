"""The part of Cluster API's managers in a plan: owners, readiness, deletion in order, and machines.

Of MachineDeployments and control planes only those are acted for that the user's files create or edit: the managers
have done their work for the others, or are doing it. Source: Cluster API book, provider contracts "InfraCluster" and
"InfraMachine", and "Updating Machine Infrastructure and Bootstrap Templates".
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.clock import WallClock
from capo.contract import clusters, references, rules
from capo.json_types import Json, Object
from capo.kube.kinds import (
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    SECRET,
    Key,
    Kind,
)
from capo.operations.plan import changes, rollout
from capo.operations.plan.changes import Change, Recorder
from capo.operations.plan.kubernetes import PlannedKube
from capo.operations.plan.rollout import Rollout

SYSTEM: Final = "Cluster API"
DELETED_AT: Final = "2026-01-01T00:00:00Z"
DEPLOYMENT_LABEL: Final = "cluster.x-k8s.io/deployment-name"


@dataclass
class Owner:
    """A MachineDeployment or a control plane of the user's files.

    Args:
        is_new: whether the files create it.
        rollout: what the files' edit of it means for its machines.
    """

    key: Key
    is_new: bool
    rollout: Rollout
    is_done: bool = False


class ClusterAPI:
    """Cluster API's managers in a plan.

    Args:
        is_planned: whether an object belongs to the plan.
        miss: gets a sentence for each edit whose effect is not known.
    """

    def __init__(
        self,
        kube: PlannedKube,
        recorder: Recorder,
        *,
        is_planned: Callable[[Kind, Object], bool],
        clock: WallClock,
        miss: Callable[[str], None],
    ) -> None:
        self._kube, self._recorder, self._is_planned = kube, recorder, is_planned
        self._clock, self._miss = clock, miss
        self._owners: list[Owner] = []

    def take(self, key: Key, before: Json | None) -> None:
        """Act for an object of the user's files, if it owns machines."""
        obj = self._kube.objects[key]
        if key.kind == MACHINE_DEPLOYMENT or (obj.get("spec") or {}).get("machineTemplate"):
            found = rollout.of_edit(key.kind, before, obj, now_s=self._clock.wall())
            self._owners.append(Owner(key, before is None, found))
            if found.unknown:
                self._miss(f"{key.kind.kind} {key.namespace}/{key.name}: {found.unknown}")

    def step(self) -> bool:
        """Write what is due now; return whether there was anything."""
        before = self._kube.written
        for cluster in self._of(CLUSTER):
            self._cluster(cluster)
        for machine in self._of(MACHINE):
            self._machine(machine)
        for owner in self._owners:
            if not owner.is_done:
                owner.is_done = self._roll_out(owner)
        return self._kube.written != before

    def _of(self, kind: Kind) -> list[Json]:
        known = [obj for key, obj in self._kube.objects.items() if key.kind == kind]
        return [copy.deepcopy(obj) for obj in known if self._is_planned(kind, obj) and not _is_paused(obj)]

    # -- clusters and machines ----------------------------------------------------------------------------------------

    def _cluster(self, cluster: Json) -> None:
        name = references.infrastructure_name(cluster, OPENSTACK_CLUSTER.kind)
        infra = self._infra(OPENSTACK_CLUSTER, cluster, name)
        if cluster["metadata"].get("deletionTimestamp"):
            self._delete_cluster(cluster, infra)
            return
        if infra is None:
            return
        self._own(OPENSTACK_CLUSTER, infra, cluster, {names.CLUSTER_NAME_LABEL: cluster["metadata"]["name"]})
        endpoint = clusters.endpoint(infra)
        if endpoint and clusters.endpoint(cluster) != endpoint:
            self._edit(CLUSTER, cluster, {"spec": {"controlPlaneEndpoint": endpoint._asdict()}})
        self._note_provisioned(CLUSTER, cluster, infra)

    def _delete_cluster(self, cluster: Json, infra: Json | None) -> None:
        machines = [each for each in self._of(MACHINE) if _cluster_of(each) == cluster["metadata"]["name"]]
        for machine in machines:
            if not machine["metadata"].get("deletionTimestamp"):
                self._delete_machine(machine, f"Cluster {cluster['metadata']['name']} is deleted")
        if not machines and infra is not None:
            self._remove(OPENSTACK_CLUSTER, infra)

    def _machine(self, machine: Json) -> None:
        name = references.infrastructure_name(machine, OPENSTACK_MACHINE.kind)
        infra = self._infra(OPENSTACK_MACHINE, machine, name)
        if machine["metadata"].get("deletionTimestamp"):
            if infra is None:
                self._kube.drop(Key(MACHINE, machine["metadata"]["namespace"], machine["metadata"]["name"]))
            else:
                self._remove(OPENSTACK_MACHINE, infra)
            return
        if infra is None:
            return
        self._own(OPENSTACK_MACHINE, infra, machine, {names.CLUSTER_NAME_LABEL: _cluster_of(machine)})
        self._note_provisioned(MACHINE, machine, infra)

    def _infra(self, kind: Kind, owner: Json, name: str | None) -> Json | None:
        return self._kube.get(kind, owner["metadata"]["namespace"], name) if name else None

    def _own(self, kind: Kind, obj: Json, owner: Json, labels: Mapping[str, str]) -> None:
        present = obj["metadata"].get("labels") or {}
        is_owned = references.is_owned_by(obj, owner) and labels.items() <= present.items()
        if is_owned or obj["metadata"].get("deletionTimestamp"):
            return
        others = [each for each in obj["metadata"].get("ownerReferences") or () if each["kind"] != owner["kind"]]
        reference = references.controller_reference(owner)
        self._edit(kind, obj, {"metadata": {"ownerReferences": [*others, reference], "labels": dict(labels)}})

    def _note_provisioned(self, kind: Kind, obj: Json, infra: Json) -> None:
        if not clusters.is_provisioned(infra) or clusters.is_infrastructure_provisioned(obj):
            return
        status = {"initialization": {"infrastructureProvisioned": True}, "infrastructureReady": True}
        provider_id = (infra.get("spec") or {}).get("providerID")
        self._edit(kind, obj, {"status": status, **({"spec": {"providerID": provider_id}} if provider_id else {})})

    def _edit(self, kind: Kind, obj: Json, patch: Mapping[str, Any]) -> None:
        self._kube.edit(kind, obj["metadata"]["namespace"], obj["metadata"]["name"], patch)

    def _remove(self, kind: Kind, obj: Json) -> None:
        """Request the deletion of an object of ours."""
        if not obj["metadata"].get("deletionTimestamp"):
            self._kube.delete_as_user(Key(kind, obj["metadata"]["namespace"], obj["metadata"]["name"]))

    # -- machines of deployments and control planes -------------------------------------------------------------------

    def _roll_out(self, owner: Owner) -> bool:
        """Create and delete the machines of an owner; return whether its turn is over."""
        obj = self._kube.objects[owner.key]
        cluster = self._kube.get(CLUSTER, owner.key.namespace, str(self.cluster_name(obj)))
        if cluster is None or not clusters.is_infrastructure_provisioned(cluster):
            return False
        if rules.pause_cause(obj, cluster):
            return True
        machines = [each for each in self._of(MACHINE) if _is_of(each, owner.key)]
        replaced = [each for each in machines if owner.rollout.replaces(each)]
        kept = [each for each in machines if each not in replaced]
        replicas = (obj.get("spec") or {}).get("replicas")
        wanted = int(replicas) if replicas is not None else (1 if owner.is_new else len(machines))
        edits = owner.rollout.edits if replaced else f"{len(machines)} -> {wanted} replicas"
        cause = f"{owner.key.kind.kind} {owner.key.name}: {edits}"
        for number in range(wanted - len(kept)):
            self._create_machine(owner.key, cluster, number, cause)
        for machine in (*replaced, *kept[wanted:]):
            self._delete_machine(machine, cause)
        return True

    def cluster_name(self, obj: Object) -> str | None:
        """Return the name of the Cluster of an object that owns machines; None if it owns none."""
        named: str | None = (obj.get("spec") or {}).get("clusterName") or references.cluster_name(obj)
        if named:
            return named
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        found = [obj for key, obj in self._kube.objects.items() if (key.kind, key.namespace) == (CLUSTER, namespace)]
        refs = ((each, (each["spec"].get("controlPlaneRef") or {}).get("name")) for each in found)
        return next((each["metadata"]["name"] for each, ref in refs if ref == name), None)

    def _create_machine(self, owner: Key, cluster: Json, number: int, cause: str) -> None:
        obj = self._kube.objects[owner]
        name, namespace = f"{owner.name}-plan{number}", owner.namespace
        template = references.template_name(obj, OPENSTACK_MACHINE_TEMPLATE.kind)
        found = self._kube.get(OPENSTACK_MACHINE_TEMPLATE, namespace, str(template)) if template else None
        if found is None:
            return
        labels = {names.CLUSTER_NAME_LABEL: cluster["metadata"]["name"], **_labels(owner)}
        secret = {"metadata": {"name": f"{name}-bootstrap", "namespace": namespace}, "data": {"value": _BOOTSTRAP}}
        self._kube.put(SECRET, secret)
        machine = {
            "apiVersion": cluster["apiVersion"],
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": self._machine_spec(obj, cluster, name, number),
        }
        self._record(changes.CREATE, machine, cause)
        made = self._kube.put(MACHINE, machine)
        infra: Json = {"name": name, "namespace": namespace, "labels": labels}
        infra["annotations"] = _cloned_from(str(template))
        infra["ownerReferences"] = [references.controller_reference(made)]
        self._kube.put(OPENSTACK_MACHINE, {"metadata": infra, "spec": found["spec"]["template"]["spec"]})

    def _machine_spec(self, owner: Object, cluster: Json, name: str, number: int) -> Json:
        ref = {"apiGroup": names.GROUP, "kind": OPENSTACK_MACHINE.kind, "name": name}
        zone = ((owner["spec"].get("template") or {}).get("spec") or {}).get("failureDomain")
        zone = zone or (self._zone(cluster, number) if owner["spec"].get("machineTemplate") else None)
        return {
            "clusterName": cluster["metadata"]["name"],
            "bootstrap": {"dataSecretName": f"{name}-bootstrap"},
            "infrastructureRef": ref,
            **({"failureDomain": zone} if zone else {}),
        }

    def _zone(self, cluster: Json, number: int) -> str | None:
        """Return the zone of a control plane machine: Cluster API spreads them."""
        infra = self._infra(OPENSTACK_CLUSTER, cluster, references.infrastructure_name(cluster, OPENSTACK_CLUSTER.kind))
        shown = ((infra or {}).get("status") or {}).get("failureDomains") or ()
        zones = sorted(str(each["name"]) for each in shown if each.get("controlPlane"))
        return zones[number % len(zones)] if zones else None

    def _delete_machine(self, machine: Json, cause: str) -> None:
        self._record(changes.DELETE, machine, cause)
        self._edit(MACHINE, machine, {"metadata": {"deletionTimestamp": DELETED_AT, "finalizers": ["plan"]}})

    def _record(self, action: str, machine: Json, cause: str) -> None:
        name = f"{machine['metadata']['namespace']}/{machine['metadata']['name']}"
        method = "POST" if action == changes.CREATE else "DELETE"
        for kind in ("OpenStackMachine", "OpenStackServer"):
            self._recorder.causes[f"{kind} {name}"] = cause
        self._recorder.add(Change(SYSTEM, action, MACHINE.kind, name, method, f"machines/{name}", cause=cause))


_BOOTSTRAP: Final = base64.b64encode(b"#cloud-config\n").decode()
"""A placeholder of the bootstrap data, which only Cluster API has."""


def _is_paused(obj: Object) -> bool:
    return bool((obj.get("spec") or {}).get("paused"))


def _cluster_of(machine: Object) -> str:
    return str((machine.get("spec") or {}).get("clusterName") or references.cluster_name(machine))


def _labels(owner: Key) -> dict[str, str]:
    if owner.kind == MACHINE_DEPLOYMENT:
        return {DEPLOYMENT_LABEL: owner.name}
    return {names.CONTROL_PLANE_LABEL: ""}


def _is_of(machine: Object, owner: Key) -> bool:
    """Return whether an owner has a machine; a control plane has all machines with its label."""
    labels = machine["metadata"].get("labels") or {}
    if machine["metadata"]["namespace"] != owner.namespace or machine["metadata"].get("deletionTimestamp"):
        return False
    if owner.kind == MACHINE_DEPLOYMENT:
        return bool(labels.get(DEPLOYMENT_LABEL) == owner.name)
    return names.CONTROL_PLANE_LABEL in labels and any(
        each.kind == owner.kind.kind and each.name == owner.name for each in references.owners(machine)
    )


def _cloned_from(template: str) -> dict[str, str]:
    return {
        names.CLONED_FROM_NAME_ANNOTATION: template,
        names.CLONED_FROM_KIND_ANNOTATION: f"{OPENSTACK_MACHINE_TEMPLATE.kind}.{names.GROUP}",
    }
