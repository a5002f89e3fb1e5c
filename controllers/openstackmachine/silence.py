"""How long the expected progress of a machine is not written to its status.

Most creations and deletions end before, and a status that shows each wait costs a write for each. Failures, and waits
for something that a user has to do, are written at once.
"""

from __future__ import annotations

from typing import Final

from capo.engine import conditions
from capo.engine.steps import Blocked, NotNeeded, Result, Results, Wait
from controllers import server_child
from controllers.openstackmachine.openstackserver import BOOTSTRAP, INFRASTRUCTURE, was_provisioned
from controllers.openstackmachine.scope import MachineScope
from controllers.openstackmachine.steps import INGRESS, INSTANCE

SILENT_S: Final = 30.0


def seconds(scope: MachineScope, results: Results) -> float:
    """Return for how many more seconds the results of a reconcile need not be written; 0 if they must be."""
    return _of_deletion(scope, results) if scope.context.is_deleting else _of_creation(scope, results)


def _of_deletion(scope: MachineScope, results: Results) -> float:
    context = scope.context
    expected = server_child.being_deleted(scope.name)
    if not _is_one_of(results[INSTANCE], expected) and not isinstance(results[INSTANCE], Blocked):
        return 0.0
    return max(0.0, context.deletion_s + SILENT_S - context.deps.clock.now())


def _of_creation(scope: MachineScope, results: Results) -> float:
    """Return the seconds for a machine that never showed anything; later changes are written at once."""
    context = scope.context
    is_known = bool((context.obj.get("status") or {}).get("conditions")) or was_provisioned(scope)
    if is_known or not _is_coming(scope, results[INSTANCE]) or not isinstance(results[INGRESS], Blocked):
        return 0.0
    # The API server's date: a clock that differs makes the machine report earlier, never later.
    age_s = context.deps.clock.wall() - conditions.seconds(context.obj["metadata"].get("creationTimestamp") or "")
    return SILENT_S - age_s if 0 <= age_s < SILENT_S else 0.0


def _is_coming(scope: MachineScope, result: Result) -> bool:
    is_early = isinstance(result, Wait) and result.reason in (INFRASTRUCTURE, BOOTSTRAP)
    return is_early or _is_one_of(result, server_child.becoming_ready(scope.name))


def _is_one_of(result: Result, *expected: Wait) -> bool:
    return result in expected or isinstance(result, NotNeeded)
