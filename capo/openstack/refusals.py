"""Logins that failed lately: nobody tries the same credentials again at once, however many objects use them.

Keystone locks users out after a few wrong passwords, and one that does not answer holds up each who asks. A Secret
that was mended has other credentials and so another cloud, which knows of no refusal. A service that is too old for the
microversion of all calls is asked as rarely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from capo.errors import CapoError, NotAuthorizedError, UnsupportedByCloudError

REFUSED_S: Final = (30.0, 120.0)
UNANSWERED_S: Final = (5.0, 60.0)
"""First and longest pause."""


@dataclass(frozen=True)
class _Refusal:
    error: CapoError
    pause_s: float
    until_s: float


class Refusals:
    """What each service of one cloud refused, by a name for what was asked of it; thread safe."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_service: dict[str, _Refusal] = {}

    def check(self, service: str) -> None:
        """Do nothing unless the service refused the credentials lately.

        Raises:
            CapoError: it did, in its words of then.
        """
        refusal = self._by_service.get(service)
        if refusal is not None and self._now() < refusal.until_s:
            raise refusal.error.with_traceback(None)

    def note(self, service: str, error: CapoError) -> None:
        """Note a refusal; the pause until the next try grows with each."""
        is_lasting = isinstance(error, NotAuthorizedError | UnsupportedByCloudError)
        first_s, longest_s = REFUSED_S if is_lasting else UNANSWERED_S
        before = self._by_service.get(service)
        pause_s = min(longest_s, max(first_s, 2 * before.pause_s if before else 0.0))
        self._by_service[service] = _Refusal(error, pause_s, self._now() + pause_s)

    def accepted(self, service: str) -> None:
        """Note that the service took the credentials."""
        self._by_service.pop(service, None)
