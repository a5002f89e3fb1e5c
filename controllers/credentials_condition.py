"""The condition of credentials that work and need attention; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.errors import CapoError, IdentityError, NotAuthorizedError
from controllers.credential_secrets import NotAccepted

TYPE: Final = "CredentialsCurrent"
NOT_ACCEPTED: Final = "NewCredentialsNotAccepted"
EXPIRE: Final = "CredentialsExpire"
EXPIRE_SOON: Final = "CredentialsExpireSoon"
AGAIN: Final = "It is read again when an object with this identityRef is edited or annotated, and at each resync."
DAY_S: Final = 86_400.0
EARLY_S: Final = 14 * DAY_S
SOON_S: Final = 3 * DAY_S


def of(
    described: str, not_accepted: NotAccepted | None, *, expires_s: float | None = None, now_s: float = 0.0
) -> Condition | None:
    """Return the condition to show, None if nothing needs attention.

    Args:
        described: where the credentials are.
        expires_s: when they expire, seconds since 1970; None if they do not, or if that is unknown.
        now_s: seconds since 1970.
    """
    if not_accepted is not None:
        text = f"{described}: no login succeeds with the present content, the former credentials are in use"
        end = "" if expires_s is None else f" until their application credential or trust {_expires(expires_s)}"
        return Condition(TYPE, "False", NOT_ACCEPTED, f"{text}{end}: {_advised(not_accepted.error).sentence}")
    if expires_s is None or expires_s - now_s > EARLY_S:
        return None
    reason = EXPIRE_SOON if expires_s - now_s <= SOON_S else EXPIRE
    text = f"{described}: the application credential or trust {_expires(expires_s)}"
    return Condition(TYPE, "False", reason, f"{text}; replace it in the Secret before that")


def _advised(error: CapoError) -> CapoError:
    """Return the error with when the Secret is read again: more rarely than without credentials that work."""
    found = error.retried(AGAIN)
    if found.next_step == type(found).advice and isinstance(found, IdentityError | NotAuthorizedError):
        found.next_step = "Correct the Secret."
    return found


def _expires(expires_s: float) -> str:
    return f"expires at {conditions.timestamp(expires_s)}"


def split(found: Condition | None) -> tuple[list[Condition], list[str]]:
    """Return the conditions to show, and the types that no longer apply."""
    return ([found], []) if found else ([], [TYPE])


def is_new(condition: Condition, obj: Mapping[str, Any]) -> bool:
    """Return whether an object does not show a condition for this reason yet."""
    shown = conditions.find((obj.get("status") or {}).get("conditions") or (), condition.type)
    return shown is None or shown["reason"] != condition.reason
