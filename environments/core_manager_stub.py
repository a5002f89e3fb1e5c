"""Simulates Cluster API's managers where none runs: owners, copied fields, deletion in order.

It does with our objects exactly what the contract specifies, one step per call. Tests with the real managers do
not use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from capo.json_types import Json
from capo.local.apiclient import Api
from capo.local.errors import ApiError

CORE: Final = "cluster.x-k8s.io/v1beta2"
IPAM: Final = "ipam.cluster.x-k8s.io/v1beta2"
GROUP: Final = "infrastructure.cluster.x-k8s.io/v1beta2"


@dataclass
class CoreManagerStub:
    """Cluster API's core managers in one namespace."""

    api: Api
    namespace: str

    def step(self) -> None:
        """Write the changes due now; a change that another client made since the read is handled in the next step."""
        for machine in self._list(CORE, "machines"):
            self._attempt(lambda machine=machine: self._machine(machine))  # type: ignore[misc]
        for cluster in self._list(CORE, "clusters"):
            self._attempt(lambda cluster=cluster: self._cluster(cluster))  # type: ignore[misc]

    @staticmethod
    def _attempt(work: Callable[[], None]) -> None:
        with contextlib.suppress(ApiError):
            work()

    def _cluster(self, cluster: Json) -> None:
        infra = self._referenced(cluster, "openstackclusters")
        if cluster["metadata"].get("deletionTimestamp"):
            if not self._list(CORE, "machines"):
                self._end(cluster, "clusters", infra, "openstackclusters")
            return
        self._own(cluster, "clusters", infra, "openstackclusters")
        if not infra or not (infra.get("status") or {}).get("initialization", {}).get("provisioned"):
            return
        endpoint = infra["spec"].get("controlPlaneEndpoint")
        if endpoint and cluster["spec"].get("controlPlaneEndpoint") != endpoint:
            self._patch(cluster, "clusters", {"spec": {"controlPlaneEndpoint": endpoint}})
        self._provisioned(cluster, "clusters")

    def _machine(self, machine: Json) -> None:
        infra = self._referenced(machine, "openstackmachines")
        if machine["metadata"].get("deletionTimestamp"):
            self._end(machine, "machines", infra, "openstackmachines")
            return
        self._own(machine, "machines", infra, "openstackmachines")
        if not infra or not (infra.get("status") or {}).get("initialization", {}).get("provisioned"):
            return
        if machine["spec"].get("providerID") != infra["spec"].get("providerID"):
            self._patch(machine, "machines", {"spec": {"providerID": infra["spec"]["providerID"]}})
        self._provisioned(machine, "machines")

    def _provisioned(self, obj: Json, plural: str) -> None:
        """Mark the infrastructure as provisioned, once."""
        if not obj.get("status", {}).get("initialization", {}).get("infrastructureProvisioned"):
            status = {"status": {"initialization": {"infrastructureProvisioned": True}}}
            self._patch(obj, plural, status, subresource="/status")

    def _own(self, owner: Json, plural: str, infra: Json | None, infra_plural: str) -> None:
        """Add a finalizer to the owner, and the owner reference to the infrastructure."""
        finalizers = owner["metadata"].get("finalizers") or []
        mine = f"{plural[:-1]}.cluster.x-k8s.io"
        if mine not in finalizers:
            self._patch(owner, plural, {"metadata": {"finalizers": [*finalizers, mine]}})
        if infra and not infra["metadata"].get("ownerReferences"):
            reference = {
                "apiVersion": CORE,
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
            labels = {"cluster.x-k8s.io/cluster-name": owner["spec"].get("clusterName", owner["metadata"]["name"])}
            version = infra["metadata"]["resourceVersion"]
            metadata = {"ownerReferences": [reference], "labels": labels, "resourceVersion": version}
            self._patch(infra, infra_plural, {"metadata": metadata})

    def _end(self, owner: Json, plural: str, infra: Json | None, infra_plural: str) -> None:
        """Delete the infrastructure, and remove the owner's finalizer when it is gone."""
        if infra is None:
            self._patch(owner, plural, {"metadata": {"finalizers": []}})
        elif not infra["metadata"].get("deletionTimestamp"):
            self.api.delete(self._path(GROUP, infra_plural, infra["metadata"]["name"]))

    def _referenced(self, owner: Json, plural: str) -> Json | None:
        name = owner["spec"]["infrastructureRef"]["name"]
        return self.api.find(self._path(GROUP, plural, name))

    def _list(self, version: str, plural: str) -> list[Json]:
        items: list[Json] = self.api.get(self._path(version, plural))["items"]
        kind = {"clusters": "Cluster", "machines": "Machine"}[plural]
        return [{"kind": kind, **item} for item in items]

    def _patch(self, obj: Json, plural: str, patch: Json, *, subresource: str = "") -> None:
        version = GROUP if plural.startswith("openstack") else CORE
        path = self._path(version, plural, obj["metadata"]["name"]) + subresource
        self.api.patch(path, patch)

    def _path(self, version: str, plural: str, name: str = "") -> str:
        return f"/apis/{version}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")


@dataclass
class Pool:
    """The controller of a pool that allocates one address, that of a floating IP of the project, to every claim."""

    api: Api
    namespace: str
    address: str

    def step(self) -> None:
        """Answer claims; release addresses of deleted claims."""
        claims = {claim["metadata"]["name"]: claim for claim in self._list("ipaddressclaims")}
        addresses = {address["metadata"]["name"] for address in self._list("ipaddresses")}
        for name in addresses - claims.keys():
            self.api.delete(f"{self._base}/ipaddresses/{name}")
        for name, claim in claims.items():
            if not (claim.get("status") or {}).get("addressRef"):
                with contextlib.suppress(ApiError):  # the claim is deleted
                    self._answer(name, claim["spec"]["poolRef"])

    def _answer(self, name: str, pool: Json) -> None:
        spec = {"claimRef": {"name": name}, "poolRef": pool, "address": self.address, "prefix": 32}
        metadata = {"name": name, "namespace": self.namespace}
        self.api.apply([{"apiVersion": IPAM, "kind": "IPAddress", "metadata": metadata, "spec": spec}])
        self.api.patch(f"{self._base}/ipaddressclaims/{name}/status", {"status": {"addressRef": {"name": name}}})

    def _list(self, plural: str) -> list[Json]:
        items: list[Json] = self.api.get(f"{self._base}/{plural}")["items"]
        return items

    @property
    def _base(self) -> str:
        return f"/apis/{IPAM}/namespaces/{self.namespace}"
