"""The Kubernetes kinds that this provider reads and writes, each with its version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from capo.compact import Shape

METADATA: Final = tuple(
    f"metadata.{name}"
    for name in (
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "labels",
        "finalizers",
        "ownerReferences",
    )
)
"""Fields of metadata that are kept of every object of a kind of which parts are kept."""


@dataclass(frozen=True)
class Kind:
    """A kind as in paths of the API server; in another version it is the same kind.

    Args:
        older: the version to read if the first one is not served; empty for none.
        kept: the fields that the store keeps besides metadata, as paths such as ``spec.paused``; empty: all. Reading
            another one raises. Only for kinds that are never written from what is in the store.
        is_optional: the manager runs without it: what its role does not permit counts as not served.
    """

    group: str
    version: str = field(compare=False)
    plural: str
    kind: str
    is_namespaced: bool = True
    older: str = field(default="", compare=False)
    kept: tuple[str, ...] = field(default=(), compare=False)
    is_optional: bool = field(default=False, compare=False)

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or only the version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def shape(self) -> Shape | None:
        """What the store keeps of an object; None for all of it."""
        return Shape(("apiVersion", "kind", *METADATA, *self.kept)) if self.kept else None

    def in_older_version(self) -> Kind | None:
        """Return the kind in its older version, None if only one version is read."""
        return replace(self, version=self.older, older="") if self.older else None

    def as_read(self, obj: Mapping[str, Any]) -> Kind:
        """Return the kind in the version in which one of its objects was read: in that version it is served."""
        version = str(obj.get("apiVersion") or "").rpartition("/")[2]
        return replace(self, version=version, older="") if version else self


def named_in(namespace: str, kind: Kind, objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return objects as messages in a namespace name them, its own ones first: those of others by their kind alone."""
    keys = [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in objects]
    own = sorted(f"{kind.kind} {namespace}/{name}" for of, name in keys if of == namespace)
    return [*own, *([f"{kind.kind} in another namespace"] if len(own) < len(keys) else [])]


def keys_of(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return objects as logs name them."""
    return sorted(f"{obj['metadata']['namespace']}/{obj['metadata']['name']}" for obj in objects)


class Key(NamedTuple):
    """One object: an item of the queue."""

    kind: Kind
    namespace: str
    name: str


_OURS: Final = "infrastructure.cluster.x-k8s.io"
OPENSTACK_CLUSTER: Final = Kind(_OURS, "v1beta2", "openstackclusters", "OpenStackCluster")
OPENSTACK_CLUSTER_TEMPLATE: Final = Kind(_OURS, "v1beta2", "openstackclustertemplates", "OpenStackClusterTemplate")
OPENSTACK_MACHINE: Final = Kind(_OURS, "v1beta2", "openstackmachines", "OpenStackMachine")
OPENSTACK_MACHINE_TEMPLATE: Final = Kind(
    _OURS, "v1beta2", "openstackmachinetemplates", "OpenStackMachineTemplate", is_optional=True
)
OPENSTACK_SERVER: Final = Kind(_OURS, "v1alpha1", "openstackservers", "OpenStackServer")
OPENSTACK_FLOATING_IP_POOL: Final = Kind(_OURS, "v1alpha1", "openstackfloatingippools", "OpenStackFloatingIPPool")
OPENSTACK_CLUSTER_IDENTITY: Final = Kind(
    _OURS, "v1alpha1", "openstackclusteridentities", "OpenStackClusterIdentity", is_namespaced=False
)
CLUSTER: Final = Kind(
    "cluster.x-k8s.io",
    "v1beta2",
    "clusters",
    "Cluster",
    older="v1beta1",
    kept=(
        "metadata.annotations",
        "spec.paused",
        "spec.controlPlaneRef",
        "spec.controlPlaneEndpoint",
        "spec.infrastructureRef",
        "spec.topology.class",
        "spec.topology.classRef",
        "spec.topology.version",
        "status.initialization",
        "status.infrastructureReady",
    ),
)
MACHINE: Final = Kind(
    "cluster.x-k8s.io",
    "v1beta2",
    "machines",
    "Machine",
    older="v1beta1",
    kept=("spec.bootstrap.dataSecretName", "spec.failureDomain", "spec.infrastructureRef"),
)
"""Cluster API up to 1.10 serves only v1beta1; ``capo.contract`` reads both."""
_TEMPLATE_PARTS: Final = (
    "spec.template.spec.infrastructureRef",
    "spec.template.spec.failureDomain",
    "spec.template.infrastructureRef",
    "spec.machineTemplate.spec.infrastructureRef",
    "spec.machineTemplate.infrastructureRef",
)
"""Where objects of different kinds and versions refer to a template: each place is read of all of them."""
MACHINE_DEPLOYMENT: Final = Kind(
    "cluster.x-k8s.io",
    "v1beta2",
    "machinedeployments",
    "MachineDeployment",
    older="v1beta1",
    kept=_TEMPLATE_PARTS,
    is_optional=True,
)
MACHINE_SET: Final = Kind(
    "cluster.x-k8s.io",
    "v1beta2",
    "machinesets",
    "MachineSet",
    older="v1beta1",
    kept=_TEMPLATE_PARTS,
    is_optional=True,
)
KUBEADM_CONTROL_PLANE: Final = Kind(
    "controlplane.cluster.x-k8s.io",
    "v1beta2",
    "kubeadmcontrolplanes",
    "KubeadmControlPlane",
    older="v1beta1",
    kept=_TEMPLATE_PARTS,
    is_optional=True,
)
"""What refers to templates: nothing but the reference and the zone is kept of it."""
IP_ADDRESS_CLAIM: Final = Kind("ipam.cluster.x-k8s.io", "v1beta2", "ipaddressclaims", "IPAddressClaim", older="v1beta1")
IP_ADDRESS: Final = Kind("ipam.cluster.x-k8s.io", "v1beta2", "ipaddresses", "IPAddress", older="v1beta1")
"""Written in the version in which they are served, see :meth:`Kind.as_read`."""
ORC_IMAGE: Final = Kind("openstack.k-orc.cloud", "v1alpha1", "images", "Image")
"""An image of the OpenStack Resource Controller, which is optional."""
SECRET: Final = Kind("", "v1", "secrets", "Secret")
NAMESPACE: Final = Kind("", "v1", "namespaces", "Namespace", is_namespaced=False)
LEASE: Final = Kind("coordination.k8s.io", "v1", "leases", "Lease")
CRD: Final = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False
)

OURS: Final = (
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_TEMPLATE,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_CLUSTER_IDENTITY,
)
"""The kinds that the provider defines."""
