"""The services of the simulated cloud, in one list."""

from __future__ import annotations

from typing import Final

from capo.simulator import (
    cinder,
    cinder_volumes,
    glance,
    keystone,
    keystone_admin,
    keystone_directory,
    keystone_regions,
    neutron,
    nova,
    nova_actions,
    nova_attachments,
    nova_create,
    nova_flavors,
    nova_groups,
    nova_instance_actions,
    nova_keypairs,
    nova_list,
    nova_quota,
    nova_servers,
    nova_tags,
    octavia,
    octavia_balancers,
    octavia_list,
    octavia_listeners,
    octavia_members,
    octavia_monitors,
    octavia_pools,
)
from capo.simulator.cloud import Cloud
from capo.simulator.routing import Service

# In the order of seeding: later services look projects and networks up.
SERVICES: Final[tuple[Service, ...]] = (
    keystone.service,
    neutron.service,
    glance.service,
    cinder.service,
    nova.service,
    octavia.service,
)
# Modules that add routes to a service when they are imported.
ROUTES: Final = (
    cinder_volumes,
    keystone_admin,
    keystone_directory,
    keystone_regions,
    nova_actions,
    nova_attachments,
    nova_create,
    nova_flavors,
    nova_groups,
    nova_keypairs,
    nova_instance_actions,
    nova_list,
    nova_quota,
    nova_servers,
    nova_tags,
    octavia_balancers,
    octavia_list,
    octavia_listeners,
    octavia_members,
    octavia_monitors,
    octavia_pools,
)


def new_cloud(cloud: Cloud | None = None) -> Cloud:
    """Return a cloud with the initial resources of every service."""
    cloud = cloud or Cloud()
    for service in SERVICES:
        for seeder in service.seeders:
            seeder(cloud)
    cloud.journal.take()
    return cloud
