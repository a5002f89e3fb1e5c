"""External changes of what the policy of a cluster compares: reverted, reported or left, and nothing else is written.

Some come while the adversary acts; those that are judged come when everything is ready.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from capo.json_types import Json
from e2e.simulation import changes
from e2e.simulation.changes import Changed
from e2e.simulation.plan import FIELDS

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun

DEFAULTS: Final = {
    "securityGroupRules": "Repair",
    "listenerTimeouts": "Report",
    "poolAlgorithms": "Report",
    "healthMonitors": "Repair",
    "memberWeights": "Report",
    "portSecurityGroups": "Report",
    "networkTags": "Repair",
    "serverTags": "Report",
    "mtu": "Report",
    "router": "Repair",
    "serverMetadata": "Report",
    "allowedAddressPairs": "Report",
}
PERIODS: Final = {"networkTags": 4, "mtu": 4, "router": 6}
"""Resync periods until a change shows at the latest, where it is not 3: these kinds are listed more rarely."""
MARGIN_S: Final = 900.0
_PAUSE_S: Final = 120.0


def schedule(story: PlanRun) -> None:
    """Schedule the changes that come while the adversary acts."""
    for field, at_s in ((story.plan.shape.drift or {}).get("early") or {}).items():
        story.scheduler.after(at_s, lambda each=field: _early(story, each))  # type: ignore[misc]


def _early(story: PlanRun, field: str) -> None:
    if field == "router" and policy_of(story.plan.shape.drift or {}, field) != "Repair":
        return  # without a gateway, machines that have no floating IP yet get none until a person reverts the change
    # A resource that is not there, or is being changed.
    with contextlib.suppress(ValueError):
        if not story.is_calm:
            changes.change(story, field)


def play_at_rest(story: PlanRun) -> None:
    """Change what the plan names, wait for more than a resync, and check what became of it."""
    drift = story.plan.shape.drift
    if not drift or not _is_judged(story):
        return
    stranger = _stranger(story)
    made = list(_changes(story, drift))
    periods = max((PERIODS.get(each.name, 3) for each in made), default=0)
    story.simulation.run(periods * story.plan.tuning.sync_period_s + MARGIN_S)
    story.truth.quiet.clear()
    for each in made:
        _check(story, each, policy_of(drift, each.name))
    if stranger not in changes.table(story, "network", "security_group_rules"):
        story.truth.broken("foreign-changed", f"rule {stranger} of a user's group is gone")


def _changes(story: PlanRun, drift: Json) -> Iterator[Changed]:
    """Change one thing after the other: Octavia accepts a change only when the one before is complete."""
    for name in drift["changes"]:
        found = changes.change(story, name)
        if found is not None:
            if policy_of(drift, name) != "Repair":
                story.truth.quiet |= {(each, found.word) for each in found.touched}
            yield found
            story.simulation.run(_PAUSE_S, lambda: _is_free(story))


def _is_free(story: PlanRun) -> bool:
    balancers = changes.table(story, "load-balancer", "loadbalancers").values()
    return all(not each["provisioning_status"].startswith("PENDING_") for each in balancers)


def policy_of(drift: Json, name: str) -> str:
    """Return the policy for what is changed."""
    return str(drift["policy"].get(FIELDS.get(name, name)) or DEFAULTS[name])


def _check(story: PlanRun, made: Changed, policy: str) -> None:
    shown = list(filter(None, _messages(story, made.kind, made.condition)))
    if made.is_reverted() != (policy == "Repair"):
        state = "was reverted" if made.is_reverted() else "is still there"
        story.truth.broken("policy-differs", f"{policy} of {made.name}: the change {state}; shown: {shown}")
    elif any(made.named in each for each in shown) != (policy == "Report"):
        story.truth.broken("policy-differs", f"{policy} of {made.name} ({made.named}) shows {shown}")


def _messages(story: PlanRun, kind: Any, condition: str) -> Iterator[str]:
    for obj in story.place.server.list(kind):
        for each in (obj.get("status") or {}).get("conditions") or ():
            if each["type"] == condition:
                yield each.get("message", "")


def _is_judged(story: PlanRun) -> bool:
    """Return whether the cluster exists, with its resources, and is of no other management cluster."""
    lineage = story.truth.of(story.place, changes.CLUSTER_KEY)
    is_known = lineage is not None and not (lineage.is_evil or lineage.is_lost or lineage.is_deleted)
    return is_known and not story.truth.has_duplicates()


def _stranger(story: PlanRun) -> str:
    """Create a group of a user with a rule like the ones that are added to ours; return the rule."""
    group = story.user.make("/network/v2.0/security-groups", "security_group", name="theirs")
    return changes.add_rule(story, group["id"])
