"""Neutron v2.0: networks, subnets, ports, routers, security groups, floating IPs, trunks, tags, quotas.

Start at `kind` (what the kinds share) and `crud` (their routes); each kind has a module. `internal` is the interface
for Nova and Octavia.
"""

from __future__ import annotations

from capo.simulator.cloud import Cloud, Json
from capo.simulator.keystone.service import project_named
from capo.simulator.neutron import (
    crud,
    extensions,
    floatingip,
    group,
    network,
    port,
    quota,
    router,
    rule,
    service,
    subnet,
    subnetpool,
    trunk,
)
from capo.simulator.neutron.kind import Caller, values_of_post

__all__ = ["extensions", "quota", "service"]

for _kind in (
    network.KIND,
    subnet.KIND,
    subnetpool.KIND,
    port.KIND,
    router.KIND,
    group.KIND,
    rule.KIND,
    floatingip.KIND,
    trunk.KIND,
):
    crud.serve(_kind)


@service.service.seed
def seed(cloud: Cloud) -> None:
    """Create the external network; local processes can listen on all its addresses."""
    admin = Caller(project_named(cloud, "admin"), is_admin=True)
    external: Json = {
        "name": "public",
        "router:external": True,
        "provider:network_type": "flat",
        "provider:physical_network": "public",
    }
    made = network.create(cloud, values_of_post(network.KIND, external, admin), admin)
    within: Json = {
        "name": "public-subnet",
        "network_id": made["id"],
        "ip_version": 4,
        "cidr": cloud.config.external_cidr,
        "enable_dhcp": False,
    }
    subnet.create(cloud, values_of_post(subnet.KIND, within, admin), admin)
