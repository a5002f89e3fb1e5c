"""What a pass shows as a whole, beside the conditions of its steps; pure."""

from __future__ import annotations

from typing import Any, Final

from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.steps import Failed, Held, Plan, Results, Unseen, Wait, all_done
from capo.errors import CapoError, IdentityError, NotAuthorizedError, OwnerIdCopiedError

AUTHENTICATED: Final = "OpenStackAuthenticationSucceeded"
AUTHENTICATION_FAILED: Final = "OpenStackAuthenticationFailed"


def of_refusal(error: CapoError, *, is_deleting: bool) -> list[Condition]:
    """Return the conditions of a pass that could not begin.

    An outage says nothing of the credentials: what was known of them stays.
    """
    if isinstance(error, IdentityError | NotAuthorizedError):
        types = (AUTHENTICATED, conditions.READY)
        return [Condition(type_, "False", AUTHENTICATION_FAILED, error.sentence) for type_ in types]
    if isinstance(error, OwnerIdCopiedError):
        return [Condition(conditions.READY, "False", error.reason, error.sentence)]
    text = f"Deleting: {error.sentence}" if is_deleting else error.sentence
    return [Condition(conditions.READY, "False", "OpenStackError", text)]


def authentication(results: Results) -> list[Condition]:
    """The credentials worked if any step got an answer; they did not if one was refused."""
    for result in results.values():
        if isinstance(result, Failed) and isinstance(result.error, NotAuthorizedError):
            return [Condition(AUTHENTICATED, "False", AUTHENTICATION_FAILED, result.error.sentence)]
    has_answer = any(not isinstance(result, Held | Unseen) for result in results.values())
    return [Condition(AUTHENTICATED, "True", "Ready")] if has_answer else []


def deleting(plan: Plan[Any], results: Results) -> Condition | None:
    """Return ``Ready`` of an object that goes away; None when the pass found out nothing new."""
    for step in reversed(plan.steps):
        result = results[step.condition]
        if isinstance(result, Failed):
            return Condition(conditions.READY, "False", "OpenStackError", f"Deleting: {result.error.sentence}")
        if isinstance(result, Wait):
            return Condition(conditions.READY, "False", "Deleting", f"{step.condition}: {result.message}")
    if all_done(results):
        return Condition(conditions.READY, "False", "Deleting", "a create whose answer was lost may still take effect")
    return None
