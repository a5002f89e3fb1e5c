"""All resources of a project, read once, by kind, stamp and id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import extension, load_balancer
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import FLOATING_IP, KINDS, NETWORK, POOL, PORT, ROUTER, SUBNET, TRUNK, ResourceKind
from capo.openstack.load_balancer import LoadBalancer, Member


@dataclass(frozen=True)
class Survey:
    """What one reading of a project showed.

    Args:
        bodies: by kind.
        members: by the id of their pool.
        foreign: subnets of networks of other projects that have ports of this one.
    """

    bodies: Mapping[str, Sequence[Body]]
    members: Mapping[str, Sequence[Member]]
    foreign: Sequence[Body] = ()

    def of(self, kind: str) -> Sequence[Body]:
        """Return all resources of a kind."""
        return self.bodies.get(kind, ())

    def of_all(self, kind: str) -> Sequence[Body]:
        """Return all resources of a kind, subnets also of networks of other projects that have ports of this one."""
        return [*self.of(kind), *(self.foreign if kind == SUBNET.name else ())]

    def get(self, kind: str, resource_id: str | None) -> Body | None:
        """Return a resource, None if the project has none with this id."""
        return next((body for body in self.of(kind) if body["id"] == resource_id), None)

    def named(self, kind: str, wanted: str) -> Sequence[Body]:
        """Return the resource with an id, else those with a name."""
        found = [body for body in self.of(kind) if body["id"] == wanted]
        return found or [body for body in self.of(kind) if body.get("name") == wanted]

    def stamped(self, owner: str) -> Iterator[tuple[str, Stamp, Body]]:
        """Yield kind, stamp and body of everything that an owner's stamp is on."""
        for kind in KINDS.values():
            for body in self.of(kind.name):
                stamp = kind.stamp_of(body)
                if stamp is not None and stamp.owner == owner:
                    yield kind.name, stamp, body


def take(cloud: Cloud, *pool_names: str) -> Survey:
    """Read all resources of a project.

    Args:
        pool_names: prefixes of the names of pools whose members are read, too; else only those with a stamp are.

    Raises:
        CapoError: a list cannot be read as a whole.
    """
    bodies = {kind.name: _list(cloud, kind) for kind in KINDS.values()}
    pools = [
        body["id"]
        for body in bodies[POOL.name]
        if POOL.stamp_of(body) or str(body.get("name") or "").startswith(pool_names)
    ]
    members = {id_: [Member(each) for each in load_balancer.members(cloud, id_)] for id_ in pools}
    own = {body["id"] for body in bodies[NETWORK.name]}
    others = sorted({str(body["network_id"]) for body in bodies[PORT.name]} - own)
    return Survey(bodies, members, [each for id_ in others for each in _subnets_in(cloud, id_)])


def _list(cloud: Cloud, kind: ResourceKind) -> list[Body]:
    if not is_offered(cloud, kind):
        return []
    params = kind.list_params(cloud.project_id)
    bodies = cloud.list_all(kind.service, kind.list_path, kind.key, params=params, microversion=kind.microversion)
    # Octavia lists some that are deleted for a while.
    return [body for body in bodies if LoadBalancer(body).provisioning_status != "DELETED"]


def _subnets_in(cloud: Cloud, network_id: str) -> list[Body]:
    """Return the subnets of a network of others; the project may see none."""
    return cloud.list_all(SUBNET.service, SUBNET.list_path, SUBNET.key, params={"network_id": network_id})


def is_offered(cloud: Cloud, kind: ResourceKind) -> bool:
    """Return whether the cloud has a kind at all."""
    if kind == TRUNK:
        return extension.is_there(cloud, extension.TRUNK)
    if kind in (ROUTER, FLOATING_IP):
        return extension.is_there(cloud, extension.ROUTER)
    return cloud.offers(kind.service)
