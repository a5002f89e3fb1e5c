"""Reports writes that the API server, a webhook or a policy refuses; pure.

A reconcile that cannot write its object would end without a trace. An error that a fresh read or a retry a moment later
may resolve is no refusal.
"""

from __future__ import annotations

from typing import Final

from capo.engine.conditions import READY, Condition
from capo.engine.steps import Failed
from capo.errors import WriteRefusedError
from capo.kube.errors import KubeError

_TRANSIENT: Final = (401, 404, 408, 409, 410, 429)
_WEBHOOK_FAILED: Final = 500
"""What the API server answers when it cannot call a webhook."""


def is_one(error: KubeError) -> bool:
    """Return whether an error is a refusal of the request."""
    status = error.status or 0
    return status == _WEBHOOK_FAILED or (400 <= status < 500 and status not in _TRANSIENT)


def failure(error: KubeError, what: str) -> Failed:
    """Return a refusal as the result of the step whose write it was.

    Args:
        what: the refused write.
    """
    return Failed(WriteRefusedError(f"the API server refuses {what}: {error}", status=error.status))


def condition(error: KubeError) -> Condition:
    """Return the condition of an object whose reconcile ended by a refusal."""
    found = failure(error, "a write").error
    return Condition(READY, "False", found.reason, found.sentence)
