"""How a user of the cloud changes each kind of thing that the policy of a cluster compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key
from e2e.simulation.objects import NAMESPACE
from e2e.simulation.plan import COMPARED, MTU, TAG

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

CLUSTER_KEY: Final = Key(OPENSTACK_CLUSTER, NAMESPACE, "c")
_LBAAS: Final = "/load-balancer/v2.0/lbaas"
_NETWORK: Final = "/network/v2.0"
_HOLE: Final = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 22}
_CHILDREN: Final = {
    "listenerTimeouts": ("listeners", "listener", "timeout_client_data", 1234),
    "poolAlgorithms": ("pools", "pool", "lb_algorithm", "LEAST_CONNECTIONS"),
    "healthMonitors": ("healthmonitors", "healthmonitor", "delay", 77),
}


@dataclass(frozen=True)
class Changed:
    """A change that a user of the cloud made.

    Args:
        name: of what was changed, one of ``plan.DRIFTING``.
        touched: ids in the paths of requests that would revert it.
        is_reverted: returns whether the cloud is as before.
        kind: of the objects of which one reports it.
        condition: that names it.
        named: a part of its message.
        word: in the paths or bodies of these requests; other requests for the same ids may be sent.
    """

    name: str
    touched: frozenset[str]
    is_reverted: Callable[[], bool]
    kind: Any
    condition: str
    named: str
    word: str = ""


def add_rule(story: PlanRun, group_id: str) -> str:
    """Admit SSH from everywhere to a security group; return the rule."""
    body = {**_HOLE, "port_range_max": 22, "security_group_id": group_id}
    return str(story.user.make("/network/v2.0/security-group-rules", "security_group_rule", **body)["id"])


def change(story: PlanRun, name: str) -> Changed | None:
    """Change a resource of the cluster as a user of the cloud; None if it has none of the kind.

    Raises:
        ValueError: the service refuses.
    """
    return _child(story, name) if name in _CHILDREN else _CHANGES[name](story)


def _rule(story: PlanRun) -> Changed | None:
    status = (story.place.server.get(*CLUSTER_KEY) or {}).get("status") or {}
    group_id = (status.get("workerSecurityGroup") or {}).get("id")
    if group_id not in table(story, "network", "security_groups"):
        return None
    rules = table(story, "network", "security_group_rules")
    present = [each for each in rules if each in story.truth.revertible]
    rule_id = present[0] if present else add_rule(story, group_id)
    story.truth.revertible.add(rule_id)
    touched = frozenset({rule_id})
    return Changed(
        "securityGroupRules", touched, lambda: rule_id not in rules, OPENSTACK_CLUSTER, "SecurityGroupsReady", group_id
    )


def _child(story: PlanRun, field: str) -> Changed | None:
    collection, key, name, value = _CHILDREN[field]
    if field == "poolAlgorithms" and story.plan.shape.octavia == "ovn":  # which refuses all but one
        return None
    found = _recorded(story, collection, name)
    if found is None:
        return None
    resource_id, wanted = found
    children = table(story, "load-balancer", collection)
    story.user.ask("PUT", f"{_LBAAS}/{collection}/{resource_id}", {key: {name: value}})
    return Changed(
        field,
        frozenset({resource_id}),
        lambda: str(children[resource_id][name]) == wanted,
        OPENSTACK_CLUSTER,
        "LoadBalancerReady",
        resource_id,
        name,
    )


def _recorded(story: PlanRun, collection: str, name: str) -> tuple[str, str] | None:
    """Return a child of the load balancer, and the value of a field that is to last."""
    status = (story.place.server.get(*CLUSTER_KEY) or {}).get("status") or {}
    children = table(story, "load-balancer", collection)
    for each in status.get("loadBalancerSettings") or ():
        if each["id"] in children and name in each["settings"]:
            return each["id"], each["settings"][name]
    return None


def _weight(story: PlanRun) -> Changed | None:
    pool = _recorded(story, "pools", "lb_algorithm")
    members = table(story, "load-balancer", "members")
    member = next((each for each in members.values() if pool and each["pool_id"] == pool[0]), None)
    if member is None or pool is None:
        return None
    member_id = member["id"]
    story.user.ask("PUT", f"{_LBAAS}/pools/{pool[0]}/members/{member_id}", {"member": {"weight": 0}})
    return Changed(
        "memberWeights",
        frozenset({member_id}),
        lambda: members[member_id]["weight"] == 1,
        OPENSTACK_MACHINE,
        "APIServerIngressReady",
        pool[0],
    )


def _groups(story: PlanRun) -> Changed | None:
    """Remove all security groups of a machine's port."""
    port = _port(story)
    if port is None or not port["security_groups"]:  # removed before, and not brought back
        return None
    wanted = sorted(port["security_groups"])
    story.user.ask("PUT", f"{_NETWORK}/ports/{port['id']}", {"port": {"security_groups": []}})
    return Changed(
        "portSecurityGroups",
        frozenset({port["id"]}),
        lambda: sorted(port["security_groups"]) == wanted,
        OPENSTACK_SERVER,
        "PortsReady",
        "security groups",
        "security_groups",
    )


def _pairs(story: PlanRun) -> Changed | None:
    """Remove one of the address pairs of a machine's port, unless edits of a template change them at the same time."""
    (wanted,) = [{pair["ipAddress"] for pair in each["allowedAddressPairs"]} for each in COMPARED["ports"]]
    port = None if story.plan.shape.pair_edits else _port(story)
    if port is None or not {pair["ip_address"] for pair in port["allowed_address_pairs"]} & wanted:
        return None
    left = {"allowed_address_pairs": [{"ip_address": min(wanted)}]}
    story.user.ask("PUT", f"{_NETWORK}/ports/{port['id']}", {"port": left})
    return Changed(
        "allowedAddressPairs",
        frozenset({port["id"]}),
        lambda: {pair["ip_address"] for pair in port["allowed_address_pairs"]} == wanted,
        OPENSTACK_SERVER,
        "PortsReady",
        "allowed address pairs",
        "allowed_address_pairs",
    )


def _port(story: PlanRun) -> Json | None:
    ports = table(story, "network", "ports")
    return next((ports[each] for each in _port_ids(story) if each in ports), None)


def _port_ids(story: PlanRun) -> Iterator[str]:
    """Yield the ports of machines whose spec names security groups."""
    for obj in story.place.server.list(OPENSTACK_SERVER):
        (first, *_) = obj["spec"]["ports"]
        if first.get("securityGroups") and not obj["metadata"]["name"].endswith("bastion"):
            records = ((obj.get("status") or {}).get("resources") or {}).get("records") or ()
            yield from (each["id"] for each in records if each["role"] == "port-0")


def _network_tags(story: PlanRun) -> Changed | None:
    """Replace the tags of the managed network by one of the user's."""
    network = _recorded_in_status(story, "network", "networks")
    if network is None or _is_network_given(story):
        return None
    story.user.ask("PUT", f"{_NETWORK}/networks/{network['id']}/tags", {"tags": ["theirs"]})
    return Changed(
        "networkTags",
        frozenset({network["id"]}),
        lambda: set(network["tags"]) == {TAG, "theirs"},
        OPENSTACK_CLUSTER,
        "NetworkReady",
        f"tags of network {network['id']}",
        "tags",
    )


def _mtu(story: PlanRun) -> Changed | None:
    network = _recorded_in_status(story, "network", "networks")
    if network is None or _is_network_given(story):
        return None
    story.user.ask("PUT", f"{_NETWORK}/networks/{network['id']}", {"network": {"mtu": 1300}})
    return Changed(
        "mtu",
        frozenset({network["id"]}),
        lambda: network["mtu"] == MTU,
        OPENSTACK_CLUSTER,
        "NetworkReady",
        f"MTU of network {network['id']}",
        "mtu",
    )


def _is_network_given(story: PlanRun) -> bool:
    return story.plan.shape.is_network_given


def _gateway(story: PlanRun) -> Changed | None:
    """Remove the gateway of the router; Neutron refuses it while floating IPs need it, as those of workloads do."""
    router = _recorded_in_status(story, "router", "routers")
    floating_ips = table(story, "network", "floatingips").values()
    if router is None or story.plan.shape.leftovers or any(each["router_id"] == router["id"] for each in floating_ips):
        return None
    story.user.ask("PUT", f"{_NETWORK}/routers/{router['id']}", {"router": {"external_gateway_info": {}}})
    return Changed(
        "router",
        frozenset({router["id"]}),
        lambda: bool(router["external_gateway_info"]),
        OPENSTACK_CLUSTER,
        "RouterReady",
        f"gateway of router {router['id']}",
        "external_gateway_info",
    )


def _recorded_in_status(story: PlanRun, field: str, collection: str) -> Json | None:
    """Return the network or the router that the status of the cluster names."""
    status = (story.place.server.get(*CLUSTER_KEY) or {}).get("status") or {}
    found: Json | None = table(story, "network", collection).get(str((status.get(field) or {}).get("id")))
    return found


def _server_tags(story: PlanRun) -> Changed | None:
    """Remove the cluster's tag from the server of a machine."""
    server = _server(story)
    if server is None:
        return None
    if TAG in server["tags"]:
        story.user.ask("DELETE", f"/compute/v2.1/servers/{server['id']}/tags/{TAG}")
    return Changed(
        "serverTags",
        frozenset({server["id"]}),
        lambda: TAG in server["tags"],
        OPENSTACK_SERVER,
        "InstanceReady",
        "tags removed",
        "/tags",
    )


def _metadata(story: PlanRun) -> Changed | None:
    """Change a value in the metadata of the server of a machine."""
    server, (wanted,) = _server(story), COMPARED["serverMetadata"]
    if server is None:
        return None
    changed = {"metadata": {wanted["key"]: "no"}}
    story.user.ask("POST", f"/compute/v2.1/servers/{server['id']}/metadata", changed)
    return Changed(
        "serverMetadata",
        frozenset({server["id"]}),
        lambda: server["metadata"].get(wanted["key"]) == wanted["value"],
        OPENSTACK_SERVER,
        "InstanceReady",
        "metadata changed",
        "metadata",
    )


def _server(story: PlanRun) -> Json | None:
    """Return the server of a machine, which is no bastion."""
    servers = table(story, "compute", "servers")
    for obj in story.place.server.list(OPENSTACK_SERVER):
        server: Json | None = servers.get(str((obj.get("status") or {}).get("instanceID")))
        if server and obj["spec"].get("serverMetadata") and server["status"] == "ACTIVE":
            return server
    return None


def table(story: PlanRun, service: str, kind: str) -> dict[str, Any]:
    """Return all resources of a kind in the cloud, by id."""
    return story.simulation.cloud.table(service, kind)


_CHANGES: Final[Mapping[str, Callable[[PlanRun], Changed | None]]] = {
    "securityGroupRules": _rule,
    "memberWeights": _weight,
    "portSecurityGroups": _groups,
    "networkTags": _network_tags,
    "serverTags": _server_tags,
    "mtu": _mtu,
    "router": _gateway,
    "serverMetadata": _metadata,
    "allowedAddressPairs": _pairs,
}
