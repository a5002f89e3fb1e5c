"""Whether the Identity service answers, for all credentials that share a state: one that hangs would block each.

While it does not answer, one of them asks it at a time, with a pause; the others go on unconfirmed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

UNCONFIRMED_S: Final = 30.0
"""Pause after a question that the Identity service did not answer."""


class IdentityOutage:
    """An outage of the Identity service, as its callers notice it; thread safe.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._until_s = -math.inf

    @property
    def is_on(self) -> bool:
        """Whether to ask later: the service did not answer a moment ago, or another caller asks it again."""
        return self._now() < self._until_s

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask the service in this block, which ends normally if there is no answer: :meth:`begin` reports that."""
        with self._lock:
            is_trial = self._until_s > -math.inf
            if is_trial:
                self._until_s = math.inf
        try:
            yield
        finally:
            with self._lock:
                if is_trial and self._until_s == math.inf:
                    self._until_s = -math.inf

    def begin(self) -> None:
        """Record that the service did not answer."""
        with self._lock:
            self._until_s = self._now() + UNCONFIRMED_S
