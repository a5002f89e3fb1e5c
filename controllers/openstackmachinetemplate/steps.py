"""The steps of an OpenStackMachineTemplate; nothing is created, so that a deletion has nothing to remove.

What could not be found out is Unknown: only an answer that proves it makes a condition False.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from capo.engine.steps import Done, Outcome, Plan, Step, Wait, nothing
from capo.errors import CapoError, IdentityError, NotAuthorizedError, ReferenceNotFoundError, TerminalError
from controllers.openstackmachinetemplate import capacity, preflight
from controllers.openstackmachinetemplate.scope import TemplateScope

MISSING_RETRY: Final = "It is tried again in 5 minutes, or when the template gets an annotation."
UNKNOWN_RETRY: Final = (
    "It is tried again after growing pauses of up to an hour, or when the template gets an annotation."
)
Ensure = Callable[[TemplateScope], Outcome]


def unless_unknown(ensure: Ensure) -> Ensure:
    """Return the step with outages, refusals and ambiguous answers as a wait of status Unknown."""

    def run(scope: TemplateScope) -> Outcome:
        try:
            return ensure(scope)
        except ReferenceNotFoundError as error:
            raise error.retried(MISSING_RETRY) from error
        except (TerminalError, IdentityError, NotAuthorizedError):
            raise
        except CapoError as error:
            return Wait(error.reason, error.retried(UNKNOWN_RETRY).sentence, status="Unknown")

    return run


def ensure_capacity(scope: TemplateScope) -> Outcome:
    """Report the capacity of nodes, from the flavor and the root volume."""
    root = scope.spec.root_volume
    found = capacity.of(
        scope.flavor(),
        root_volume_gib=root.size_gib if root else None,
        mapping=dict(scope.deps.settings.flavor_resources),
    )
    scope.found.capacity = found.resources
    return Done(found.message)


def ensure_node_info(scope: TemplateScope) -> Outcome:
    """Report architecture and operating system of nodes, from the image."""
    found = scope.image()
    if isinstance(found, Wait):
        return replace(found, status="Unknown")
    info = capacity.node_info(scope.known_flavor, found, defaults=scope.node_info_defaults(found))
    scope.found.node_info = info.values
    return Done(info.message)


STEPS: Final = (
    Step("CapacityReady", ensure=unless_unknown(ensure_capacity), remove=nothing, needs=()),
    Step("NodeInfoReady", ensure=unless_unknown(ensure_node_info), remove=nothing, needs=()),
    Step("ReferencesReady", ensure=preflight.ensure_references, remove=nothing, needs=()),
)
PLAN: Final = Plan(STEPS)
