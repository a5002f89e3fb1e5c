"""What the cloud shows and Kubernetes does not know yet: the trouble of a resource as the cause of a story; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from api.v1beta2.conditions import Reason
from capo.operations.explain import catalogue
from capo.operations.explain.catalogue import Explanation
from capo.operations.explain.cloud_state import Resource, Trouble
from capo.operations.explain.related import Part, Related
from capo.operations.explain.story import Cause, State, Story

_WORSE: Final = {State.READY: State.ATTENTION, State.WAITING: State.FAILING}
"""In the other states Kubernetes knows of a trouble, or it is paused or deleted."""
_REASONS: Final = {
    ("server", Trouble.MISSING): Reason.INSTANCE_DELETED,
    ("server", Trouble.ERROR): Reason.SERVER_FAILED,
    ("volume", Trouble.ERROR): Reason.VOLUME_FAILED,
    ("load_balancer", Trouble.ERROR): Reason.LOAD_BALANCER_FAILED,
    ("port", Trouble.UNBOUND): Reason.PORT_FAILED,
}
"""The reason that the provider reports once it sees the same."""
_OTHERS: Final = {
    Trouble.MISSING: Explanation(
        Reason.NOT_FOUND,
        "A resource of the object does not exist in the cloud.",
        "Find out who deleted it; docs/reference/drift.md says what the provider creates again, and when it sees that.",
    ),
    Trouble.ERROR: Explanation(
        Reason.OPENSTACK_ERROR,
        "The cloud shows a resource of the object in an error state.",
        "Have an admin of the cloud look at the resource.",
    ),
    Trouble.STOPPED: Explanation(
        Reason.INSTANCE_NOT_READY, "The server does not run.", "Have the server run again, or replace the Machine."
    ),
    Trouble.NO_MEMBER: Explanation(
        Reason.LOAD_BALANCER_FAILED,
        "Octavia finds no API server behind the load balancer that answers.",
        "See the machines of the control plane, and the security groups between them and the load balancer.",
    ),
}


def add(story: Story, related: Related, resources: Sequence[Resource]) -> Story:
    """Return the story with what the cloud shows, where Kubernetes knows of no trouble."""
    if story.state not in _WORSE:
        return story
    # While a control plane comes up, no API server answers.
    ignored = (None, Trouble.NO_MEMBER) if story.state is State.WAITING else (None,)
    parts = {str(part): part for part in related.parts}
    found = [each for each in resources if each.trouble not in ignored and each.owner in parts]
    if not found:
        return story
    worst = min(found, key=lambda each: (_place(parts[each.owner], related), each.kind != "server"))
    cause = _cause(worst, parts[worst.owner])
    step = cause.explanation.next_step if cause.explanation else ""
    return replace(story, state=_WORSE[story.state], cause=cause, next_steps=(step,))


def _place(part: Part, related: Related) -> int:
    """Return how near an object is to the cloud; those around the object that was asked for come last."""
    return related.chain.index(part) if part in related.chain else len(related.chain)


def _cause(resource: Resource, part: Part) -> Cause:
    trouble = resource.trouble or Trouble.ERROR
    known = _REASONS.get((resource.kind, trouble))
    explanation = (catalogue.explain(known) if known else None) or _OTHERS.get(trouble)
    word = resource.kind.replace("_", " ")
    detail = f": {resource.detail}" if resource.detail else ""
    is_gone = trouble is Trouble.MISSING
    words = "does not exist in the cloud" if is_gone else f"is {resource.state}{detail}"
    reason = explanation.reason if explanation else ""
    return Cause(part, "", reason, f"{word} {resource.id} {words}", explanation=explanation)
