"""The plan for a server that was created by hand and becomes the bastion of a cluster; pure.

It gets a new owner id: the server and what belongs to it alone are stamped when the plan is applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capo import names
from capo.json_types import Body, Json, Object
from capo.kube.kinds import OPENSTACK_SERVER
from capo.ledger import Location
from capo.names import Stamp
from capo.openstack.kinds import KINDS, SERVER
from capo.openstack.port import Port
from capo.openstack.server import Server
from capo.operations.adoption import server_manifest, stamping, unowned
from capo.operations.adoption.plan import Bastion, Place, Plan
from capo.operations.adoption.search import FoundCluster, FoundServer, Part
from capo.operations.adoption.survey import Survey
from capo.operations.errors import OperatorError
from controllers import roles
from controllers.openstackcluster.scope import cluster_name_of


def plan(survey: Survey, cluster: Object, wanted: str, location: Location) -> Plan:
    """Return the plan.

    Args:
        cluster: the OpenStackCluster.
        wanted: id or name of the server.

    Raises:
        OperatorError: the cluster has a bastion, or the server or a part of it belongs to an owner.
    """
    metadata, name = cluster["metadata"], cluster_name_of(cluster)
    if cluster["spec"].get("bastion"):
        raise OperatorError(f"OpenStackCluster {metadata['name']} has spec.bastion: remove it first")
    found = _server(survey, _body(survey, wanted), cluster, names.bastion(name))
    place = FoundCluster(metadata["namespace"], name, "", survey, {})
    obj = server_manifest.openstack_server(found, place, cluster["spec"]["identityRef"])
    # The cluster deletes a bastion that its spec does not have: the label follows last.
    obj["metadata"]["labels"] = {}
    spec = _bastion(found, survey, cluster)
    return Plan(
        location=Place.of(location),
        findings=list(_findings(found, survey, cluster)),
        to_complete=[],
        resources=[
            unowned.planned(part, f"{OPENSTACK_SERVER.kind} {names.bastion(name)}") for part in found.parts.values()
        ],
        objects=[obj],
        bastion=Bastion(cluster=metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"], spec=spec),
    )


def _body(survey: Survey, wanted: str) -> Body:
    """Return the server with an id or a name.

    Raises:
        OperatorError: there is none, or several have the name.
    """
    found = survey.named(SERVER.name, wanted)
    if not found:
        raise OperatorError(f"the project has no server {wanted}")
    if len(found) > 1:
        ids = ", ".join(sorted(body["id"] for body in found))
        raise OperatorError(f"several servers are named {wanted}, name one by its id: {ids}")
    return found[0]


def _server(survey: Survey, body: Body, cluster: Object, name: str) -> FoundServer:
    owner = names.new_owner_id(OPENSTACK_SERVER.kind, cluster["metadata"]["namespace"], name).partition(".")[0]
    server = Server(body)
    parts = {role: Part(kind, Stamp(owner, role), part) for role, kind, part in _parts(survey, server, cluster)}
    unowned.refuse_owned(parts.values())
    if not any(part.kind == "port" for part in parts.values()):
        raise OperatorError(f"server {server.id} has no port of this project: an OpenStackServer needs one")
    return FoundServer(server, owner, parts, object_name=name)


def _parts(survey: Survey, server: Server, cluster: Object) -> Iterator[tuple[str, str, Body]]:
    """Yield role, kind and body of the server and of all that is deleted with it."""
    yield roles.SERVER, SERVER.name, server.body
    for index, port in enumerate(_ports(survey, server, _network_id(cluster))):
        yield roles.port(index), "port", port
        for trunk in survey.of("trunk"):
            if trunk.get("port_id") == port["id"]:
                yield roles.trunk(index), "trunk", trunk
    volumes = _volumes(survey, server)
    root = next((body for body in volumes if body.get("bootable") == "true"), None) if not server.image_id else None
    if root is not None:
        yield roles.volume(None), "volume", root
    for index, body in enumerate(each for each in volumes if each is not root):
        yield roles.volume(index), "volume", body


def _ports(survey: Survey, server: Server, network_id: str) -> list[Body]:
    """Return the ports of a server: those in the cluster's network first, where the floating IP is looked for."""
    found = [body for body in survey.of("port") if body.get("device_id") == server.id]
    return sorted(found, key=lambda body: (body["network_id"] != network_id, Port(body).created_at or "", body["id"]))


def _volumes(survey: Survey, server: Server) -> list[Body]:
    """Return the volumes that Nova deletes with the server; others are the user's."""
    dying = [each.id for each in server.volumes or () if each.body.get("delete_on_termination") is True]
    return [body for id_ in dying if (body := survey.get("volume", id_))]


def _network_id(cluster: Object) -> str:
    network = (cluster.get("status") or {}).get("network") or {}
    return str(network.get("id") or "")


def _floating_ips(found: FoundServer, survey: Survey) -> list[Body]:
    return [body for body in survey.of("floating_ip") if body.get("port_id") == found.ports[0]["id"]]


def _bastion(found: FoundServer, survey: Survey, cluster: Object) -> Json:
    """Return ``spec.bastion``: an edit of one of its fields replaces the server later."""
    address = [{"floatingIP": body["floating_ip_address"]} for body in _floating_ips(found, survey)[:1]]
    is_default = [body["network_id"] for body in found.ports] == [_network_id(cluster)]
    ports = [] if is_default else [{"network": {"id": body["network_id"]}} for body in found.ports]
    spec = {**server_manifest.machine_spec(found), **({"ports": ports} if ports else {})}
    return {"enabled": True, "spec": spec, **(address[0] if address else {})}


def _findings(found: FoundServer, survey: Survey, cluster: Object) -> Iterator[str]:
    server, status = found.server, cluster.get("status") or {}
    if server.status != "ACTIVE":
        yield f"server {server.id} is {server.status}: the bastion is not ready before it is ACTIVE"
    if found.ports[0]["network_id"] != _network_id(cluster):
        yield f"server {server.id} has no port in the network of the cluster: it reaches the nodes only by a router"
    if status.get("externalNetwork") and not _floating_ips(found, survey):
        yield f"server {server.id} has no floating IP: the provider creates one"
    if cluster["spec"].get("managedSecurityGroups") is not None and not status.get("bastionSecurityGroup"):
        yield (
            "the provider creates the security group of the bastion, and rules that admit it to the nodes by SSH: "
            "add it to the port of the server"
        )
    kept = [each.id for each in server.volumes or () if each.body.get("delete_on_termination") is not True]
    yield from (f"volume {id_} is kept when the bastion is deleted, as Nova keeps it now" for id_ in kept)
    yield from _of_stamps(list(found.parts.values()))


def _of_stamps(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if stamping.is_cut(KINDS[part.kind], part.body, part.stamp):
            yield f"the description of {part.kind} {part.body['id']} is shortened to make room for the stamp"
        if part.kind == SERVER.name and len(part.body.get("tags") or ()) >= stamping.MOST_TAGS:
            yield f"server {part.body['id']} has {stamping.MOST_TAGS} tags: remove one, Nova takes no more"
