"""API version v1alpha1: the provider's own kinds."""

from __future__ import annotations

from api.v1alpha1.openstackclusteridentity import OpenStackClusterIdentity, OpenStackClusterIdentitySpec
from api.v1alpha1.openstackfloatingippool import OpenStackFloatingIPPool, OpenStackFloatingIPPoolSpec
from api.v1alpha1.openstackserver import OpenStackServer, OpenStackServerSpec, OpenStackServerStatus

__all__ = [
    "OpenStackClusterIdentity",
    "OpenStackClusterIdentitySpec",
    "OpenStackFloatingIPPool",
    "OpenStackFloatingIPPoolSpec",
    "OpenStackServer",
    "OpenStackServerSpec",
    "OpenStackServerStatus",
]
