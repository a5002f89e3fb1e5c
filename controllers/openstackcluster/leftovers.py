"""What workloads of a cluster left in the cloud, whose it is, and how a condition names it; pure.

The name of the cluster in a resource proves nothing alone: anyone in the project can write it, and many clusters share
``kubernetes``. A load balancer is the cluster's only if it also stands on a network that was created for the cluster.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from capo import names
from capo.json_types import Body
from capo.openstack import cloud_provider
from capo.openstack.cloud_provider import Service
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import LOAD_BALANCER, VOLUME
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.security_group import SecurityGroup
from capo.openstack.volume import Volume

TYPE: Final = "LeftoversGone"
REASON: Final = "LeftoversFound"
MAX_NAMED: Final = 5
"""At most this many of each kind are named in a message; the rest is counted."""
MAX_NAME: Final = 80
"""At most this many characters of the name of a resource are shown: others chose it."""
DELETABLE: Final = ("available", "error", "error_restoring", "error_extending", "error_managing", "error_deleting")
"""States in which Cinder deletes a volume. Source: Block Storage API v3, "Delete a volume"."""


class Whose(Enum):
    """To which cluster a resource belongs."""

    OURS = "left by workloads of the cluster"
    POSSIBLY_OURS = "possibly left by workloads of the cluster, and not deleted"
    OTHERS = "not of this cluster, and not deleted"


@dataclass(frozen=True)
class Owner:
    """The cluster that is being deleted.

    Args:
        name: by which its cloud controller and CSI driver know it.
        network_ids: the networks that were created for it.
        doubt: why the name proves nothing, None if it does.
        is_name_claimed: the name may be that of a cluster of another namespace, which may not exist any more: a user
            chose it, and the credentials are shared, or it begins with another namespace. It finds nothing but what
            stands on the networks of the cluster.
        is_shared: the credentials are shared with other namespaces, whose resources are not shown.
    """

    name: str
    network_ids: Collection[str]
    doubt: str | None = None
    is_name_claimed: bool = False
    is_shared: bool = False


@dataclass(frozen=True)
class Leftover:
    """One resource.

    Args:
        kind: as its service calls it.
        service: the Service for which it was created.
        claim: of a volume.
    """

    kind: str
    id: str
    name: str
    whose: Whose
    service: Service | None = None
    claim: str = ""

    def __str__(self) -> str:
        """Return it as messages name it."""
        name = f" {cut(self.name)!r}" if self.name else ""
        user = f"Service {self.service.namespace}/{self.service.name}" if self.service else ""
        user = f"claim {self.claim}" if self.claim else user
        return f"{self.kind} {self.id}{name}{f' of {cut(user)}' if user else ''}"


@dataclass(frozen=True)
class Leftovers:
    """All that was found, in a stable order."""

    owner: Owner
    balancers: Sequence[Leftover] = ()
    floating_ips: Sequence[Leftover] = ()
    groups: Sequence[Leftover] = ()
    volumes: Sequence[Leftover] = ()

    def __bool__(self) -> bool:
        """Return whether anything was found."""
        return any(self._kinds())

    def _kinds(self) -> Iterator[Sequence[Leftover]]:
        yield from (self.balancers, self.floating_ips, self.groups, self.volumes)

    def without(self, ids: Collection[str]) -> Leftovers:
        """Return the leftovers without some resources."""
        kept = (tuple(each for each in kind if each.id not in ids) for kind in self._kinds())
        return Leftovers(self.owner, *kept)

    def message(self, next_step: str = "") -> str:
        """Return the text of the condition; its length is bounded."""
        texts = [f"{whose.value}: {listed}" for whose in Whose if (listed := self._listed(whose))]
        doubt = f"{self.owner.doubt}, so nothing is deleted" if self.owner.doubt else ""
        return ". ".join(filter(None, [*texts, doubt, next_step]))

    def _listed(self, whose: Whose) -> str:
        return "; ".join(
            text for kind in self._kinds() if (text := _named([each for each in kind if each.whose is whose]))
        )


@dataclass(frozen=True)
class Listed:
    """What the lists have of the project, but for the load balancer of the API."""

    balancers: Iterable[Body] = ()
    floating_ips: Iterable[Body] = ()
    groups: Iterable[Body] = ()
    volumes: Iterable[Body] = ()


def find(owner: Owner, listed: Listed) -> Leftovers:
    """Return what workloads left."""
    balancers = [found for found in map(LoadBalancer, listed.balancers) if _concerns(found, owner)]
    whose = {found.id: whose_load_balancer(found, owner) for found in balancers}
    ports = {found.vip_port_id: whose[found.id] for found in balancers if found.vip_port_id}
    services = {cloud_provider.of_load_balancer(found): whose[found.id] for found in balancers}
    return Leftovers(
        owner,
        _sorted(
            Leftover("load balancer", found.id, found.name, whose[found.id], cloud_provider.of_load_balancer(found))
            for found in balancers
        ),
        _sorted(_floating_ips(owner, listed.floating_ips, ports)),
        _sorted(_groups(owner, listed.groups, services)),
        _sorted(_volumes(owner, listed.volumes)),
    )


def is_own(body: Body, own_id: str | None, owner_id: str) -> bool:
    """Return whether a load balancer is that of the API.

    Args:
        own_id: its id, if it is recorded.
        owner_id: that of our stamps.
    """
    stamp = LOAD_BALANCER.stamp_of(body)
    return body["id"] == own_id or (stamp is not None and stamp.owner == owner_id)


def _concerns(found: LoadBalancer, owner: Owner) -> bool:
    """Return whether a load balancer blocks the deletion of our network, or carries our name elsewhere."""
    if found.provisioning_status == "DELETED":
        return False
    is_named = found.name.startswith(f"{cloud_provider.PREFIX}{owner.name}_") and not owner.is_name_claimed
    return found.vip_network_id in owner.network_ids or is_named


def whose_load_balancer(found: LoadBalancer, owner: Owner) -> Whose:
    """Return whose a load balancer is: ours only if nothing about it names another owner."""
    service = cloud_provider.of_load_balancer(found)
    if service is None or LOAD_BALANCER.stamp_of(found.body) is not None:
        return Whose.OTHERS
    # The controller renames a load balancer, not its description, when it gets another name of the cluster.
    if service.cluster not in (owner.name, *cloud_provider.SHARED_NAMES):
        return Whose.OTHERS
    is_proven = (
        found.name == cloud_provider.load_balancer_name(service, owner.name)
        and found.vip_network_id in owner.network_ids
        and not cloud_provider.is_shared_with_others(found.tags, owner.name)
        and owner.doubt is None
    )
    return Whose.OURS if is_proven else Whose.POSSIBLY_OURS


def _floating_ips(owner: Owner, bodies: Iterable[Body], ports: dict[str, Whose]) -> Iterator[Leftover]:
    for found in map(FloatingIP, bodies):
        service = cloud_provider.of_floating_ip(found)
        is_stamped = names.stamp_in(found.description) is not None
        if found.port_id in ports:
            is_ours = is_floating_ip_of(found, owner.name) and ports[found.port_id] is Whose.OURS
            yield Leftover("floating IP", found.id, found.address, Whose.OURS if is_ours else Whose.OTHERS, service)
        elif owner.is_name_claimed:
            continue
        elif service is not None and service.cluster == owner.name and not is_stamped:
            yield Leftover("floating IP", found.id, found.address, Whose.POSSIBLY_OURS, service)


def is_floating_ip_of(found: FloatingIP, cluster: str) -> bool:
    """Return whether the cloud controller of a cluster created a floating IP."""
    service = cloud_provider.of_floating_ip(found)
    return service is not None and service.cluster == cluster


def _groups(owner: Owner, bodies: Iterable[Body], services: dict[Service | None, Whose]) -> Iterator[Leftover]:
    if owner.is_name_claimed:
        return  # a group stands on no network, and the Service that it names may be one of another cluster
    ours = {(each.namespace, each.name) for each, whose in services.items() if each and whose is Whose.OURS}
    for found in map(SecurityGroup, bodies):
        service = cloud_provider.of_security_group(found)
        if service is None:
            continue
        if service.cluster == owner.name:
            is_ours = (service.namespace, service.name) in ours
            whose = Whose.OURS if is_ours else Whose.POSSIBLY_OURS
            yield Leftover("security group", found.id, found.name, whose, service)
        elif service in services and not owner.is_shared:
            yield Leftover("security group", found.id, found.name, Whose.POSSIBLY_OURS, service)


def _volumes(owner: Owner, bodies: Iterable[Body]) -> Iterator[Leftover]:
    if owner.is_name_claimed:
        return
    shared_names = () if owner.is_shared else cloud_provider.SHARED_NAMES
    for found in map(Volume, bodies):
        cluster = cloud_provider.cluster_of_volume(found)
        is_stamped = VOLUME.stamp_of(found.body) is not None
        if cluster is None or is_stamped or found.server_ids or found.status in ("in-use", "deleting"):
            continue
        if cluster == owner.name or cluster in shared_names:
            is_ours = cluster == owner.name and owner.doubt is None
            whose = Whose.OURS if is_ours else Whose.POSSIBLY_OURS
            yield Leftover("volume", found.id, found.name, whose, claim=cloud_provider.claim_of_volume(found))


def refusal_of_volume(found: Volume, owner: Owner) -> str | None:
    """Return why a volume that a user named is not deleted, None if it may be deleted."""
    refusal = _shared_refusal(found, owner) if owner.is_shared else _refusal(found, owner)
    return refusal if refusal or found.status in DELETABLE else f"it is {found.status}"


def _shared_refusal(found: Volume, owner: Owner) -> str | None:
    """Return the refusal for shared credentials, which says nothing of a volume that may be another namespace's."""
    if (doubt := _doubt(owner)) is not None:
        return doubt
    is_stamped = VOLUME.stamp_of(found.body) is not None
    if is_stamped or cloud_provider.cluster_of_volume(found) != owner.name:
        return f"it is not known to be of cluster {owner.name!r}"
    return "it is attached to a server" if found.server_ids else None


def _refusal(found: Volume, owner: Owner) -> str | None:
    cluster = cloud_provider.cluster_of_volume(found)
    if VOLUME.stamp_of(found.body) is not None:
        return "it belongs to a machine"
    if cluster is None:
        return "no CSI driver created it"
    if cluster != owner.name:
        return f"its driver knows its cluster as {cut(cluster)!r}, and this one is {owner.name!r}"
    if (doubt := _doubt(owner)) is not None:
        return doubt
    return f"it is attached to server {', '.join(sorted(found.server_ids))}" if found.server_ids else None


def _doubt(owner: Owner) -> str | None:
    """Return why the name of a cluster proves nothing for what stands on no network, None if it does."""
    if owner.doubt is not None:
        return owner.doubt
    if owner.is_name_claimed:
        return "with credentials of an OpenStackClusterIdentity the name must begin with the namespace and a dot"
    return None


def _sorted(found: Iterable[Leftover]) -> tuple[Leftover, ...]:
    return tuple(sorted(found, key=lambda each: (each.name, each.id)))


def _named(found: Sequence[Leftover]) -> str:
    more = [f"and {len(found) - MAX_NAMED} more {found[0].kind}s"] if len(found) > MAX_NAMED else []
    return "; ".join([*map(str, found[:MAX_NAMED]), *more])


def is_id(text: str) -> bool:
    """Return whether a text is the id of a resource, as services write it."""
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def cut(text: str) -> str:
    """Return the beginning of a text that others chose."""
    return text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}..."
