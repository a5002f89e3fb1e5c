"""The Kubernetes kinds that this provider reads and writes, each with the one version that is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


@dataclass(frozen=True)
class Kind:
    """A kind as the API server names it in paths."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return ``group/version``, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Key(NamedTuple):
    """One object: what the queue holds."""

    kind: Kind
    namespace: str
    name: str


_OURS: Final = "infrastructure.cluster.x-k8s.io"
OPENSTACK_CLUSTER: Final = Kind(_OURS, "v1beta2", "openstackclusters", "OpenStackCluster")
OPENSTACK_CLUSTER_TEMPLATE: Final = Kind(_OURS, "v1beta2", "openstackclustertemplates", "OpenStackClusterTemplate")
OPENSTACK_MACHINE: Final = Kind(_OURS, "v1beta2", "openstackmachines", "OpenStackMachine")
OPENSTACK_MACHINE_TEMPLATE: Final = Kind(_OURS, "v1beta2", "openstackmachinetemplates", "OpenStackMachineTemplate")
OPENSTACK_SERVER: Final = Kind(_OURS, "v1alpha1", "openstackservers", "OpenStackServer")
OPENSTACK_FLOATING_IP_POOL: Final = Kind(_OURS, "v1alpha1", "openstackfloatingippools", "OpenStackFloatingIPPool")
OPENSTACK_CLUSTER_IDENTITY: Final = Kind(
    _OURS, "v1alpha1", "openstackclusteridentities", "OpenStackClusterIdentity", is_namespaced=False
)
CLUSTER: Final = Kind("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster")
MACHINE: Final = Kind("cluster.x-k8s.io", "v1beta2", "machines", "Machine")
IP_ADDRESS_CLAIM: Final = Kind("ipam.cluster.x-k8s.io", "v1beta2", "ipaddressclaims", "IPAddressClaim")
IP_ADDRESS: Final = Kind("ipam.cluster.x-k8s.io", "v1beta2", "ipaddresses", "IPAddress")
ORC_IMAGE: Final = Kind("openstack.k-orc.cloud", "v1alpha1", "images", "Image")
"""An image of the OpenStack Resource Controller, which need not be installed."""
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
