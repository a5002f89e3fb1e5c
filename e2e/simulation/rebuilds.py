"""A load balancer that fails and is rebuilt on request, or is deleted externally, after the cluster was in use.

From then on ``Ready`` of the cluster may be True only while the load balancer has a listener with a pool for each port,
and every control plane machine that joined is a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from capo import names
from capo.engine import conditions
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from capo.ledger import Ledger
from e2e.simulation import failures, places
from e2e.simulation.changes import CLUSTER_KEY, table

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

REBUILD: Final = "rebuild"
_STATUS: Final = f"/{OPENSTACK_CLUSTER.plural}/{CLUSTER_KEY.name}/status"


def play(story: PlanRun, *, after_s: float, is_deleted: bool, down_s: float | None) -> None:
    """Lose the load balancer so long after everything was ready.

    Args:
        is_deleted: somebody deletes it; else it fails, and a user asks for its rebuild.
        down_s: the manager is killed before, and is away for so long; None: it is not.
    """

    def later() -> None:
        story.scheduler.after(after_s, lambda: _lose(story, is_deleted=is_deleted, down_s=down_s))

    story.when_ready(later)


def _lose(story: PlanRun, *, is_deleted: bool, down_s: float | None) -> None:
    balancer_id = _balancer_id(story)
    if story.is_calm or story.is_deleting or balancer_id is None:
        return
    if is_deleted:
        try:
            story.user.ask("DELETE", f"/load-balancer/v2.0/lbaas/loadbalancers/{balancer_id}?cascade=true")
        except ValueError:  # it is being changed
            return
    if down_s is not None:
        failures.kill(story, down_s)
    places.mark_edited(story, CLUSTER_KEY)
    story.lost_balancer = balancer_id
    if not is_deleted:
        table(story, "load-balancer", "loadbalancers")[balancer_id]["provisioning_status"] = "ERROR"
        annotations = {names.REBUILD_LOAD_BALANCER_ANNOTATION: balancer_id}
        places.patch_if_there(story, CLUSTER_KEY, {"metadata": {"annotations": annotations}})


def _balancer_id(story: PlanRun) -> str | None:
    """Return the id of the recorded load balancer, None if it does not exist."""
    balancer_id = Ledger.read(_status(story)).id_of("lb-api")
    return balancer_id if balancer_id in table(story, "load-balancer", "loadbalancers") else None


def _status(story: PlanRun) -> Json:
    found: Json = (story.place.server.get(*CLUSTER_KEY) or {}).get("status") or {}
    return found


def check(story: PlanRun, path: str) -> None:
    """Require after a write of the status that the cluster is not ready while its new load balancer lacks parts."""
    status = _status(story) if story.lost_balancer and path.endswith(_STATUS) else {}
    balancer_id = Ledger.read(status).id_of("lb-api")
    # An intent is written before the conditions of its reconcile.
    is_new = balancer_id not in (None, story.lost_balancer)
    if not is_new or not conditions.is_true(status.get("conditions") or (), conditions.READY):
        return
    lacks = [kind for kind in ("listeners", "pools") if not _children(story, kind, balancer_id)]
    in_pools = table(story, "load-balancer", "members").keys()
    for machine in story.place.server.list(OPENSTACK_MACHINE):
        members = {each.id for each in Ledger.read(machine.get("status")).records_of_kind("member")}
        if not machine["metadata"].get("deletionTimestamp") and not members <= in_pools:
            lacks.append(f"the member of {machine['metadata']['name']}")
    if lacks:
        story.truth.broken("ready-without-parts", f"Ready is True, load balancer {balancer_id} lacks {lacks}")


def _children(story: PlanRun, kind: str, balancer_id: str | None) -> list[Json]:
    return [each for each in table(story, "load-balancer", kind).values() if each["loadbalancer_id"] == balancer_id]
