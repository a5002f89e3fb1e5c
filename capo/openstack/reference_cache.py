"""Answers about resources that others own (images, flavors, networks of the user), cached for a minute.

A hundred machines that name one image cost one request: concurrent callers wait for the first one's answer. A missing
resource may appear at any moment: that answer is cached for a second, and the reconcile repeats after that. Other
failures are not cached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from capo import caches
from capo.errors import IdentityError, NotAuthorizedError, NotFoundError

T = TypeVar("T")

KEPT_S: Final = 60.0
MISSING_KEPT_S: Final = 1.0
"""Less than the pause before a failed reconcile is retried."""
MAX_ENTRIES: Final = 4096


@dataclass
class _Entry:
    answer: Future[Any] = field(default_factory=Future)
    ends_s: float = float("inf")


class ReferenceCache:
    """Cache of one cloud; thread safe."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._entries: dict[Hashable, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, ask: Callable[[], Any]) -> Any:
        """Return the answer to a question, from the cache if it is less than a minute old."""
        with self._lock:
            entry = self._entries.get(key)
            is_mine = entry is None or self._now() > entry.ends_s
            if is_mine:
                self._make_room()
                entry = self._entries[key] = _Entry()
        assert entry is not None  # noqa: S101 - for the type checker: is_mine covers None
        if is_mine:
            return self._asked(key, entry, ask)
        try:
            return entry.answer.result()
        except (IdentityError, NotAuthorizedError):
            return ask()  # the other caller may have other credentials, and only those were refused

    def find(self, key: Hashable, ask: Callable[[], Sequence[T]], is_wanted: Callable[[T], bool]) -> T | None:
        """Return the first wanted item of a cached list; list again before it counts as missing.

        None proves that the list lacks it: it was complete, and it was read after this call began.
        """
        asked_now: list[Sequence[T]] = []

        def asked() -> Sequence[T]:
            asked_now.append(ask())
            return asked_now[0]

        known: Sequence[T] = self.get(key, asked)
        found = next(filter(is_wanted, known), None)
        if found is None and not asked_now:
            found = next(filter(is_wanted, asked()), None)
        return found

    def _asked(self, key: Hashable, entry: _Entry, ask: Callable[[], Any]) -> Any:
        try:
            answer = ask()
        except NotFoundError as error:
            entry.ends_s = self._now() + MISSING_KEPT_S
            entry.answer.set_exception(error)
            raise
        except BaseException as error:
            with self._lock:
                if self._entries.get(key) is entry:
                    del self._entries[key]
            entry.answer.set_exception(error)
            raise
        entry.ends_s = self._now() + KEPT_S
        entry.answer.set_result(answer)
        return answer

    def _make_room(self) -> None:
        if len(self._entries) >= MAX_ENTRIES:
            now_s = self._now()
            old = [key for key, entry in self._entries.items() if now_s > entry.ends_s]
            surplus = old or list(self._entries)[:1]
            for key in surplus:
                del self._entries[key]
            caches.evicted("cloud_lookups", len(surplus))
