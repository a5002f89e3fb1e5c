"""Conditions of a reconcile as a whole, beside those of its steps, and what its errors show."""

from __future__ import annotations

import logging
from typing import Any, Final

from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.steps import Blocked, Failed, NotObserved, Plan, Results, Wait, all_done
from capo.errors import BlockedError, CapoError, IdentityError, NotAuthorizedError, OwnerIdCopiedError

log = logging.getLogger(__name__)

AUTHENTICATED: Final = "OpenStackAuthenticationSucceeded"
AUTHENTICATION_FAILED: Final = "OpenStackAuthenticationFailed"


def for_user(error: CapoError, key: str, *, is_shared: bool) -> CapoError:
    """Return an error as the object shows it; log what shared credentials keep from its user."""
    if not is_shared or error.if_shared is None:
        return error
    log.info("Error that an object with shared credentials does not show", extra={"key": key, "err": error.sentence})
    return error.withheld()


def from_refusal(error: CapoError) -> list[Condition]:
    """Return the conditions of a reconcile that could not begin.

    An outage proves nothing about the credentials: their condition is kept.
    """
    if isinstance(error, IdentityError | NotAuthorizedError):
        types = (AUTHENTICATED, conditions.READY)
        return [Condition(type_, "False", AUTHENTICATION_FAILED, error.sentence) for type_ in types]
    if isinstance(error, OwnerIdCopiedError):
        return [Condition(conditions.READY, "False", error.reason, error.sentence)]
    return [Condition(conditions.READY, "False", "OpenStackError", error.sentence)]


def authentication(results: Results) -> list[Condition]:
    """Return True if any step got an answer, False if the credentials were refused.

    Empty if no request was answered.
    """
    for result in results.values():
        if isinstance(result, Failed) and isinstance(result.error, NotAuthorizedError):
            return [Condition(AUTHENTICATED, "False", AUTHENTICATION_FAILED, result.error.sentence)]
    has_answer = any(not isinstance(result, Blocked | NotObserved) for result in results.values())
    return [Condition(AUTHENTICATED, "True", "Ready")] if has_answer else []


def deleting(plan: Plan[Any], results: Results) -> Condition | None:
    """Return ``Ready`` of an object that is being deleted; None if the reconcile found nothing new."""
    for step in reversed(plan.steps):
        result = results[step.condition]
        if isinstance(result, Failed):
            reason = result.error.reason if isinstance(result.error, BlockedError) else "OpenStackError"
            return Condition(conditions.READY, "False", reason, result.error.sentence)
        if isinstance(result, Wait):
            return Condition(conditions.READY, "False", "Deleting", f"{step.condition}: {result.message}")
    if all_done(results):
        return Condition(conditions.READY, "False", "Deleting", "a create whose answer was lost may still take effect")
    return None
