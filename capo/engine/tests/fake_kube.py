"""Kubernetes, a clock and Events for unit tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capo.kube.in_memory import InMemoryKube, merge_patch

__all__ = ["FakeClock", "FakeKube", "RecordedEvents", "merge_patch"]

FakeKube = InMemoryKube


class FakeClock:
    """A clock that only tests advance."""

    def __init__(self, now_s: float = 1_800_000_000.0) -> None:
        self.now_s = now_s
        self.set_by_s = 0.0

    def now(self) -> float:
        return self.now_s

    def wall(self) -> float:
        """Return the wall clock, which a test may have set."""
        return self.now_s + self.set_by_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


class RecordedEvents:
    """Collects Events instead of writing them."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []
        """Type, reason and message of each."""

    def emit(self, obj: Mapping[str, Any], type_: str, reason: str, message: str, action: str | None = None) -> None:
        self.seen.append((type_, reason, message))

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.seen]
