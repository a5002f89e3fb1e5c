"""Which resources of a project are those of a cluster whose objects were lost; pure.

The owner is taken from the stamps of what has the names of the cluster. Names prove nothing alone: two management
clusters may use one project, with clusters of the same name. Then a person has to say which owner is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from capo import names
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack.kinds import KINDS, LOAD_BALANCER, NETWORK, POOL, ROUTER, SECURITY_GROUP, SERVER, ResourceKind
from capo.openstack.load_balancer import Member
from capo.openstack.port import Port
from capo.openstack.server import Server
from capo.operations.adoption.survey import Survey
from capo.operations.errors import OperatorError
from controllers import roles

_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class Part:
    """A resource of an owner."""

    kind: str
    stamp: Stamp
    body: Body


@dataclass(frozen=True)
class FoundServer:
    """A server of the cluster with what belongs to it.

    Args:
        parts: by role, the server included.
        member_owners: owners in the stamps of its members in pools of the API: those of its OpenStackMachine.
        object_name: of its objects, if that is not the name of the server.
    """

    server: Server
    owner: str
    parts: Mapping[str, Part]
    is_control_plane: bool = False
    member_owners: frozenset[str] = frozenset()
    object_name: str = ""

    @property
    def name(self) -> str:
        """The name of its objects."""
        return self.object_name or self.server.name

    @property
    def ports(self) -> list[Body]:
        """The ports, in the order of the spec."""
        found = sorted(int(role.partition("-")[2]) for role, part in self.parts.items() if part.kind == "port")
        return [self.parts[roles.port(index)].body for index in found]


@dataclass(frozen=True)
class FoundCluster:
    """A cluster as its resources show it.

    Args:
        parts: what the OpenStackCluster owns, by role.
        findings: what is left out, and why.
        network_id: of a network of others that it uses; empty if it owns its network.
        subnets: of that network.
        is_by_name: its resources carry no stamps: names alone show that they are the cluster's.
    """

    namespace: str
    name: str
    owner: str
    survey: Survey
    parts: Mapping[str, Part]
    servers: Sequence[FoundServer] = ()
    bastion: FoundServer | None = None
    findings: Sequence[str] = field(default_factory=tuple)
    network_id: str = ""
    subnets: Sequence[Body] = ()
    is_by_name: bool = False

    @property
    def resource_name(self) -> str:
        """``<namespace>-<name>``."""
        return names.cluster_resource_name(self.namespace, self.name)

    def body(self, role: str) -> Body | None:
        """Return the resource of a role, None if there is none."""
        part = self.parts.get(role)
        return part.body if part else None


def find(
    survey: Survey, namespace: str, name: str, *, owner: str | None = None, chosen: Sequence[str] = ()
) -> FoundCluster:
    """Return the cluster.

    Args:
        owner: 13 characters; None: the only one whose resources have the cluster's names.
        chosen: ids of servers that are of the cluster, as a person knows.

    Raises:
        OperatorError: nothing has the cluster's names, several owners have, a role has two resources, or a chosen
            server does not exist.
    """
    refuse_unknown(survey, chosen)
    its_owner = _owner(survey, namespace, name, owner)
    parts = _parts(survey, its_owner)
    # Members of the project can write stamps, too.
    known = {role: part for role, part in parts.items() if roles.is_of_cluster(part.kind, role)}
    found = FoundCluster(namespace, name, its_owner, survey, known)
    servers, findings = _servers(found, frozenset(chosen))
    unknown = [
        f"{part.kind} {part.body['id']} is left out: it has the role {role}, which no {part.kind} of a cluster has"
        for role, part in parts.items()
        if role not in known
    ]
    return arranged(found, servers, [*unknown, *findings])


def arranged(found: FoundCluster, servers: Sequence[FoundServer], findings: Sequence[str]) -> FoundCluster:
    """Return the cluster with its servers: the bastion, and those of machines by name.

    Raises:
        OperatorError: two servers have one name.
    """
    _refuse_twins([each.name for each in servers])
    bastion = next((each for each in servers if each.name == names.bastion(found.name)), None)
    machines = sorted((each for each in servers if each is not bastion), key=lambda each: each.name)
    return replace(found, servers=machines, bastion=bastion, findings=findings)


def refuse_unknown(survey: Survey, chosen: Iterable[str]) -> None:
    """Require that the project has the servers that a person named.

    Raises:
        OperatorError: it lacks one.
    """
    for server_id in chosen:
        if survey.get(SERVER.name, server_id) is None:
            raise OperatorError(f"no server of the project has the id {server_id}")


def refuse_stamped(parts: Iterable[Part]) -> None:
    """Require that no resource that is the cluster's by its name has an owner.

    Raises:
        OperatorError: one has a stamp.
    """
    for part in parts:
        if stamp := KINDS[part.kind].stamp_of(part.body):
            text = f"{part.kind} {part.body['id']} carries the stamp of owner {stamp.owner}"
            raise OperatorError(f"{text}: the cluster was not one of the Go provider alone; adopt it by its stamps")


def _owner(survey: Survey, namespace: str, name: str, wanted: str | None) -> str:
    resource_name = names.cluster_resource_name(namespace, name)
    named = list(_named(survey, resource_name))
    stamps = [(kind, body, kind.stamp_of(body)) for kind, body in named]
    owners: dict[str, list[str]] = {}
    for kind, body, stamp in stamps:
        if stamp is not None:
            owners.setdefault(stamp.owner, []).append(f"{kind.name} {body['id']}")
    if wanted is not None and wanted in owners:
        return wanted
    if wanted is not None:
        raise OperatorError(f"no resource with the names of cluster {namespace}/{name} has the stamp of owner {wanted}")
    if len(owners) > 1:
        shown = "; ".join(f"{owner} ({', '.join(ids)})" for owner, ids in sorted(owners.items()))
        raise OperatorError(
            f"several owners have the names of cluster {namespace}/{name}, choose with --owner: {shown}"
        )
    if not owners:
        raise OperatorError(_nothing(namespace, name, [f"{kind.name} {body['id']}" for kind, body in named]))
    return next(iter(owners))


def _nothing(namespace: str, name: str, named: Sequence[str]) -> str:
    if named:
        shown = ", ".join(named)
        return (
            f"{shown} has the name of cluster {namespace}/{name} without our stamp: only the name tells whose it is; "
            f"if the Go provider created the cluster, repeat this with --from-go-provider"
        )
    return f"no network, router, load balancer or security group has the name of cluster {namespace}/{name}"


def _named(survey: Survey, resource_name: str) -> Iterator[tuple[ResourceKind, Body]]:
    groups = [names.security_group(resource_name, each) for each in (roles.CONTROL_PLANE, roles.WORKER, roles.BASTION)]
    wanted: tuple[tuple[ResourceKind, Sequence[str]], ...] = (
        (NETWORK, [names.network(resource_name)]),
        (ROUTER, [names.network(resource_name)]),
        (LOAD_BALANCER, [names.load_balancer(resource_name)]),
        (SECURITY_GROUP, groups),
    )
    for kind, its_names in wanted:
        yield from ((kind, body) for body in survey.of(kind.name) if body.get("name") in its_names)


def _parts(survey: Survey, owner: str) -> dict[str, Part]:
    """Return what an owner's stamp is on, by role.

    Raises:
        OperatorError: two resources have one role.
    """
    found: dict[str, Part] = {}
    for kind, stamp, body in survey.stamped(owner):
        if stamp.role in found:
            other = found[stamp.role]
            pair = f"{other.kind} {other.body['id']} and {kind} {body['id']}"
            raise OperatorError(f"{pair} both carry the stamp {stamp}: delete the one that is not in use")
        found[stamp.role] = Part(kind, stamp, body)
    return found


def _servers(found: FoundCluster, chosen: Set[str]) -> tuple[list[FoundServer], list[str]]:
    """Return the servers of the cluster, and why others that may be of it are left out."""
    servers, findings = [], []
    for body in found.survey.of(SERVER.name):
        stamp, name = SERVER.stamp_of(body), str(body.get("name") or "")
        ports = [Port(each) for each in found.survey.of("port") if each.get("device_id") == body["id"]]
        is_known = body["id"] in chosen or _is_member(found, name, ports)
        if not (is_known or is_tied(found, ports)):
            findings += _untied(found, body, stamp, ports)
            continue
        if not is_known and (other := other_cluster(found, ports)):
            findings.append(of_other_cluster(body, other))
            continue
        if stamp is None or stamp.role != roles.SERVER:
            findings.append(f"server {body['id']} ({body.get('name')}) is in the cluster's network without our stamp")
            continue
        parts = _parts(found.survey, stamp.owner)
        if why := fault(name, parts):
            findings.append(f"server {body['id']} ({body.get('name')}) is left out: {why}")
            continue
        servers.append(_server(found, Server(body), stamp.owner, parts))
    return servers, findings


def is_tied(found: FoundCluster, ports: Sequence[Port]) -> bool:
    """Return whether ports are in the network, or have a group, that the cluster owns.

    Descriptions name the cluster without its namespace, so they tie nothing.
    """
    network = found.body(roles.NETWORK)
    return _has_group(found, ports) or any(network and each.network_id == network["id"] for each in ports)


def _has_group(found: FoundCluster, ports: Sequence[Port]) -> bool:
    groups = {part.body["id"] for part in found.parts.values() if part.kind == "security_group"}
    return any(groups & set(each.security_groups) for each in ports)


def other_cluster(found: FoundCluster, ports: Sequence[Port]) -> str:
    """Return the other cluster that ports name, if only their network ties them to this one; empty if there is none.

    A cluster may use the network of another one, as ``spec.network``.
    """
    if _has_group(found, ports):
        return ""
    start = names.created_by("")
    texts = [each.description.removeprefix(start) for each in ports if each.description.startswith(start)]
    named = {text.partition(" ")[0] for text in texts}
    return ", ".join(sorted(named - {found.name, found.resource_name}))


def of_other_cluster(body: Body, other: str) -> str:
    """Return the finding for a server whose ports name another cluster."""
    return (
        f"server {body['id']} ({body.get('name')}) is in the cluster's network, and its ports name cluster {other}: "
        f"it is left out; name it with --server if it is this cluster's"
    )


def memberships(found: FoundCluster, server_name: str, ports: Sequence[Port]) -> list[tuple[int, Member]]:
    """Return the members, in the pools that the cluster owns, that are a server, each after the API port of its pool.

    Networks may overlap, so an address alone proves nothing. A member without a subnet needs the server's name.
    """
    places = {(ip.subnet_id, ip.ip_address) for port in ports for ip in port.fixed_ips}
    addresses = {address for _, address in places}
    pools = {roles.port_of_pool(role): part.body["id"] for role, part in found.parts.items() if part.kind == POOL.name}

    def is_of_server(port: int, member: Member) -> bool:
        if subnet_id := member.body.get("subnet_id"):
            return (subnet_id, member.address) in places
        name = names.member(found.resource_name, port, server_name)
        return member.address in addresses and member.body.get("name") == name

    listed = [(port, each) for port, id_ in pools.items() for each in found.survey.members.get(id_, ())]
    return [(port, each) for port, each in listed if is_of_server(port, each)]


def _is_member(found: FoundCluster, server_name: str, ports: Sequence[Port]) -> bool:
    """Return whether a server is a member, with a stamp, of a pool that the cluster owns."""
    members = memberships(found, server_name, ports)
    return any(names.stamp_in(tag) for _, each in members for tag in each.tags)


def _untied(found: FoundCluster, body: Body, stamp: Stamp | None, ports: Sequence[Port]) -> list[str]:
    """Return that a server may be the cluster's: its ports say so, of a cluster of this name in any namespace."""
    is_server = stamp is not None and stamp.role == roles.SERVER
    text = names.created_by(found.name)
    if not is_server or found.body(roles.NETWORK) or not any(port.description.startswith(text) for port in ports):
        return []
    return [f"server {body['id']} ({body.get('name')}) may be of the cluster: name it with --server"]


def is_in_group(found: FoundCluster, parts: Mapping[str, Part], suffix: str) -> bool:
    """Return whether a port of a server has a managed group of the cluster."""
    group = found.body(roles.group(suffix))
    ports = [Port(part.body) for part in parts.values() if part.kind == "port"]
    return group is not None and any(group["id"] in port.security_groups for port in ports)


def fault(name: str, parts: Mapping[str, Part]) -> str:
    """Return why a controller could not adopt a server without a create; empty if it can."""
    if not _OBJECT_NAME.fullmatch(name):
        return "no object can have its name"
    for role, part in parts.items():
        if not roles.is_of_server(part.kind, role):
            return f"{part.kind} {part.body['id']} has the role {role}, which no {part.kind} of a server has"
    ports = {role for role, part in parts.items() if part.kind == "port"}
    missing = [roles.port(index) for index in range(len(ports)) if roles.port(index) not in ports]
    if missing or not ports:
        # Ports are created before the server is searched for.
        return f"{', '.join(missing) or 'each port'} was deleted, and would be created again"
    return ""


def _server(found: FoundCluster, server: Server, owner: str, parts: Mapping[str, Part]) -> FoundServer:
    ports = [Port(part.body) for part in parts.values() if part.kind == "port"]
    members = memberships(found, server.name, ports)
    stamps = [stamp for _, each in members for tag in each.tags if (stamp := names.stamp_in(tag))]
    in_group = is_in_group(found, parts, roles.CONTROL_PLANE)
    owners = frozenset(stamp.owner for stamp in stamps)
    return FoundServer(server, owner, parts, bool(members) or in_group, owners)


def _refuse_twins(all_names: Sequence[str]) -> None:
    twins = sorted({name for name in all_names if all_names.count(name) > 1})
    if twins:
        raise OperatorError(f"several servers of the cluster are named {', '.join(twins)}: an object has one server")
