"""Users pause objects by an annotation, which changes no generation, and end the pause later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capo import names
from capo.kube.kinds import OURS
from e2e.simulation.objects import NAMESPACE

if TYPE_CHECKING:
    from e2e.simulation.plan_run import PlanRun


def pause(story: PlanRun, for_s: float) -> None:
    """Annotate all objects of ours; end the pause after so long."""
    _annotate(story, "")
    story.take_back(for_s, lambda: end(story))


def end(story: PlanRun) -> None:
    """Remove the annotation from all objects, in all management clusters."""
    _annotate(story, None)


def _annotate(story: PlanRun, value: Any) -> None:
    body = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: value}}}
    for endpoint in story.endpoints():
        for kind in OURS:
            for obj in endpoint.server.list(kind):
                is_paused = names.PAUSED_ANNOTATION in (obj["metadata"].get("annotations") or {})
                if is_paused == (value is None):
                    endpoint.server.patch(kind, NAMESPACE, obj["metadata"]["name"], body)
