"""Writes that the API server, a webhook or a policy refuses: what is shown of them; pure.

A pass that cannot write its object would end without a trace. What may heal by a fresh read, or by asking again a
moment later, is no refusal.
"""

from __future__ import annotations

from typing import Final

from capo.engine.conditions import READY, Condition
from capo.engine.steps import Failed
from capo.errors import WriteRefusedError
from capo.kube.errors import KubeError

_TRANSIENT: Final = (401, 404, 408, 409, 410, 429)
_WEBHOOK_FAILED: Final = 500
"""What the API server answers when it cannot ask a webhook."""


def is_one(error: KubeError) -> bool:
    """Return whether an answer refuses what was asked for."""
    status = error.status or 0
    return status == _WEBHOOK_FAILED or (400 <= status < 500 and status not in _TRANSIENT)


def failure(error: KubeError, what: str) -> Failed:
    """Return a refusal as the result of the step whose write it was.

    Args:
        what: was to be written.
    """
    return Failed(WriteRefusedError(f"the API server refuses {what}: {error}", status=error.status))


def condition(error: KubeError) -> Condition:
    """Return what an object shows whose pass ended by a refusal."""
    found = failure(error, "a write").error
    return Condition(READY, "False", found.reason, found.sentence)
