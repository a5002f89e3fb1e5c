"""API version v1beta1 of the four contract kinds: served for older manifests and clients, stored as v1beta2.

``api.conversion`` converts between the versions. Types that are the same in both exist in ``v1beta2`` alone.
"""

from __future__ import annotations

from api.v1beta1.identity import OpenStackIdentityReference
from api.v1beta1.openstackcluster import OpenStackCluster, OpenStackClusterSpec, OpenStackClusterStatus
from api.v1beta1.openstackclustertemplate import OpenStackClusterTemplate
from api.v1beta1.openstackmachine import OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus
from api.v1beta1.openstackmachinetemplate import OpenStackMachineTemplate

__all__ = [
    "OpenStackCluster",
    "OpenStackClusterSpec",
    "OpenStackClusterStatus",
    "OpenStackClusterTemplate",
    "OpenStackIdentityReference",
    "OpenStackMachine",
    "OpenStackMachineSpec",
    "OpenStackMachineStatus",
    "OpenStackMachineTemplate",
]
