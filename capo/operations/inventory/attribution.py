"""To whom each resource of a project belongs, and why: by stamp, record, name, mark, or as a part of another; pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from capo.openstack import cloud_provider
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.port import Port
from capo.openstack.security_group import SecurityGroup
from capo.openstack.volume import Volume
from capo.operations.inventory.resource import MEMBER, Resource
from capo.operations.owners import ClusterName, Owner
from controllers import roles
from controllers.openstackcluster import vip_ports

_DESCRIPTION: Final = re.compile(r"Created by cluster-api-provider-openstack cluster (\S+)(?: \[capo:.*\])?")
_PREFIX: Final = "k8s-clusterapi-cluster-"
_GROUP_PREFIX: Final = "k8s-cluster-"
_SUFFIXES: Final = (roles.CONTROL_PLANE, roles.WORKER, roles.BASTION)
_BALANCER_KINDS: Final = ("load_balancer", "listener", "pool", "health_monitor", MEMBER)
_NETWORK_KINDS: Final = ("network", "subnet", "router")
_DEPTH: Final = 3
_ADDITIONAL: Final = "-additional"
_DHCP: Final = ("network:dhcp", "network:distributed", "network:ha_router_replicated_interface")


class Basis(Enum):
    """Why a resource belongs to an owner or to a cluster."""

    STAMP = "stamp"
    RECORD = "record"
    NAME = "name"
    WORKLOAD = "workload"
    PART = "part"
    NONE = ""

    @property
    def meaning(self) -> str:
        """Return the sentence of the documentation."""
        return _MEANINGS[self]


_MEANINGS: Final = {
    Basis.STAMP: "it carries the owner's stamp",
    Basis.RECORD: "the status of the object names it; it carries no stamp",
    Basis.NAME: "it has the name or the description that the Go provider gives to resources of the cluster",
    Basis.WORKLOAD: "the cloud controller or the CSI driver of the cluster marked it, or what it is a part of",
    Basis.PART: "it is a part of, or attached to, a resource that belongs to the owner or cluster",
    Basis.NONE: "nothing shows whose it is",
}


@dataclass(frozen=True)
class Attribution:
    """A resource and to whom it belongs.

    Args:
        owner_id: in its stamp; empty without one.
        owner: the object; None if no given management cluster has it, or if it belongs to a cluster as a whole.
        cluster: None if it is not known.
        role: in its stamp; without one what its service calls its use.
    """

    resource: Resource
    basis: Basis = Basis.NONE
    owner_id: str = ""
    owner: Owner | None = None
    cluster: ClusterName | None = None
    role: str = ""

    @property
    def is_known(self) -> bool:
        """Whether an object of a management cluster, or a cluster that has one, owns it."""
        return self.owner is not None or bool(self.cluster and self.cluster.namespace)


def attribute(resources: Sequence[Resource], owners: Sequence[Owner]) -> list[Attribution]:
    """Return to whom each of these resources belongs, in the same order."""
    return _Attributor(resources, owners).all()


class _Attributor:
    def __init__(self, resources: Sequence[Resource], owners: Sequence[Owner]) -> None:
        self._resources = resources
        self._owner_of_id = {each.owner: each for each in owners if each.owner}
        self._owner_of_record = {key: each for each in owners for key in each.recorded}
        self._known = {each.cluster.resource_name: each.cluster for each in owners if each.cluster}
        self._named: dict[str, list[ClusterName]] = {}
        for each in self._known.values():
            self._named.setdefault(each.name, []).append(each)
        self._of_workloads = {each.workloads: each.cluster for each in owners if each.workloads}
        self._ports_of = _ports_of_servers(resources)
        self._networks = {each.key: cluster_in(each) for each in resources if each.kind == "network"}
        self._cluster_of_id = self._clusters_of_ids()
        self._done: dict[tuple[str, str, str], Attribution] = {}

    def all(self) -> list[Attribution]:
        for each in self._resources:
            self._done[each.key] = self._of_itself(each)
        self._adopt_parts()
        for each in self._resources:
            if self._done[each.key].basis is Basis.NONE and (found := self._by_name(each)):
                self._done[each.key] = found
        self._adopt_parts()
        return [self._done[each.key] for each in self._resources]

    def _clusters_of_ids(self) -> dict[str, ClusterName]:
        """Return the cluster of each owner id that no object has: most of its resources name it, a server does not."""
        named: dict[str, Counter[str]] = {}
        for each in self._resources:
            if each.stamp and (name := self._name_in(each)):
                named.setdefault(each.stamp.owner, Counter())[name] += 1
        return {owner: self._cluster(counted.most_common(1)[0][0]) for owner, counted in named.items()}

    def _name_in(self, resource: Resource) -> str | None:
        """Return the cluster in a name or description; ports name it without its namespace, which a network has."""
        name = cluster_in(resource)
        if name is None or resource.kind != "port":
            return name
        whole = self._networks.get((resource.location, "network", Port(resource.body).network_id))
        return whole if whole and whole.endswith(f"-{name}") else name

    def _cluster(self, resource_name: str) -> ClusterName:
        if known := self._known.get(resource_name):
            return known
        of_name = self._named.get(resource_name, ())
        return of_name[0] if len(of_name) == 1 else ClusterName("", resource_name)

    def _of_itself(self, resource: Resource) -> Attribution:
        for find in (self._by_stamp, self._by_record, self._by_mark):
            if found := find(resource):
                return found
        # A port on a known server belongs to the object of the server, whatever cluster its description names.
        return (None if resource.kind == "port" else self._by_name(resource)) or self._unknown(resource)

    def _unknown(self, resource: Resource) -> Attribution:
        return Attribution(resource, role=Port(resource.body).device_owner)

    def _by_stamp(self, resource: Resource) -> Attribution | None:
        stamp = resource.stamp
        if stamp is None:
            return None
        owner = self._owner_of_id.get(stamp.owner)
        cluster = owner.cluster if owner else self._cluster_of_id.get(stamp.owner)
        return Attribution(resource, Basis.STAMP, stamp.owner, owner, cluster, stamp.role)

    def _by_record(self, resource: Resource) -> Attribution | None:
        key = (resource.kind, resource.id)
        owner = self._owner_of_record.get(key)
        if owner is None:
            return None
        return Attribution(resource, Basis.RECORD, owner.owner, owner, owner.cluster, owner.recorded[key])

    def _by_name(self, resource: Resource) -> Attribution | None:
        name = self._name_in(resource)
        return Attribution(resource, Basis.NAME, cluster=self._cluster(name)) if name else None

    def _by_mark(self, resource: Resource) -> Attribution | None:
        marked = workload_of(resource)
        if marked is None or marked in cloud_provider.SHARED_NAMES:
            return None
        cluster = self._of_workloads.get(marked) or self._of_mark(marked)
        return Attribution(resource, Basis.WORKLOAD, cluster=cluster, role="workload")

    def _of_mark(self, marked: str) -> ClusterName:
        """Return the cluster of a mark; with a dot it is that of ``unique_name``, which no object confirms."""
        return self._cluster(marked.replace(".", "-", 1))

    def _adopt_parts(self) -> None:
        """Attribute parts, and parts of parts, as the floating IP of the port of a load balancer."""
        for _ in range(_DEPTH):
            for each in self._resources:
                self._adopt(each)

    def _adopt(self, resource: Resource) -> None:
        mine = self._done[resource.key]
        if mine.basis is not Basis.NONE and not (mine.basis is Basis.STAMP and mine.cluster is None):
            return
        for key in (*_wholes(resource), *self._ports_of.get(resource.key, ())):
            whole = self._done.get((resource.location, *key))
            if whole is not None and whole.basis is not Basis.NONE and _may_be_part(resource, whole.resource):
                self._done[resource.key] = _as_part(mine, whole)
                return


def _as_part(mine: Attribution, whole: Attribution) -> Attribution:
    if mine.basis is Basis.STAMP:
        return replace(mine, cluster=whole.cluster)
    if workload_of(mine.resource) is not None:
        return replace(mine, basis=Basis.WORKLOAD, cluster=whole.cluster, role="workload")
    if whole.basis is Basis.WORKLOAD:
        return replace(mine, basis=Basis.WORKLOAD, cluster=whole.cluster)
    return replace(mine, basis=Basis.PART, owner=whole.owner, cluster=whole.cluster, owner_id=whole.owner_id)


def cluster_in(resource: Resource) -> str | None:
    """Return the resource name of the cluster in a description or a name, as both providers write them."""
    if found := _DESCRIPTION.fullmatch(resource.description):
        return found[1]
    return _in_name(resource)


def _in_name(resource: Resource) -> str | None:
    name = resource.name
    if resource.kind == "security_group":
        cluster, _, suffix = name.removeprefix(_GROUP_PREFIX).rpartition("-secgroup-")
        return cluster if name.startswith(_GROUP_PREFIX) and cluster and suffix in _SUFFIXES else None
    if not name.startswith(_PREFIX):
        return None
    rest = name.removeprefix(_PREFIX).partition(" ")[0]
    if resource.kind in _BALANCER_KINDS:
        return rest.rpartition("-kubeapi")[0] or None
    return (rest.removesuffix(_ADDITIONAL) or None) if resource.kind in _NETWORK_KINDS else None


def workload_of(resource: Resource) -> str | None:
    """Return the cluster in the mark of a cloud controller or a CSI driver, may be empty; None without a mark."""
    found = _MARKS.get(resource.kind)
    return found(resource) if found and resource.stamp is None else None


def _of_service(parse: Callable[[Resource], cloud_provider.Service | None]) -> Callable[[Resource], str | None]:
    def cluster(resource: Resource) -> str | None:
        service = parse(resource)
        return service.cluster if service else None

    return cluster


_MARKS: Final[Mapping[str, Callable[[Resource], str | None]]] = {
    "load_balancer": _of_service(lambda each: cloud_provider.of_load_balancer(LoadBalancer(each.body))),
    "floating_ip": _of_service(lambda each: cloud_provider.of_floating_ip(FloatingIP(each.body))),
    "security_group": _of_service(lambda each: cloud_provider.of_security_group(SecurityGroup(each.body))),
    "volume": lambda each: cloud_provider.cluster_of_volume(Volume(each.body)),
}


def _wholes(resource: Resource) -> Iterable[tuple[str, str]]:
    """Return kind and id of what a resource is a part of, or stands on."""
    found = _WHOLES.get(resource.kind)
    return found(resource) if found else ()


def _of_port(resource: Resource) -> list[tuple[str, str]]:
    port = Port(resource.body)
    if balancer_id := vip_ports.load_balancer_id(port):
        return [("load_balancer", balancer_id)]
    if port.device_owner in _DHCP:
        return [("network", port.network_id)]
    return [("server", port.device_id), ("router", port.device_id)]


def _ports_of_servers(resources: Sequence[Resource]) -> dict[tuple[str, str, str], list[tuple[str, str]]]:
    """Return the ports of each server: those of the Go provider name the cluster, its servers do not."""
    found: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for each in resources:
        if each.kind == "port" and (device_id := Port(each.body).device_id):
            found.setdefault((each.location, "server", device_id), []).append(("port", each.id))
    return found


def _of_load_balancer(resource: Resource) -> list[tuple[str, str]]:
    return [("network", LoadBalancer(resource.body).vip_network_id or "")]


def _of_child(resource: Resource) -> list[tuple[str, str]]:
    parents = resource.body.get("loadbalancers") or resource.body.get("pools") or ()
    kind = "load_balancer" if resource.body.get("loadbalancers") else "pool"
    return [(kind, str(each.get("id"))) for each in parents]


_WHOLES: Final[Mapping[str, Callable[[Resource], Iterable[tuple[str, str]]]]] = {
    "port": _of_port,
    "load_balancer": _of_load_balancer,
    "floating_ip": lambda each: [("port", FloatingIP(each.body).port_id or "")],
    "volume": lambda each: [("server", server_id) for server_id in sorted(Volume(each.body).server_ids)],
    "listener": _of_child,
    "pool": _of_child,
    "health_monitor": _of_child,
    MEMBER: lambda each: [("pool", str(each.body["pool_id"]))],
    "trunk": lambda each: [("port", str(each.body.get("port_id")))],
}


def _may_be_part(resource: Resource, whole: Resource) -> bool:
    """Return whether standing on a resource of a cluster is enough to belong to it.

    A user may place a load balancer on the network of a cluster, attach a volume to its server, or lead a floating IP
    there: these belong to the cluster only with a mark, or as a volume that has the server's name.
    """
    if resource.kind == "volume":
        return workload_of(resource) is not None or resource.name.startswith(f"{whole.name}-")
    if resource.kind in ("load_balancer", "floating_ip"):
        return workload_of(resource) is not None
    return True
