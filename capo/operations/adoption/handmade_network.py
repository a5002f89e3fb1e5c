"""The plan for a network that exists, and a load balancer, which become those of a new cluster; pure.

The cluster owns them then, and deletes them one day. It gets a new owner id; a router of the network stays the user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from capo import names
from capo.json_types import Body, Json
from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.ledger import Location
from capo.names import Stamp
from capo.openstack import load_balancer
from capo.openstack.kinds import KINDS
from capo.openstack.load_balancer import PROTOCOL, Listener, LoadBalancer, Pool
from capo.openstack.port import Port
from capo.operations.adoption import balancer_findings, cluster_manifest, stamping, unowned
from capo.operations.adoption.cluster_manifest import Endpoint
from capo.operations.adoption.plan import Place, Plan
from capo.operations.adoption.search import FoundCluster, Part
from capo.operations.adoption.survey import Survey
from capo.operations.errors import ExitStatus, OperatorError
from controllers import roles

_OF_NEUTRON = ("network:", "Octavia")
_OF_BALANCER: Final = Endpoint()


@dataclass(frozen=True)
class Wanted:
    """What becomes a cluster's.

    Args:
        network: id or name.
        load_balancer: id or name; None for none.
        namespace: of the objects.
        name: of the Cluster and the OpenStackCluster.
        endpoint: of the API, where it is not that of the load balancer.
    """

    network: str
    load_balancer: str | None
    namespace: str
    name: str
    endpoint: Endpoint = _OF_BALANCER


def plan(survey: Survey, wanted: Wanted, location: Location, identity: Json) -> Plan:
    """Return the plan.

    Raises:
        OperatorError: a resource is not the only one of its name, belongs to an owner, or no cluster can have it, or
            an endpoint is named and no load balancer.
    """
    if wanted.endpoint != _OF_BALANCER and not wanted.load_balancer:
        text = "--endpoint is that of a load balancer: name it with --load-balancer"
        raise OperatorError(text, status=ExitStatus.USAGE)
    owner = names.new_owner_id(OPENSTACK_CLUSTER.kind, wanted.namespace, wanted.name).partition(".")[0]
    bodies = dict(_of_network(survey, wanted.network))
    if wanted.load_balancer:
        bodies |= _of_load_balancer(survey, wanted.load_balancer)
    parts = {role: Part(kind, Stamp(owner, role), body) for role, (kind, body) in bodies.items()}
    unowned.refuse_owned(parts.values())
    found = FoundCluster(wanted.namespace, wanted.name, owner, survey, parts)
    written = cluster_manifest.network_of_others(found, identity, wanted.endpoint)
    endpoint = written["spec"].get("controlPlaneEndpoint")
    return Plan(
        location=Place.of(location),
        findings=list(_findings(found, endpoint)),
        to_complete=["spec of the OpenStackCluster: managedSecurityGroups, apiServer, bastion, as you want them"],
        resources=[unowned.planned(part, f"{OPENSTACK_CLUSTER.kind} {wanted.name}") for part in parts.values()],
        objects=[written, cluster_manifest.cluster(found, endpoint)],
    )


def _only(survey: Survey, kind: str, wanted: str) -> Body:
    """Return the resource with an id or a name.

    Raises:
        OperatorError: there is none, or several have the name.
    """
    found = survey.named(kind, wanted)
    if not found:
        raise OperatorError(f"the project has no {kind.replace('_', ' ')} {wanted}")
    if len(found) > 1:
        ids = ", ".join(sorted(body["id"] for body in found))
        raise OperatorError(f"several are named {wanted}, name one by its id: {ids}")
    return found[0]


def _of_network(survey: Survey, wanted: str) -> Iterator[tuple[str, tuple[str, Body]]]:
    network = _only(survey, "network", wanted)
    subnets = [body for body in survey.of("subnet") if body["network_id"] == network["id"]]
    versions = [body.get("ip_version") for body in subnets]
    if not subnets or len(set(versions)) < len(versions):
        text = "a cluster has one subnet, or one of each IP version"
        raise OperatorError(f"network {network['id']} has {len(subnets)} subnets of IPv{versions}: {text}")
    yield roles.NETWORK, ("network", network)
    first, *others = sorted(subnets, key=lambda body: str(body.get("ip_version")))
    yield roles.SUBNET, ("subnet", first)
    yield from ((roles.ADDITIONAL_SUBNET, ("subnet", body)) for body in others)


def _of_load_balancer(survey: Survey, wanted: str) -> Mapping[str, tuple[str, Body]]:
    body = _only(survey, "load_balancer", wanted)
    found: dict[str, tuple[str, Body]] = {roles.LOAD_BALANCER: ("load_balancer", body)}
    for each in survey.of("listener"):
        port = Listener(each).protocol_port
        if body["id"] not in load_balancer.parent_ids(each) or port is None:
            continue
        if each.get("protocol") != PROTOCOL:
            raise OperatorError(f"listener {each['id']} has the protocol {each.get('protocol')}, not {PROTOCOL}")
        found[roles.listener(port)] = ("listener", each)
        pool = _pool(survey, each)
        if pool and any(pool is known for _, known in found.values()):
            raise OperatorError(f"several listeners have the pool {pool['id']}: a cluster has one for each port")
        monitor = survey.get("health_monitor", Pool(pool).monitor_id) if pool else None
        found |= {roles.pool(port): ("pool", pool)} if pool else {}
        found |= {roles.monitor(port): ("health_monitor", monitor)} if monitor else {}
    if len(found) == 1:
        raise OperatorError(f"load balancer {body['id']} has no listener: nothing shows the port of the API")
    return found


def _pool(survey: Survey, listener: Body) -> Body | None:
    """Return the pool of a listener.

    Raises:
        OperatorError: it sends members a protocol that no API server speaks, and that cannot be changed.
    """
    pool = survey.get("pool", Listener(listener).default_pool_id)
    if pool and pool.get("protocol") != PROTOCOL:
        raise OperatorError(f"pool {pool['id']} has the protocol {pool.get('protocol')}, not {PROTOCOL}")
    return pool


def _findings(found: FoundCluster, endpoint: Json | None) -> Iterator[str]:
    network = found.body(roles.NETWORK) or {}
    if network.get("shared"):
        yield f"network {network['id']} is shared with other projects"
    users = [Port(body) for body in found.survey.of("port") if body.get("network_id") == network.get("id")]
    others = [each for each in users if not each.device_owner.startswith(_OF_NEUTRON)]
    if others:
        shown = ", ".join(each.id for each in others[:3])
        yield f"network {network['id']} has {len(others)} ports of others, such as {shown}: its deletion waits for them"
    if found.body(roles.LOAD_BALANCER) is None:
        yield "the provider determines the endpoint: it creates a floating IP unless spec.apiServer says otherwise"
    yield from _of_listeners(found)
    yield from balancer_findings.of_others(found)
    yield from balancer_findings.to_change(found, endpoint["port"]) if endpoint else ()
    if balancer_findings.has_cidrs(found):
        yield "allowed CIDRs: the provider adds the addresses of the cluster's subnets, router and bastion"
    for part in found.parts.values():
        if stamping.is_cut(KINDS[part.kind], part.body, part.stamp):
            yield f"the description of {part.kind} {part.body['id']} is shortened to make room for the stamp"


def _of_listeners(found: FoundCluster) -> Iterator[str]:
    balancer = found.body(roles.LOAD_BALANCER)
    if balancer and LoadBalancer(balancer).provisioning_status != "ACTIVE":
        state = balancer.get("provisioning_status")
        yield f"load balancer {balancer['id']} is {state}: Octavia refuses a stamp until it is ACTIVE"
    for part in list(found.parts.values()):
        port = Listener(part.body).protocol_port
        if part.kind != "listener" or port is None:
            continue
        if roles.pool(port) not in found.parts:
            yield f"listener {part.body['id']} has no pool: the provider creates one"
        elif roles.monitor(port) not in found.parts:
            yield f"pool {found.parts[roles.pool(port)].body['id']} has no health monitor: the provider creates one"
