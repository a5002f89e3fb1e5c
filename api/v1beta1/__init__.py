"""API version v1beta1 of the four contract kinds: served for older manifests and clients, stored as v1beta2.

``capo.api.conversion`` converts between the versions. Types that are the same in both exist in ``v1beta2`` alone.
"""

from __future__ import annotations

from capo.api.v1beta1.identity import OpenStackIdentityReference
from capo.api.v1beta1.openstackcluster import OpenStackCluster, OpenStackClusterSpec, OpenStackClusterStatus
from capo.api.v1beta1.openstackclustertemplate import OpenStackClusterTemplate
from capo.api.v1beta1.openstackmachine import OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus
from capo.api.v1beta1.openstackmachinetemplate import OpenStackMachineTemplate

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
