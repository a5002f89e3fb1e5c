"""The Kubernetes objects of a demo, read and changed as its user would with kubectl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from capo.json_types import Json
from capo.local.apiclient import Api

_CORE: Final = "/apis/cluster.x-k8s.io/v1beta2"
_OURS: Final = "/apis/infrastructure.cluster.x-k8s.io"
_IPAM: Final = "/apis/ipam.cluster.x-k8s.io/v1beta2"
_BASES: Final[Mapping[str, str]] = {
    "clusters": _CORE,
    "machines": _CORE,
    "machinedeployments": _CORE,
    "kubeadmcontrolplanes": "/apis/controlplane.cluster.x-k8s.io/v1beta2",
    "openstackclusters": f"{_OURS}/v1beta2",
    "openstackmachines": f"{_OURS}/v1beta2",
    "openstackservers": f"{_OURS}/v1alpha1",
    "openstackfloatingippools": f"{_OURS}/v1alpha1",
    "ipaddressclaims": _IPAM,
    "ipaddresses": _IPAM,
    "secrets": "/api/v1",
    "events": "/apis/events.k8s.io/v1",
}
LIVING: Final = ("clusters", "machines", "openstackclusters", "openstackmachines", "openstackservers")
"""The kinds of which nothing is left when a cluster is deleted."""


@dataclass(frozen=True)
class ObjectSnapshot:
    """Objects by plural, all read at about the same time."""

    by_plural: Mapping[str, list[Json]]

    def all(self, plural: str) -> list[Json]:
        """Return the objects of a kind by name."""
        return sorted(self.by_plural[plural], key=lambda obj: str(obj["metadata"]["name"]))

    def one(self, plural: str, name: str) -> Json | None:
        """Return an object, None if there is none."""
        return next((obj for obj in self.by_plural[plural] if obj["metadata"]["name"] == name), None)


@dataclass
class Objects:
    """The objects of one namespace."""

    api: Api
    namespace: str

    def look(self) -> ObjectSnapshot:
        """Return all objects that the demo follows."""
        plurals = (*LIVING, "kubeadmcontrolplanes", "machinedeployments")
        return ObjectSnapshot({plural: self.list(plural) for plural in plurals})

    def list(self, plural: str) -> list[Json]:
        """Return the objects of a kind."""
        items: list[Json] = self.api.get(self._path(plural))["items"]
        return items

    def get(self, plural: str, name: str) -> Json:
        """Return an object that exists."""
        return self.api.get(self._path(plural, name))

    def find(self, plural: str, name: str) -> Json | None:
        """Return an object, None if it is deleted."""
        return self.api.find(self._path(plural, name))

    def patch(self, plural: str, name: str, patch: Json) -> None:
        """Apply a merge patch."""
        self.api.patch(self._path(plural, name), patch)

    def delete(self, plural: str, name: str) -> None:
        """Request the deletion of an object, which may be deleted already."""
        self.api.delete(self._path(plural, name))

    def _path(self, plural: str, name: str = "") -> str:
        return f"{_BASES[plural]}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")


def condition(obj: Json, type_: str) -> Json:
    """Return a condition of an object, empty if there is none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == type_), {})


def is_control_plane(machine: Json) -> bool:
    """Return whether a Machine belongs to the control plane."""
    return "cluster.x-k8s.io/control-plane" in (machine["metadata"].get("labels") or {})


def is_leaving(obj: Json) -> bool:
    """Return whether an object has a deletion timestamp."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def provider_id(machine: Json) -> str:
    """Return the provider ID of a Machine, empty before it has one."""
    return str(machine.get("spec", {}).get("providerID") or "")


def server_id(machine: Json) -> str:
    """Return the id of a Machine's server, empty before it has one."""
    return provider_id(machine).rpartition("/")[2]
