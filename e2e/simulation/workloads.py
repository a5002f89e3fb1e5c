"""What workloads of a cluster left in the cloud: kept, but for what the cluster's policy and a list of a user name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from capo import names
from capo.engine.conditions import find
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, Key
from controllers.openstackcluster import leftovers
from e2e.simulation.objects import NAMESPACE
from environments.cloud_provider import WorkloadStandIn

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

CLUSTER: Final = Key(OPENSTACK_CLUSTER, NAMESPACE, "c")
_OWN: Final = f"{NAMESPACE}.c"
_OTHER: Final = f"{NAMESPACE}.n"
"""The neighbour's name, also where there is none."""
_LOOK_S: Final = 20.0


def leave(story: PlanRun) -> None:
    """Create what the plan's workloads leave, once; what a quota refuses is created by a later call."""
    wanted, obj = story.plan.shape.leftovers, story.place.server.get(*CLUSTER)
    lineage = story.truth.of(story.place, CLUSTER)
    if wanted is None or obj is None or lineage is None or obj["metadata"].get("deletionTimestamp"):
        return
    name = wanted["name"] or _OWN
    workloads, others = WorkloadStandIn(story.user, name), WorkloadStandIn(story.user, _OTHER)
    balancer = _once(story, "balancer", lambda: _balancer(workloads, obj))
    if balancer:
        _once(story, "address", lambda: _address(story, workloads, balancer))
        _once(story, "group", lambda: workloads.security_group("shop"))
    _once(story, "listed", lambda: workloads.volume("listed"))
    _once(story, "kept", lambda: workloads.volume("kept"))
    _once(story, "other volume", lambda: others.volume("kept"))
    _once(story, "other group", lambda: others.security_group("shop"))
    if wanted["policy"] and name == _OWN:
        lineage.left |= {story.left[each]["id"] for each in ("balancer", "address", "group") if each in story.left}


def _once(story: PlanRun, name: str, make: Callable[[], Json]) -> Json | None:
    """Return what was created under a name, or create it; None if the cloud refuses."""
    if name not in story.left:
        try:
            story.left[name] = make()
        except ValueError:
            return None
    return story.left[name]


def _balancer(workloads: WorkloadStandIn, obj: Json) -> Json:
    subnet = obj["status"]["network"]["subnets"][0]["id"]
    made: Json = workloads.load_balancer("shop", subnet, provider="amphora")
    return made


def _address(story: PlanRun, workloads: WorkloadStandIn, balancer: Json) -> Json:
    (external,) = story.user.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
    made: Json = workloads.floating_ip("shop", external["id"], balancer["vip_port_id"])
    return made


def before_deletion(story: PlanRun) -> None:
    """List a volume for deletion if the plan says so, and delete by hand what blocks the deletion once it is shown."""
    wanted, server = story.plan.shape.leftovers, story.place.server
    if wanted is None or (lineage := story.truth.of(story.place, CLUSTER)) is None:
        return
    if wanted["is_listed"] and "listed" in story.left:
        volume_id = story.left["listed"]["id"]
        annotations = {names.LEFTOVER_VOLUMES_ANNOTATION: volume_id}
        server.patch(*CLUSTER, {"metadata": {"annotations": annotations}})
        if not wanted["name"]:
            lineage.left.add(volume_id)
    story.scheduler.after(_LOOK_S, lambda: _help(story))


def _help(story: PlanRun) -> None:
    """Delete as a person what a condition shows and the provider does not delete: it blocks the network."""
    obj = story.place.server.get(*CLUSTER)
    if obj is None or "balancer" not in story.left:
        return
    shown = find((obj.get("status") or {}).get("conditions") or (), leftovers.TYPE) or {}
    lineage = story.truth.of(story.place, CLUSTER)
    balancer_id = story.left["balancer"]["id"]
    if balancer_id in shown.get("message", "") and lineage and balancer_id not in lineage.left:
        del story.left["balancer"]  # a second deletion of the cluster needs no second help
        _delete_by_hand(story, balancer_id)
        return
    story.scheduler.after(_LOOK_S, lambda: _help(story))


def _delete_by_hand(story: PlanRun, balancer_id: str) -> None:
    if "address" in story.left:
        _forget(story, f"/network/v2.0/floatingips/{story.left['address']['id']}")
    _forget(story, f"/load-balancer/v2.0/lbaas/loadbalancers/{balancer_id}?cascade=true")


def _forget(story: PlanRun, path: str) -> None:
    """Delete a resource as its user, who does not miss it."""
    story.user.ask("DELETE", path)
    story.truth.resources.pop(path.rpartition("/")[2].partition("?")[0], None)


def check_deleted(story: PlanRun) -> None:
    """Require that everything is gone that the policy and the list name; what else is there ``Truth`` checks."""
    for lineage in story.truth.lineages.values():
        left = [story.truth.resources[id_] for id_ in lineage.left if story.truth.resources[id_].is_there()]
        if left and lineage.is_gone and not lineage.is_lost:
            story.truth.broken("left-behind", f"of workloads: {', '.join(map(str, left))}")
