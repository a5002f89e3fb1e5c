"""The condition of credentials that work and need attention; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.engine import conditions
from capo.engine.conditions import Condition
from controllers.credentials import NotAccepted

TYPE: Final = "CredentialsCurrent"
NOT_ACCEPTED: Final = "NewCredentialsNotAccepted"


def of(described: str, not_accepted: NotAccepted | None) -> Condition | None:
    """Return the condition to show, None if nothing needs attention.

    Args:
        described: where the credentials are.
    """
    if not_accepted is None:
        return None
    text = f"{described}: no login succeeds with the present content, the former credentials are in use"
    return Condition(TYPE, "False", NOT_ACCEPTED, f"{text}: {not_accepted.error.sentence}")


def is_new(condition: Condition, obj: Mapping[str, Any]) -> bool:
    """Return whether an object does not show a condition for this reason yet."""
    shown = conditions.find((obj.get("status") or {}).get("conditions") or (), condition.type)
    return shown is None or shown["reason"] != condition.reason
