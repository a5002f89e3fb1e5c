"""Backoff after refused logins: the same credentials are not retried at once, however many objects use them.

Keystone locks users out after a few wrong passwords, and one that does not answer blocks each caller. A corrected
Secret has other credentials and so another cloud, without refusals. A service too old for the microversion of all calls
is retried as rarely.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from capo.errors import CapoError, IdentityError, NotAuthorizedError, UnsupportedByCloudError

REFUSED_S: Final = (30.0, 120.0)
UNANSWERED_S: Final = (5.0, 60.0)
"""First and longest pause."""
_OF_CREDENTIALS: Final = (IdentityError, NotAuthorizedError)


@dataclass(frozen=True)
class _Refusal:
    error: CapoError
    pause_s: float
    until_s: float


class AuthBackoff:
    """Refusals of each service of one cloud, by a name of the request; thread safe."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_service: dict[str, _Refusal] = {}
        self.accepted_s = -math.inf
        """When a service that was asked last accepted the credentials; before all times if one refused them since."""

    def check(self, service: str) -> None:
        """Raise the error of a recent refusal, if there is one.

        Raises:
            CapoError: the service refused the credentials; the error of that time.
        """
        refusal = self._by_service.get(service)
        if refusal is not None and self._now() < refusal.until_s:
            raise refusal.error.with_traceback(None)

    def note(self, service: str, error: CapoError) -> None:
        """Record a refusal; the pause until the next try grows with each."""
        is_lasting = isinstance(error, NotAuthorizedError | UnsupportedByCloudError)
        first_s, longest_s = REFUSED_S if is_lasting else UNANSWERED_S
        before = self._by_service.get(service)
        pause_s = min(longest_s, max(first_s, 2 * before.pause_s if before else 0.0))
        self._by_service[service] = _Refusal(error, pause_s, self._now() + pause_s)
        if isinstance(error, _OF_CREDENTIALS):
            self.accepted_s = -math.inf

    @property
    def was_accepted(self) -> bool:
        """Whether a service accepted the credentials that was asked, and none refused them since."""
        return self.accepted_s > -math.inf

    @property
    def refusal(self) -> CapoError | None:
        """Why a service refused the credentials, unless it accepted them since."""
        errors = [refusal.error for refusal in list(self._by_service.values())]
        return next((error for error in errors if isinstance(error, _OF_CREDENTIALS)), None)

    def accepted(self, service: str, *, was_asked: bool = True) -> None:
        """Forget the service's refusal; record that it accepted the credentials, if it was asked."""
        self._by_service.pop(service, None)
        if was_asked:
            self.accepted_s = self._now()
