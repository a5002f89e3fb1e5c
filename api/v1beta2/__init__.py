"""API version v1beta2 of the four contract kinds."""

from __future__ import annotations

from api.v1beta2.identity import OpenStackIdentityReference
from api.v1beta2.openstackcluster import OpenStackCluster, OpenStackClusterSpec
from api.v1beta2.openstackclusterstatus import OpenStackClusterStatus
from api.v1beta2.openstackclustertemplate import OpenStackClusterTemplate
from api.v1beta2.openstackmachine import OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus
from api.v1beta2.openstackmachinetemplate import OpenStackMachineTemplate

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
