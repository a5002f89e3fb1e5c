"""Cluster API's managers and the garbage collector of a management cluster, as far as they affect the provider.

It reconciles shortly after every change, writes owner references and readiness, and deletes in Cluster API's order.
Source: Cluster API book, provider contracts "InfraCluster" and "InfraMachine".
"""

from __future__ import annotations

import random
from typing import Any, Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, Key, Kind
from e2e.simulation.apiclient import Endpoint
from e2e.simulation.objects import USER_FINALIZERS, owned_by
from e2e.simulation.scheduler import Scheduler

WATCHED: Final = (CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE)


class Core:
    """Cluster API in one management cluster."""

    def __init__(self, scheduler: Scheduler, endpoint: Endpoint, seed: str) -> None:
        self._scheduler, self._endpoint = scheduler, endpoint
        self._server = endpoint.server
        self._random = random.Random(f"core {endpoint.name} {seed}")
        self._is_due = False
        self.is_stopped = False
        self._server.on_change.append(self._changed)

    def _changed(self, event: Any) -> None:
        if not self._is_due:
            self._is_due = True
            self._scheduler.after(self._random.uniform(0.05, 1.0), self._act)

    def _act(self) -> None:
        self._is_due = False
        if self.is_stopped or self._endpoint.line.is_down:
            self._scheduler.after(5.0, self._act) if not self.is_stopped else None
            return
        for cluster in self._server.list(CLUSTER):
            if not _is_paused(cluster):
                self._cluster(cluster)
        for machine in self._server.list(MACHINE):
            if not self._is_held(machine):
                self._machine(machine)
        self._server.collect_garbage()

    def _cluster(self, cluster: Json) -> None:
        name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
        infra = self._server.get(OPENSTACK_CLUSTER, namespace, name)
        if cluster["metadata"].get("deletionTimestamp"):
            self._delete_cluster(cluster, infra)
            return
        if infra is None:
            return
        self._own(OPENSTACK_CLUSTER, infra, cluster, {names.CLUSTER_NAME_LABEL: name})
        is_made = ((infra.get("status") or {}).get("initialization") or {}).get("provisioned")
        was_noted = ((cluster.get("status") or {}).get("initialization") or {}).get("infrastructureProvisioned")
        if is_made and not was_noted:
            self._status(CLUSTER, cluster, {"initialization": {"infrastructureProvisioned": True}})
        endpoint = infra["spec"].get("controlPlaneEndpoint")
        if endpoint and cluster["spec"].get("controlPlaneEndpoint") != endpoint:
            self._server.patch(CLUSTER, namespace, name, {"spec": {"controlPlaneEndpoint": endpoint}})

    def _delete_cluster(self, cluster: Json, infra: Json | None) -> None:
        metadata = cluster["metadata"]
        machines = [m for m in self._server.list(MACHINE) if m["spec"]["clusterName"] == metadata["name"]]
        for machine in machines:
            self._delete(MACHINE, machine)
        if machines:
            return
        if infra is not None:
            self._delete(OPENSTACK_CLUSTER, infra)
            return
        self._release(CLUSTER, cluster)

    def _machine(self, machine: Json) -> None:
        metadata = machine["metadata"]
        infra = self._server.get(OPENSTACK_MACHINE, metadata["namespace"], metadata["name"])
        if metadata.get("deletionTimestamp"):
            if infra is not None:
                self._delete(OPENSTACK_MACHINE, infra)
            else:
                self._release(MACHINE, machine)
            return
        if infra is None:
            return
        self._own(OPENSTACK_MACHINE, infra, machine, {})
        is_made = ((infra.get("status") or {}).get("initialization") or {}).get("provisioned")
        was_noted = ((machine.get("status") or {}).get("initialization") or {}).get("infrastructureProvisioned")
        if is_made and not was_noted:
            provider_id = infra["spec"].get("providerID")
            self._server.patch(MACHINE, metadata["namespace"], metadata["name"], {"spec": {"providerID": provider_id}})
            self._status(MACHINE, machine, {"initialization": {"infrastructureProvisioned": True}})

    def _is_held(self, machine: Json) -> bool:
        cluster = self._server.get(CLUSTER, machine["metadata"]["namespace"], machine["spec"]["clusterName"])
        return cluster is None or _is_paused(cluster)

    def _own(self, kind: Kind, obj: Json, owner: Json, labels: dict[str, str]) -> None:
        present = obj["metadata"].get("labels") or {}
        if obj["metadata"].get("deletionTimestamp") or (_is_owned(obj, owner) and labels.items() <= present.items()):
            return
        others = [ref for ref in obj["metadata"].get("ownerReferences") or () if ref["kind"] != owner["kind"]]
        body = {"metadata": {"ownerReferences": [*others, owned_by(owner)], "labels": labels}}
        self._server.patch(kind, obj["metadata"]["namespace"], obj["metadata"]["name"], body)

    def _status(self, kind: Kind, obj: Json, status: Json) -> None:
        metadata = obj["metadata"]
        self._server.patch(kind, metadata["namespace"], metadata["name"], {"status": status}, subresource="status")

    def _delete(self, kind: Kind, obj: Json) -> None:
        metadata = obj["metadata"]
        if not metadata.get("deletionTimestamp"):
            self._server.delete(kind, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    def _release(self, kind: Kind, obj: Json) -> None:
        metadata = obj["metadata"]
        kept = [f for f in metadata.get("finalizers") or () if f != USER_FINALIZERS[kind]]
        self._server.patch(kind, metadata["namespace"], metadata["name"], {"metadata": {"finalizers": kept}})


def key_of(kind: Kind, obj: Json) -> Key:
    """Return the key of an object."""
    return Key(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])


def _is_paused(obj: Json) -> bool:
    return bool(obj["spec"].get("paused"))


def _is_owned(obj: Json, owner: Json) -> bool:
    return any(ref["uid"] == owner["metadata"]["uid"] for ref in obj["metadata"].get("ownerReferences") or ())
