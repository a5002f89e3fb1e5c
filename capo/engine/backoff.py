"""Backs off failed steps: per object and step, regardless of what requeues the object."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo.clock import Clock
from capo.engine.steps import Blocked, Failed, NotObserved, Result, Results, Wait
from capo.errors import (
    CapoError,
    IdentityError,
    NotAuthorizedError,
    RateLimitedError,
    ReferenceNotFoundError,
    ServerFailedError,
    TerminalError,
    without_frames,
)
from capo.kube.kinds import Key

FIRST_S: Final = 2.0
SECOND_S: Final = 15.0
CEILING_S: Final = 120.0
CREDENTIALS_S: Final = 10.0
RATE_LIMITED_S: Final = 30.0


def pause_s(error: CapoError, failures: int) -> float:
    """Return the backoff after the n-th consecutive failure, in seconds, without jitter.

    2 s once, then 15 s doubling to 120 s, so that a failing object makes few requests a minute. A dangling reference
    starts at 15 s: resolving it takes about three requests. While credentials are refused the Secret is read every 10
    s. A rate limit's Retry-After is obeyed; if the limit persists, the pause exceeds it.
    """
    if isinstance(error, IdentityError | NotAuthorizedError):
        return CREDENTIALS_S
    if isinstance(error, ReferenceNotFoundError):
        failures += 1
    pause = FIRST_S if failures <= 1 else min(CEILING_S, SECOND_S * 2.0 ** min(failures - 2, 10))
    if isinstance(error, RateLimitedError):
        return max(error.retry_after_s or RATE_LIMITED_S, pause)
    return pause


@dataclass(frozen=True)
class _Failure:
    error: CapoError
    count: int
    until_s: float
    world: tuple[Any, ...]


@dataclass(frozen=True)
class Guard:
    """Keeps steps that are backing off from running in this reconcile; each reports its earlier failure instead."""

    resting: Mapping[str, Failed]

    def __call__(self, step: str) -> Failed | None:
        """Return the earlier failure of a step that is backing off, None for one that may run."""
        return self.resting.get(step)


@dataclass
class Backoff:
    """Remembers which steps of which objects failed, and until when they back off."""

    clock: Clock
    _failures: dict[Key, dict[str, _Failure]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._failures)

    def guard_of(self, key: Key, obj: Mapping[str, Any]) -> Guard:
        """Return the guard of one reconcile; an edit of the object ends every backoff at once."""
        now_s = self.clock.now()
        return Guard(
            {
                step: Failed(failure.error)
                for step, failure in self._failures.get(key, {}).items()
                if failure.world == _world(obj) and now_s < failure.until_s
            }
        )

    def note(self, key: Key, obj: Mapping[str, Any], results: Results, guard: Guard) -> float | None:
        """Record the results of a reconcile; return the seconds until the first backoff ends, None without one."""
        before = self._failures.get(key, {})
        after = {
            # NotObserved, Blocked and Wait do not prove that a step succeeds: what it waits for, such as the next
            # volume, may fail again. Only a success resets the count.
            name: before.get(name)
            if name in guard.resting or isinstance(result, NotObserved | Blocked | Wait)
            else self._noted(before.get(name), result, obj)
            for name, result in results.items()
        }
        failures = {name: failure for name, failure in after.items() if failure}
        if not failures:
            self._failures.pop(key, None)
            return None
        self._failures[key] = failures
        now_s = self.clock.now()
        # A step whose backoff ended while the reconcile ran was not retried in it: it is due at once.
        due = (
            max(0.0, f.until_s - now_s) for name, f in failures.items() if name in guard.resting or f.until_s > now_s
        )
        return min(due, default=None)

    def _noted(self, before: _Failure | None, result: Result, obj: Mapping[str, Any]) -> _Failure | None:
        # A failed server is found by a list that runs anyway: another check is free and must not be delayed.
        if not isinstance(result, Failed) or isinstance(result.error, ServerFailedError):
            return None
        count = before.count + 1 if before and before.world == _world(obj) else 1
        pause = CEILING_S if isinstance(result.error, TerminalError) else pause_s(result.error, count)
        jitter = random.uniform(0.9, 1.1)  # noqa: S311 - spreads retries, no secret
        return _Failure(without_frames(result.error), count, self.clock.now() + pause * jitter, _world(obj))

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a deleted object."""
        self._failures.pop(key, None)


def _world(obj: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata = obj["metadata"]
    return (metadata.get("uid"), metadata.get("generation"), bool(metadata.get("deletionTimestamp")))
