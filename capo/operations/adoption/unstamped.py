"""Which resources of a project are those of a lost cluster that only the Go provider managed; pure.

It marks resources by names and descriptions alone. Names prove nothing, so a person asks for this, and reviews the
plan; what is found is what a takeover would adopt, by the same names. Each name has to be that of one resource without
a stamp. Servers carry no mark of a cluster: a server is of the cluster if it uses its network or one of its groups, if
it is a member of its pools, or if a person names it; its ports have to be named after it.
Source: docs/explanation/go-provider.md, G-1 and G-7 to G-25.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from capo import names
from capo.json_types import Body
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from capo.names import Stamp
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.kinds import KINDS
from capo.openstack.load_balancer import Listener, LoadBalancer, parent_ids
from capo.openstack.port import Port
from capo.openstack.server import Server
from capo.operations.adoption import search
from capo.operations.adoption.search import FoundCluster, FoundServer, Part
from capo.operations.adoption.survey import Survey
from capo.operations.errors import OperatorError
from controllers import roles

_GROUPS: Final = (roles.CONTROL_PLANE, roles.WORKER, roles.BASTION)


def find(survey: Survey, namespace: str, name: str, *, chosen: Sequence[str] = ()) -> FoundCluster:
    """Return the cluster, with new owner ids.

    Args:
        chosen: ids of servers that are of the cluster, as a person knows.

    Raises:
        OperatorError: nothing has the cluster's names, a resource with one of them is not the only one or has an
            owner, or a chosen server does not exist.
    """
    search.refuse_unknown(survey, chosen)
    owner = _new_owner(OPENSTACK_CLUSTER.kind, namespace, name)
    parts = {
        role: Part(body=body, kind=kind, stamp=Stamp(owner, role))
        for role, kind, body in _parts(survey, namespace, name)
    }
    if not parts:
        raise OperatorError(f"no resource has a name that the Go provider gives to cluster {namespace}/{name}")
    search.refuse_stamped(parts.values())
    found = FoundCluster(namespace, name, owner, survey, parts, is_by_name=True)
    servers, findings = _servers(found, frozenset(chosen))
    return _with_addresses(search.arranged(found, servers, findings))


def _new_owner(kind: str, namespace: str, name: str) -> str:
    return names.new_owner_id(kind, namespace, name).partition(".")[0]


# -- of the cluster --------------------------------------------------------------------------------------------------


def _parts(survey: Survey, namespace: str, name: str) -> Iterator[tuple[str, str, Body]]:
    """Yield role, kind and body of what the OpenStackCluster owns, except for floating IPs."""
    resource_name = names.cluster_resource_name(namespace, name)
    network_name = names.network(resource_name)
    if network := _only(survey, "network", network_name):
        yield roles.NETWORK, "network", network
        subnets = [body for body in survey.of("subnet") if body["network_id"] == network["id"]]
        # The Go provider gives both one name; others may have been added by hand.
        subnets = [body for body in subnets if body.get("name") == network_name] or subnets
        if subnet := _one(subnets, f"subnet of network {network['id']}"):
            yield roles.SUBNET, "subnet", subnet
        if router := _only(survey, "router", network_name):
            yield roles.ROUTER, "router", router
    for suffix in _GROUPS:
        if group := _only(survey, "security_group", names.security_group(resource_name, suffix)):
            yield roles.group(suffix), "security_group", group
    if balancer := _only(survey, "load_balancer", names.load_balancer(resource_name)):
        yield roles.LOAD_BALANCER, "load_balancer", balancer
        yield from _children(survey, balancer, resource_name)


def _children(survey: Survey, balancer: Body, resource_name: str) -> Iterator[tuple[str, str, Body]]:
    for body in survey.of("listener"):
        port = Listener(body).protocol_port
        is_named = port is not None and body.get("name") == names.load_balancer_child(resource_name, port)
        if port is None or not is_named or balancer["id"] not in parent_ids(body):
            continue
        yield roles.listener(port), "listener", body
        pool = survey.get("pool", Listener(body).default_pool_id)
        if pool is None or pool.get("name") != body["name"]:
            continue
        yield roles.pool(port), "pool", pool
        monitor = survey.get("health_monitor", pool.get("healthmonitor_id"))
        if monitor is not None and monitor.get("name") == body["name"]:
            yield roles.monitor(port), "health_monitor", monitor


def _only(survey: Survey, kind: str, name: str) -> Body | None:
    return _one(
        [body for body in survey.of(kind) if body.get("name") == name], f"{kind.replace('_', ' ')} named {name}"
    )


def _one(bodies: Sequence[Body], what: str) -> Body | None:
    """Return the only resource, None if there is none.

    Raises:
        OperatorError: there are several, and names do not show which one is the cluster's.
    """
    if len(bodies) > 1:
        ids = ", ".join(sorted(body["id"] for body in bodies))
        raise OperatorError(f"there is more than one {what}: {ids}; rename or delete what is not the cluster's")
    return bodies[0] if bodies else None


def _with_addresses(found: FoundCluster) -> FoundCluster:
    """Add the floating IPs that the Go provider created: all have one description, so the port decides."""
    text = names.created_by(found.resource_name)
    ours = [body for body in found.survey.of("floating_ip") if FloatingIP(body).description == text]
    balancer = found.body(roles.LOAD_BALANCER)
    servers = [each for each in found.servers if each.is_control_plane] if balancer is None else []
    api = {LoadBalancer(balancer).vip_port_id} if balancer else {port["id"] for each in servers for port in each.ports}
    bastion = {port["id"] for port in found.bastion.ports} if found.bastion else set[str]()
    parts = dict(found.parts)
    for role, port_ids in ((roles.API_FLOATING_IP, api), (roles.BASTION_FLOATING_IP, bastion)):
        at_ports = [body for body in ours if body.get("port_id") in port_ids]
        if body := _one(at_ports, f"floating IP of the cluster at {role.removeprefix('fip-')}"):
            parts[role] = Part("floating_ip", Stamp(found.owner, role), body)
    left = {body["id"] for body in ours} - {part.body["id"] for part in parts.values()}
    texts = [
        f"floating IP {id_} has the description of the cluster and is neither at its API nor at its bastion: "
        f"it is left out"
        for id_ in sorted(left)
    ]
    search.refuse_stamped(parts.values())
    return replace(found, parts=parts, findings=[*found.findings, *texts])


# -- of servers ------------------------------------------------------------------------------------------------------


def _servers(found: FoundCluster, chosen: frozenset[str]) -> tuple[list[FoundServer], list[str]]:
    """Return the servers of the cluster, and why others that may be of it are left out."""
    servers, findings = [], []
    for body in found.survey.of("server"):
        server = Server(body)
        ports = [each for each in found.survey.of("port") if each.get("device_id") == server.id]
        views = [Port(each) for each in ports]
        is_member = _is_member(found, server.name, views)
        is_known = is_member or server.id in chosen
        if not (is_known or search.is_tied(found, views)):
            if any(each.get("description") == names.created_by(found.name) for each in ports):
                findings.append(f"server {server.id} ({server.name}) may be of the cluster: name it with --server")
            continue
        if not is_known and (other := search.other_cluster(found, views)):
            findings.append(search.of_other_cluster(body, other))
            continue
        server_owner = _new_owner(OPENSTACK_SERVER.kind, found.namespace, server.name)
        bodies = {role: (kind, part) for role, kind, part in _parts_of(found.survey, server, ports)}
        parts = {role: Part(kind, Stamp(server_owner, role), part) for role, (kind, part) in bodies.items()}
        if fault := _fault(server, parts, ports):
            findings.append(f"server {server.id} ({server.name}) is left out: {fault}")
            continue
        findings += _others(server, parts, ports)
        machine = _new_owner(OPENSTACK_MACHINE.kind, found.namespace, server.name)
        is_control_plane = is_member or search.is_in_group(found, parts, roles.CONTROL_PLANE)
        servers.append(FoundServer(server, server_owner, parts, is_control_plane, frozenset({machine})))
    return servers, findings


def _is_member(found: FoundCluster, server_name: str, ports: Sequence[Port]) -> bool:
    """Return whether a server is a member of a pool of the API, by its address and by the name of its machine."""
    members = search.memberships(found, server_name, ports)
    return any(each.body.get("name") == names.member(found.resource_name, port, server_name) for port, each in members)


def _parts_of(survey: Survey, server: Server, ports: Sequence[Body]) -> Iterator[tuple[str, str, Body]]:
    """Yield role, kind and body of the server and of what is named after it."""
    yield roles.SERVER, "server", server.body
    for index, port in _numbered(server.name, ports):
        yield roles.port(index), "port", port
        for trunk in survey.of("trunk"):
            if trunk.get("port_id") == port["id"] and trunk.get("name") == port["name"]:
                yield roles.trunk(index), "trunk", trunk
    dying = [each.id for each in server.volumes or () if each.is_deleted_with_server]
    volumes = [body for id_ in dying if (body := survey.get("volume", id_))]
    root = names.volume(server.name, "root")
    yield from ((roles.volume(None), "volume", body) for body in volumes if body.get("name") == root)
    own = [body for body in volumes if _is_of(server.name, body) and body["name"] != root]
    yield from ((roles.volume(index), "volume", body) for index, body in enumerate(own))


def _is_of(server_name: str, body: Body) -> bool:
    return str(body.get("name") or "").startswith(f"{server_name}-")


def _numbered(server_name: str, ports: Sequence[Body]) -> Iterator[tuple[int, Body]]:
    """Yield the ports of the spec with their places: a number in a name is the place, other suffixes fill the gaps."""
    own = sorted((body for body in ports if _is_of(server_name, body)), key=lambda body: Port(body).created_at or "")
    suffixes = {body["id"]: body["name"].removeprefix(f"{server_name}-") for body in own}
    placed = {int(suffix): body for body in own if (suffix := suffixes[body["id"]]).isdecimal()}
    free = (index for index in range(len(own)) if index not in placed)
    named = [body for body in own if not suffixes[body["id"]].isdecimal()]
    yield from sorted({**placed, **dict(zip(free, named, strict=False))}.items())


def _fault(server: Server, parts: Mapping[str, Part], ports: Sequence[Body]) -> str:
    """Return why a takeover could not adopt a server without a create; empty if it can."""
    stamped = [f"{part.kind} {part.body['id']}" for part in parts.values() if KINDS[part.kind].stamp_of(part.body)]
    if stamped:
        return f"{', '.join(stamped)} has an owner"
    if ports and not any(part.kind == "port" for part in parts.values()):
        return "none of its ports is named after it, as those of the Go provider are"
    if server.volumes is None:
        return "its Nova cell is down, so its volumes are not known"
    return search.fault(server.name, parts)


def _others(server: Server, parts: Mapping[str, Part], ports: Sequence[Body]) -> Iterator[str]:
    """Yield what of a server is not named after it, and so is not the object's."""
    known = {part.body["id"] for part in parts.values()}
    for body in ports:
        if body["id"] not in known:
            yield f"port {body['id']} of server {server.name} is not named after it: it is left alone"
