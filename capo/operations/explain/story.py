"""Decides what is the matter with an object: its state, the cause, and the next step; pure.

Conditions are read as data: type, status and reason. Their messages are shown, not interpreted. Meaning and next step
of a reason come from :mod:`capo.operations.explain.catalogue`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from api.v1beta2.conditions import ConditionType, Reason
from capo import names
from capo.contract import rules
from capo.engine import conditions
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OURS
from capo.operations.explain import catalogue, core_catalogue
from capo.operations.explain.catalogue import Explanation
from capo.operations.explain.events import Happening
from capo.operations.explain.related import READY, Part, Related
from controllers.openstackcluster.steps import PLAN as CLUSTER_PLAN
from controllers.openstackmachine.steps import PLAN as MACHINE_PLAN
from controllers.openstackserver.steps import PLAN as SERVER_PLAN

STUCK_S: Final = 900.0
"""A deletion that takes longer may be ended by hand; the manager reports it in an Event then, too. A wait that needs no
action at first needs it then."""
PAGE: Final = "docs/how-to/stuck-deletion.md"
_ORDER: Final = {
    type_: index
    for steps in (CLUSTER_PLAN.steps, SERVER_PLAN.steps, MACHINE_PLAN.steps)
    for index, type_ in enumerate(step.condition for step in steps)
}
"""Position of each condition type in its kind's steps: the first that fails is the cause of the next ones."""
_LAST: Final = 1000
REQUEST: Final = re.compile(r"\breq-[0-9a-f]{8}-[0-9a-f-]{27}\b")
_NEGATIVE: Final = ("Deleting", "Paused", "Remediating", "RollingOut", "ScalingDown", "ScalingUp", "Updating")
"""Conditions whose status True is no trouble by itself, nor is False."""
_OF_CLUSTER: Final = (Reason.WAITING_FOR_CLUSTER_INFRASTRUCTURE, Reason.WAITING_FOR_SERVER_GROUP)
"""Reasons of a machine whose cause is the OpenStackCluster."""


class State(StrEnum):
    """What is the matter with an object."""

    READY = "ready"
    ATTENTION = "attention"
    WAITING = "waiting"
    FAILING = "failing"
    PAUSED = "paused"
    DELETING = "deleting"
    BLOCKED = "blocked"
    MISSING = "missing"

    @property
    def words(self) -> str:
        """Return the predicate of a sentence about the object."""
        return _WORDS[self]

    @property
    def needs_decision(self) -> bool:
        """Whether somebody has to do something."""
        return self not in (State.READY, State.WAITING, State.DELETING)


_WORDS: Final = {
    State.READY: "is ready",
    State.ATTENTION: "is ready and needs attention",
    State.WAITING: "is not ready yet",
    State.FAILING: "is not ready: something fails",
    State.PAUSED: "is paused",
    State.DELETING: "is being deleted",
    State.BLOCKED: "is being deleted, and the deletion is blocked",
    State.MISSING: "lacks an object in the management cluster",
}
_SEVERITY: Final = (State.BLOCKED, State.FAILING, State.MISSING, State.ATTENTION, State.DELETING, State.WAITING)


@dataclass(frozen=True)
class Cause:
    """Why an object has its state.

    Args:
        part: the object that has the condition.
        condition: its type; empty if no condition says it.
        since: RFC 3339, empty if unknown.
        explanation: of the reason; None if it is not one of this provider's.
        wider: of the reason that the condition has, if an Event has a more precise one.
    """

    part: Part
    condition: str
    reason: str
    message: str
    since: str = ""
    explanation: Explanation | None = None
    wider: Explanation | None = None


@dataclass(frozen=True)
class Story:
    """What is the matter with an object.

    Args:
        held_by: finalizers that hold an object that is being deleted, as sentences.
        next_steps: what the user can do, the first thing first.
    """

    subject: Part
    state: State
    cause: Cause | None = None
    held_by: Sequence[str] = ()
    next_steps: Sequence[str] = field(default_factory=tuple)

    @property
    def summary(self) -> str:
        """Return the story in one sentence."""
        if self.cause is None:
            return f"{self.subject} {self.state.words}"
        where = "" if self.cause.part == self.subject else f" on {self.cause.part}"
        return f"{self.subject} {self.state.words}: {self.cause.reason}{where}"


def of(related: Related, events: Iterable[Happening], now_s: float) -> Story:
    """Return the story of an object.

    Args:
        now_s: seconds since 1970.
    """
    found = list(events)
    if paused := _paused(related):
        return _story(related, State.PAUSED, paused)
    if related.subject.is_deleting:
        return _deletion(related, found, now_s)
    if missing := _missing(related):
        return missing
    return _living(related, found, now_s)


def _living(related: Related, events: Sequence[Happening], now_s: float) -> Story:
    cause = _worst(related.chain, events, now_s)
    if cause and cause.reason in _OF_CLUSTER:
        cause = _worst(related.around, events, now_s) or cause
    if related.subject.is_ready and not (cause and _needs_action(cause)):
        worst = _worst_machine(related, events, now_s)
        return worst or Story(related.subject, State.READY)
    if cause is None:
        return _worst_machine(related, events, now_s) or Story(related.subject, State.WAITING)
    if related.subject.is_ready:
        return _story(related, State.ATTENTION, cause)
    if _needs_action(cause):
        return _story(related, State.FAILING, cause)
    worst = _worst_machine(related, events, now_s)
    return worst if worst and worst.state.needs_decision else _story(related, State.WAITING, cause)


def _worst_machine(related: Related, events: Sequence[Happening], now_s: float) -> Story | None:
    """Return the story of the machine of a cluster that is worst off, as one of the cluster."""
    stories = [of(Related(chain[-1], chain), events, now_s) for chain in related.machines]
    unsettled = [each for each in stories if each.state in _SEVERITY]
    if not unsettled:
        return None
    # Workers wait for the control plane.
    worst = min(unsettled, key=lambda each: (_SEVERITY.index(each.state), not _is_control_plane(each.subject)))
    state = State.FAILING if worst.state.needs_decision else State.WAITING
    is_deleting = related.subject.is_deleting
    shown = worst.state if is_deleting else state
    return Story(related.subject, shown, worst.cause, worst.held_by, worst.next_steps)


def _is_control_plane(machine: Part) -> bool:
    return names.CONTROL_PLANE_LABEL in (machine.metadata.get("labels") or {})


def _story(related: Related, state: State, cause: Cause) -> Story:
    return Story(related.subject, state, cause, (), _next_steps(cause))


def _next_steps(cause: Cause) -> tuple[str, ...]:
    found = [each.next_step for each in (cause.explanation, cause.wider) if each]
    return tuple(each for each in found if each != catalogue.SEE_MESSAGE or len(found) == 1)


def _paused(related: Related) -> Cause | None:
    cluster = next((each.obj for each in (*related.chain, *related.around) if each.kind == CLUSTER and each.obj), None)
    for part in related.chain:
        why = rules.pause_cause(part.obj, cluster) if part.obj else None
        if why:
            found = conditions.find(part.conditions, ConditionType.PAUSED) or {}
            since = str(found.get("lastTransitionTime") or "")
            return Cause(part, ConditionType.PAUSED, Reason.PAUSED, why, since, catalogue.explain(Reason.PAUSED))
    return None


def _missing(related: Related) -> Story | None:
    gone = next((each for each in (*related.chain, *related.around) if each.is_missing), None)
    if gone:
        text = f"{gone} does not exist; it is named by {gone.named_by}"
        step = f"Restore {gone} from a backup, or delete what names it if the deletion was intended."
        return Story(related.subject, State.MISSING, Cause(gone, "", "ObjectMissing", text), (), (step,))
    orphan = next((each for each in related.chain if each.kind.kind == "OpenStackMachine" and each.obj), None)
    if orphan and not any(each.kind == MACHINE for each in related.chain):
        text = f"{orphan} has no Machine as its owner, so that nothing is done for it"
        step = "Create the Machine whose spec.infrastructureRef names it; Cluster API then sets the owner."
        return Story(related.subject, State.MISSING, Cause(orphan, "", "OwnerMissing", text), (), (step,))
    return None


def _deletion(related: Related, events: Sequence[Happening], now_s: float) -> Story:
    machines = [chain for chain in related.machines if any(each.is_deleting for each in chain)]
    if machines and not _is_last(related):
        worst = _worst_machine(Related(related.subject, related.chain, [], machines), events, now_s)
        if worst:
            return worst
    holder = next(each for each in (*related.chain, related.subject) if each.is_deleting)
    cause = (
        _of_cluster_api(holder, now_s)
        or _worst([holder], events, now_s)
        or Cause(holder, "", Reason.DELETING, f"{holder} is being deleted", _since(holder))
    )
    has_ours = names.finalizer(holder.kind.kind) in (holder.metadata.get("finalizers") or ())
    others = [each for each in holder.metadata.get("finalizers") or () if not each.endswith(".cluster.x-k8s.io")]
    is_blocked = _needs_action(cause) or (holder.kind in OURS and bool(others) and not has_ours)
    steps = [*_next_steps(cause), *(_remove_by(each) for each in others if not has_ours)]
    if is_blocked and has_ours and now_s - conditions.seconds(_since(holder)) > STUCK_S:
        steps += _abandon(holder)
    state = State.BLOCKED if is_blocked else State.DELETING
    return Story(related.subject, state, cause, tuple(_held_by(holder)), tuple(steps))


def _of_cluster_api(part: Part, now_s: float) -> Cause | None:
    """Return what Cluster API waits for while it deletes an object of its own."""
    found = conditions.find(part.conditions, "Deleting") if part.kind not in OURS else None
    return _aged(_cause(part, dict(found)), now_s) if found and found.get("status") == "True" else None


def _is_last(related: Related) -> bool:
    """Return whether the infrastructure of the cluster is being deleted without waiting for machines."""
    return any(each.is_deleting and each.kind in OURS for each in related.chain) and not related.machines


def _since(part: Part) -> str:
    return str(part.metadata.get("deletionTimestamp") or "")


def _held_by(part: Part) -> Iterator[str]:
    for finalizer in part.metadata.get("finalizers") or ():
        yield f"{part} is held by the finalizer {finalizer}{_owner_of(finalizer)}"


def _owner_of(finalizer: str) -> str:
    if finalizer.endswith(f".{names.GROUP}"):
        return " of this provider"
    return " of Cluster API" if finalizer.endswith(".cluster.x-k8s.io") else ""


def _remove_by(finalizer: str) -> str:
    return f"See to it that the program which sets the finalizer {finalizer} runs and removes it."


def _abandon(part: Part) -> list[str]:
    owner_id = (part.metadata.get("annotations") or {}).get(names.OWNER_ID_ANNOTATION, "").partition(".")[0]
    if not owner_id:
        return []
    command = (
        f"kubectl annotate -n {part.namespace} {part.kind.plural} {part.name} {names.ABANDON_ANNOTATION}={owner_id}"
    )
    return [f"If the cause cannot be removed, leave the resources behind ({PAGE}): {command}"]


def _worst(parts: Iterable[Part], events: Iterable[Happening], now_s: float) -> Cause | None:
    """Return the cause that explains the others: errors first, then what needs action, then waits."""
    found = [(index, cause) for index, part in enumerate(parts) for cause in _causes(part)]
    if not found:
        return None
    _, worst = min(found, key=lambda each: (_rank(each[1]), each[0], _order(each[1])))
    return _precise(_aged(worst, now_s), events)


def _order(cause: Cause) -> int:
    is_ours = cause.part.kind in OURS
    return _ORDER.get(cause.condition, _LAST) if is_ours else core_catalogue.order(cause.part, cause.condition)


def _aged(cause: Cause, now_s: float) -> Cause:
    """Return a cause with what is to be done once it lasts, if it does."""
    is_old = bool(cause.since) and now_s - conditions.seconds(cause.since) > STUCK_S
    return replace(cause, explanation=cause.explanation.once_it_lasts()) if cause.explanation and is_old else cause


def _causes(part: Part) -> Iterator[Cause]:
    for each in part.conditions:
        if (
            each.get("status") != "True"
            and each.get("type") not in _NEGATIVE
            and not _is_summary_of_another(each, part)
        ):
            yield _cause(part, each)


def _is_summary_of_another(condition: Json, part: Part) -> bool:
    """Return whether a condition only sums up another one that is shown, too."""
    others = [each for each in part.conditions if each.get("status") != "True" and each.get("type") not in _NEGATIVE]
    return condition.get("type") in READY and any(each.get("type") not in READY for each in others)


def _cause(part: Part, condition: Json) -> Cause:
    type_, reason = str(condition.get("type")), str(condition.get("reason") or "")
    is_ours = part.kind in OURS
    return Cause(
        part,
        type_,
        reason,
        str(condition.get("message") or ""),
        str(condition.get("lastTransitionTime") or ""),
        catalogue.explain(reason) if is_ours else core_catalogue.explain(part, type_, reason),
    )


def _rank(cause: Cause) -> int:
    if cause.explanation is None or cause.part.kind not in OURS:
        return 3
    return 0 if cause.explanation.is_error else 1 if cause.explanation.needs_action else 2


def _needs_action(cause: Cause) -> bool:
    return bool(cause.explanation and cause.explanation.needs_action)


def _precise(cause: Cause, events: Iterable[Happening]) -> Cause:
    """Return a cause with the reason of the error where the condition has a wider one.

    The Event of the error has its name as reason, and the message of the condition.
    """
    if cause.explanation is None or cause.explanation.is_error:
        return cause
    for each in events:
        explanation = catalogue.explain(each.reason)
        is_same = each.uid == cause.part.metadata.get("uid") and _comparable(cause.message).startswith(
            _comparable(each.message)
        )
        if explanation and explanation.is_error and each.message and is_same:
            return replace(cause, reason=each.reason, explanation=explanation, wider=cause.explanation)
    return cause


def _comparable(message: str) -> str:
    """Return a message without ids of requests, which differ each time, and without the mark of a cut."""
    return REQUEST.sub("", message).removesuffix("...")
