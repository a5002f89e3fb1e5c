"""The services of the simulated cloud, in one list; each registers its routes when its package is imported."""

from __future__ import annotations

from typing import Final

from capo.simulator import cinder, glance, keystone, neutron, nova, octavia
from capo.simulator.cloud import Cloud
from capo.simulator.routing import Service

# In the order of seeding: later services look projects and networks up.
SERVICES: Final[tuple[Service, ...]] = tuple(
    package.service.service for package in (keystone, neutron, glance, cinder, nova, octavia)
)


def new_cloud(cloud: Cloud | None = None) -> Cloud:
    """Return a cloud with the initial resources of every service."""
    cloud = cloud or Cloud()
    for service in SERVICES:
        for seeder in service.seeders:
            seeder(cloud)
    cloud.journal.take()
    return cloud
