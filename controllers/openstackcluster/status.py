"""Status, conditions and endpoint of an OpenStackCluster from the results of a reconcile; pure.

Source: docs/explanation/go-provider.md, G-5 (what the strict schema accepts) and G-18, and docs/reference/contract.md,
C-3 and C-5. A block is written only when it is complete, and not changed while its step is not done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from api.model import Model
from api.v1beta2 import OpenStackCluster
from api.v1beta2.openstackclusterstatus import NetworkStatus, Router, Subnet
from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.steps import Blocked, Failed, NotNeeded, Result, Results, Wait, is_done
from capo.json_types import Body, Json
from capo.ledger import Ledger
from capo.openstack import router as openstack_router
from capo.openstack import subnet as openstack_subnet
from capo.openstack.load_balancer import LoadBalancer
from controllers.openstackcluster.scope import Found
from controllers.roles import BASTION, CONTROL_PLANE, NETWORK, WORKER

BEFORE_PROVISIONED: Final = (
    "NetworkReady",
    "RouterReady",
    "SecurityGroupsReady",
    "LoadBalancerReady",
    "APIEndpointReady",
)
BUILDING: Final = "Building"
_GROUPS: Final = {
    CONTROL_PLANE: "controlPlaneSecurityGroup",
    WORKER: "workerSecurityGroup",
    BASTION: "bastionSecurityGroup",
}


def network(body: Body) -> NetworkStatus:
    """Return the status block of a network; the id replaces a missing name."""
    return NetworkStatus(name=body.get("name") or body["id"], id=body["id"], tags=_tags(body))


def subnet(body: Body) -> Subnet:
    """Return the status block of a subnet; the id replaces a missing name."""
    return Subnet(
        name=body.get("name") or body["id"], id=body["id"], cidr=openstack_subnet.Subnet(body).cidr, tags=_tags(body)
    )


def router(body: Body) -> Router:
    """Return the status block of a router, with its addresses on the external network."""
    ips = tuple(each.ip_address for each in openstack_router.Router(body).external_fixed_ips)
    return Router(name=body.get("name") or body["id"], id=body["id"], tags=_tags(body), ips=ips)


def _tags(body: Body) -> tuple[str, ...]:
    return tuple(body.get("tags") or ())


def after_reconcile(found: Found, cluster: OpenStackCluster, results: Results) -> Json:
    """Return the fields of status to write; None removes a field."""
    fields: Json = {}
    if is_done(results["NetworkReady"]):
        fields["externalNetwork"] = _block(found.external_network)
        fields["network"] = _with_subnets(found.network, found.subnets)
    if is_done(results["RouterReady"]):
        fields["router"] = _block(found.router)
    if is_done(results["SecurityGroupsReady"]):
        fields |= {name: _group(found.groups.get(suffix)) for suffix, name in _GROUPS.items()}
        if found.applied_rules is not None or cluster.status.applied_rules:
            fields["appliedRules"] = found.applied_rules or None
    if is_done(results["LoadBalancerReady"]) and is_done(results["APIEndpointReady"]):
        fields["apiServerManagedLoadBalancer"] = _load_balancer(found)
    fields |= _addresses(found, cluster)
    if found.settings:
        settings = [{"id": id_, "settings": dict(each)} for id_, each in sorted(found.settings.items())]
        fields["loadBalancerSettings"] = settings
    if found.failure_domains is not None:
        fields["failureDomains"] = found.failure_domains or None
    if isinstance(results["BastionReady"], NotNeeded | Wait) or is_done(results["BastionReady"]):
        fields["bastion"] = _block(found.bastion)
        fields["bastionReplacement"] = _block(found.bastion_replacement)
    if is_provisioned(cluster, results):
        fields["initialization"] = {"provisioned": True}
    return fields


def is_provisioned(cluster: OpenStackCluster, results: Results) -> bool:
    """Return whether Cluster API may create machines: all steps are done, and the zones were known at least once."""
    were_known = bool(cluster.status.failure_domains) or _was_provisioned(cluster)
    has_zones = is_done(results["FailureDomainsReady"]) or were_known
    return has_zones and all(is_done(results[step]) for step in BEFORE_PROVISIONED)


def _was_provisioned(cluster: OpenStackCluster) -> bool:
    return cluster.status.initialization is not None and cluster.status.initialization.provisioned


def spec(found: Found, results: Results) -> Json:
    """Return the endpoint, including the parts that were set before (C-4)."""
    if found.endpoint is None or not is_done(results["APIEndpointReady"]):
        return {}
    return {"controlPlaneEndpoint": {"host": found.endpoint.host, "port": found.endpoint.port}}


def shown(cluster: OpenStackCluster, ledger: Ledger, results: Results) -> list[Condition]:
    """Return conditions that differ from those of the steps, to match the Go provider."""
    return [
        *_network_failure(cluster, ledger, results["NetworkReady"]),
        *_router_failure(cluster, results["RouterReady"]),
        *_endpoint_held(results),
        *_ready_without_zones(cluster, results),
    ]


def lacking(found: Found, results: Results) -> list[Condition]:
    """Report what the load balancer lacks: allowed CIDRs, a VIP, members. It works nevertheless: it blocks no step."""
    error, balancer = found.not_enforced or found.no_second_vip, "LoadBalancerReady"
    if not (error or found.not_joined) or not is_done(results[balancer]):
        return []
    if error:
        shown = [Condition(balancer, "False", error.reason, error.sentence)]
        reason, text = "OpenStackError", error.sentence
    else:
        text = f"control plane machines have yet to join the load balancer: {', '.join(found.not_joined)}"
        reason, shown = BUILDING, [Condition(balancer, "False", BUILDING, text)]
    # Another step that fails or waits is shown instead; one that could not decide would leave Ready as it was.
    if not any(isinstance(results[step], Failed | Wait) for step in BEFORE_PROVISIONED):
        shown.append(Condition(conditions.READY, "False", reason, f"{balancer}: {text}"))
    return shown


def _network_failure(cluster: OpenStackCluster, ledger: Ledger, result: Result) -> list[Condition]:
    """Set the reason by what failed: an existing network, the network to create, or its subnet."""
    if not isinstance(result, Failed):
        return []
    of_managed = "SubnetCreateFailed" if ledger.id_of(NETWORK) else "NetworkCreateFailed"
    reason = of_managed if cluster.spec.managed_subnets else "OpenStackError"
    return [Condition("NetworkReady", "False", reason, result.error.sentence)]


def _router_failure(cluster: OpenStackCluster, result: Result) -> list[Condition]:
    if not isinstance(result, Failed) or cluster.spec.managed_subnets:
        return []
    return [Condition("RouterReady", "False", "OpenStackError", result.error.sentence)]


def _endpoint_held(results: Results) -> list[Condition]:
    """Show on the endpoint's condition why its load balancer is not ready: users and tools read that condition."""
    balancer = results["LoadBalancerReady"]
    if not isinstance(results["APIEndpointReady"], Blocked):
        return []
    if isinstance(balancer, Failed):
        return [Condition("APIEndpointReady", "False", "APIEndpointConfigFailed", balancer.error.sentence)]
    if isinstance(balancer, Wait):
        return [Condition("APIEndpointReady", balancer.status, balancer.reason, balancer.message)]
    return []


def _ready_without_zones(cluster: OpenStackCluster, results: Results) -> list[Condition]:
    """Keep ``Ready`` False while only the missing zones keep the cluster from being provisioned (C-33)."""
    zones = results["FailureDomainsReady"]
    is_else_done = all(is_done(results[step]) for step in BEFORE_PROVISIONED)
    if not is_else_done or is_provisioned(cluster, results):
        return []
    text = zones.error.sentence if isinstance(zones, Failed) else "the availability zones are not known yet"
    return [Condition(conditions.READY, "False", "OpenStackError", f"FailureDomainsReady: {text}")]


def dropped(results: Results) -> list[str]:
    """Return the conditions of steps that are not needed any more."""
    return [name for name, result in results.items() if isinstance(result, NotNeeded)]


def _block(model: Model | None) -> Json | None:
    """Return a value as a merge patch that also removes fields that are empty."""
    if model is None:
        return None
    fields = model.model_dump(mode="json", by_alias=True)
    return {name: value if value not in (None, "", [], {}) else None for name, value in fields.items()}


def _with_subnets(net: NetworkStatus | None, subnets: Sequence[Subnet]) -> Json | None:
    block = _block(net)
    return {**block, "subnets": [_compact(s) for s in subnets] or None} if block is not None else None


def _compact(model: Model) -> Json:
    return {name: value for name, value in (_block(model) or {}).items() if value is not None}


def _group(body: Body | None) -> Json | None:
    return {"id": body["id"], "name": body.get("name") or body["id"]} if body else None


def _addresses(found: Found, cluster: OpenStackCluster) -> Json:
    """Return the addresses of a load balancer that is about to be rebuilt; an unknown floating IP stays empty."""
    known, body = cluster.status.api_server_managed_load_balancer, found.load_balancer
    if body is None or not found.is_rebuilt:
        return {}
    vip, *more = LoadBalancer(body).vip_addresses
    return {
        "apiServerManagedLoadBalancer": {
            "name": body.get("name") or body["id"],
            "id": body["id"],
            "ip": known.ip if known else "",
            "internalIP": vip,
            "additionalInternalIPs": more or None,
        }
    }


def _load_balancer(found: Found) -> Json | None:
    """Return the block of the load balancer; ``ip`` is the VIP without a floating IP, and never read back as one."""
    body = found.load_balancer
    if body is None:
        return None
    network_block = _with_subnets(*found.vip_network) if found.vip_network else None
    return {
        "name": body.get("name") or body["id"],
        "id": body["id"],
        "ip": found.floating_ip or LoadBalancer(body).vip_address,
        "internalIP": LoadBalancer(body).vip_address,
        "additionalInternalIPs": LoadBalancer(body).vip_addresses[1:] or None,
        "allowedCIDRs": list(found.allowed_cidrs) or None,
        "tags": list(body.get("tags") or ()) or None,
        "loadBalancerNetwork": network_block,
    }
