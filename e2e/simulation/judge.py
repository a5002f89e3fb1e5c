"""The final checks after the last disturbance: objects are ready, specs are in force, statuses are true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, OURS, Key
from e2e.simulation import claims
from e2e.simulation.apiclient import Endpoint
from e2e.simulation.objects import NAMESPACE
from e2e.simulation.truth import Lineage

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

_READY_KINDS = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER)


def is_ready(endpoint: Endpoint, key: Key) -> bool:
    """Return whether an object exists, and is ready in its newest generation."""
    obj = endpoint.server.get(*key)
    return obj is not None and _unready(obj) is None


def fault(story: PlanRun) -> str | None:
    """Return the first violation, None if there is none."""
    if story.is_moving or story.applying:
        return "users are still at it"
    for lineage, obj in _judged(story):
        if lineage.is_deleted:
            return f"{lineage} is being deleted"
        if text := _unready(obj) or _not_in_force(story, lineage, obj):
            return f"{lineage}: {text}"
    return claims.fault(story)


def _judged(story: PlanRun) -> Iterator[tuple[Lineage, Json]]:
    for lineage in story.truth.living():
        if lineage.key.kind in _READY_KINDS and not lineage.is_evil and not lineage.is_lost:
            obj = lineage.endpoint.server.get(*lineage.key)
            if obj is not None and not (lineage.is_deleted and story.is_deleting):
                yield lineage, obj


def _unready(obj: Json) -> str | None:
    conditions = (obj.get("status") or {}).get("conditions") or []
    ready = next((c for c in conditions if c["type"] == "Ready"), None)
    if ready is None:
        return "no condition Ready"
    if ready["status"] != "True":
        return f"not ready: {ready['reason']}: {ready.get('message', '')[:300]}"
    generation = obj["metadata"]["generation"]
    if ready.get("observedGeneration") != generation:
        return f"generation {generation} was not observed"
    return None


def _not_in_force(story: PlanRun, lineage: Lineage, obj: Json) -> str | None:
    if lineage.key.kind != OPENSTACK_CLUSTER:
        return None
    spec, status = obj["spec"], obj["status"]
    wants_zones = not spec.get("controlPlaneOmitAvailabilityZone")
    zones = status.get("failureDomains") or []
    if any(bool(zone.get("controlPlane")) != wants_zones for zone in zones):
        return f"controlPlaneOmitAvailabilityZone is not in force: {zones}"
    return _endpoint(story, spec) or _bastion(story, lineage, spec) or _load_balancer(story, lineage, spec)


def _endpoint(story: PlanRun, spec: Json) -> str | None:
    given = (story.plan.shape.cluster or {}).get("controlPlaneEndpoint", {})
    found = spec.get("controlPlaneEndpoint") or {}
    is_kept = found.items() >= given.items() and found.keys() == {"host", "port"}
    return None if is_kept else f"the endpoint is {found}, given was {given}"


def _bastion(story: PlanRun, lineage: Lineage, spec: Json) -> str | None:
    bastion = spec.get("bastion") or {}
    wants = bool(bastion) and bastion.get("enabled", True) is not False
    child = lineage.endpoint.server.get(OPENSTACK_SERVER, NAMESPACE, f"{lineage.key.name}-bastion")
    if wants != (child is not None):
        return f"the bastion is {'missing' if wants else 'still there'}"
    if child is None:
        return None
    wanted = bastion["spec"]["flavor"]["filter"]["name"]
    if child["spec"]["flavor"] != wanted:
        return f"the bastion has flavor {child['spec']['flavor']}, wanted {wanted}"
    server = story.simulation.cloud.table("compute", "servers").get((child.get("status") or {}).get("instanceID", ""))
    return None if server is not None else "the bastion's server is not there"


def _load_balancer(story: PlanRun, lineage: Lineage, spec: Json) -> str | None:
    balancer = (spec.get("apiServer") or {}).get("managedLoadBalancer")
    if not balancer:
        return None
    if story.lost_balancer in story.simulation.cloud.table("load-balancer", "loadbalancers"):
        return f"load balancer {story.lost_balancer}, which failed, was not rebuilt"
    wanted = set(balancer.get("allowedCIDRs") or ())
    own = {r.id for r in story.truth.resources.values() if r.lineage is lineage}
    for listener in story.simulation.cloud.table("load-balancer", "listeners").values():
        if listener["id"] in own and not wanted <= set(listener.get("allowed_cidrs") or ()):
            return f"allowedCIDRs are not in force: {listener.get('allowed_cidrs')}"
        if listener["id"] in own and not wanted and listener.get("allowed_cidrs"):
            return f"allowedCIDRs are still in force: {listener.get('allowed_cidrs')}"
    # Members of machines that are deleted with their Cluster are deleted with the load balancer.
    return None if story.is_deleting else _members(story, lineage, own)


def _is_control_plane(obj: Json) -> bool:
    return "cluster.x-k8s.io/control-plane" in obj["metadata"].get("labels", {})


def _members(story: PlanRun, lineage: Lineage, own: set[str]) -> str | None:
    """Every control plane machine has its member, at its address of the VIP's family, and there are no others."""
    # The first subnet is of IPv4 in every plan.
    wanted = {
        address["address"]
        for obj in lineage.endpoint.server.list(OPENSTACK_MACHINE)
        for address in (obj.get("status") or {}).get("addresses") or ()
        if address["type"] == "InternalIP" and ":" not in address["address"]
        if _family(obj) == lineage.key.name and _is_control_plane(obj)
    }
    members = story.simulation.cloud.table("load-balancer", "members").values()
    present = {member["address"] for member in members if member["pool_id"] in own}
    return None if wanted == present else f"members of the API's pool: {sorted(present)}, machines: {sorted(wanted)}"


def _family(obj: Json) -> str:
    return str((obj["metadata"].get("labels") or {}).get(names.CLUSTER_NAME_LABEL, ""))


def status_fault(story: PlanRun) -> str | None:
    """Return the first status that differs from the clouds, None when they agree."""
    for lineage, obj in _judged(story):
        status = obj.get("status") or {}
        resources = status.get("resources") or {}
        if resources.get("pending"):
            return f"{lineage}: creates are pending: {resources['pending']}"
        for record in resources.get("records") or ():
            known = story.truth.resources.get(record["id"])
            if known is not None and known.kind == "members":
                continue  # one machine's write adds the members of all
            if known is not None and known.body() is None:
                return f"{lineage}: {record['role']} {record['id']} is recorded and gone"
            if known is not None and known.lineage is not None and known.lineage is not lineage:
                return f"{lineage}: {record['role']} {record['id']} is recorded and {known.lineage}'s"
        if lineage.key.kind == OPENSTACK_SERVER and (text := _server(story, status)):
            return f"{lineage}: {text}"
    return None


def _server(story: PlanRun, status: Any) -> str | None:
    server = story.simulation.cloud.table("compute", "servers").get(status.get("instanceID") or "")
    if server is None:
        return "its server is not in the cloud"
    return None if status.get("instanceState") == server["status"] else f"shown as {status.get('instanceState')}"


def left_objects(story: PlanRun) -> str:
    """Return the objects that are not deleted yet, and why; empty if there are none."""
    return "; ".join(f"{name}: {why[:200]}" for name, why in _left(story))


def blockers(story: PlanRun) -> str:
    """Return the messages of the objects that are not deleted yet."""
    return " ".join(why for _, why in _left(story))


def _left(story: PlanRun) -> Iterator[tuple[str, str]]:
    """Yield the name of each existing object, and the message of its condition Ready."""
    for endpoint in story.endpoints():
        for kind in (CLUSTER, MACHINE, *OURS, *claims.KINDS):
            for obj in endpoint.server.list(kind):
                conditions = (obj.get("status") or {}).get("conditions") or []
                why = next((c.get("message", "") for c in conditions if c["type"] == "Ready"), "")
                yield f"{endpoint.name} {kind.kind} {obj['metadata']['name']}", why
