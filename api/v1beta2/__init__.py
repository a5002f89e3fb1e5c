"""API version v1beta2 of the four contract kinds."""

from __future__ import annotations

from capo.api.v1beta2.identity import OpenStackIdentityReference
from capo.api.v1beta2.openstackcluster import OpenStackCluster, OpenStackClusterSpec, OpenStackClusterStatus
from capo.api.v1beta2.openstackclustertemplate import OpenStackClusterTemplate
from capo.api.v1beta2.openstackmachine import OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus
from capo.api.v1beta2.openstackmachinetemplate import OpenStackMachineTemplate

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
