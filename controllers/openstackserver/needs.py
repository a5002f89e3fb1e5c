"""What the project's quotas must have room for before a part of a server is created.

The first part asks for the whole server, so that no ports and volumes are created for one that has no room.
"""

from __future__ import annotations

from api.v1alpha1 import OpenStackServer
from capo.errors import CapoError
from capo.openstack import flavor, quota
from capo.openstack.cloud import Cloud
from capo.openstack.quota import Amounts, Needs
from capo.openstack.volume import WantedVolume
from controllers.openstackserver import desired
from controllers.openstackserver.scope import ServerScope


def of_object(cloud: Cloud, server: OpenStackServer) -> Needs:
    """Return what a server needs with all its parts, before its references are resolved."""
    spec = server.spec
    compute = {"instances": 1, **_of_flavor(cloud, id_=spec.flavor_id, name=spec.flavor)}
    volumes = of_volumes(desired.volumes(server, "", ""))
    return {quota.COMPUTE: compute, **volumes, **quota.of_create("port", len(spec.ports))}


def of_server(scope: ServerScope) -> Needs:
    """Return what the server itself needs."""
    return {quota.COMPUTE: {"instances": 1, **_of_flavor(scope.cloud, id_=scope.dependencies.flavor_id)}}


def of_ports(scope: ServerScope, count: int) -> Needs:
    """Return what ports need, and what follows them: volumes and server."""
    volumes = desired.volumes(scope.server, "", scope.context.owner)
    return {**of_server(scope), **of_volumes(volumes), **quota.of_create("port", count)}


def of_volumes_and_server(scope: ServerScope, volumes: dict[str, WantedVolume]) -> Needs:
    """Return what volumes and the server after them need."""
    return {**of_server(scope), **of_volumes(volumes)}


def of_volumes(volumes: dict[str, WantedVolume]) -> Needs:
    """Return what volumes need; nothing if there are none."""
    sizes = {role: each.size_gib for role, each in volumes.items()}
    types = {role: each.volume_type for role, each in volumes.items()}
    return {quota.VOLUME: quota.of_volumes(sizes, types)} if volumes else {}


def _of_flavor(cloud: Cloud, *, id_: str | None, name: str | None = None) -> Amounts:
    """Return cores and memory of the flavor; nothing if it cannot be looked up: the cloud decides then."""
    try:
        found = flavor.get(cloud, id_=id_, name=name)
    except CapoError:
        return {}
    told = {"cores": found.vcpus, "ram": found.ram_mib}
    return {resource: amount for resource, amount in told.items() if amount is not None}
