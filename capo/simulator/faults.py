"""Injected faults: which request fails, and how.

A fault is a JSON document, `{"match": {...}, "effect": {...}}`; `docs/reference/simulator.md` has examples. This module
only selects; `server` applies the effect.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeVar

from capo.simulator.counters import Call, is_write

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Match:
    """The requests that a fault applies to; an absent field matches everything.

    Args:
        route: The route's template, `*` allowed, such as `/v2.0/ports/{id}`.
        path: The path without the service's prefix, `*` allowed; distinguishes two resources of one route.
        nth: Only the n-th request that matches the rest, from 1, counted since the fault was added.
        first: With `last`, the range of such requests.
        write: The n-th write to OpenStack overall since the counters were reset.
        contains: A text that the request's body must contain.
    """

    service: str | None = None
    method: str | None = None
    route: str | None = None
    path: str | None = None
    project: str | None = None
    contains: str | None = None
    nth: int | None = None
    first: int | None = None
    last: int | None = None
    write: int | None = None
    writes_only: bool = False

    def covers(self, call: Call, body: str) -> bool:
        """Return whether the request matches, regardless of its position."""
        wanted = (
            (self.service, call.service),
            (self.project, call.project_id),
            (None if self.method is None else self.method.upper(), call.method),
            (self.write, call.write_number),
        )
        if any(want is not None and want != have for want, have in wanted):
            return False
        if self.writes_only and not is_write(call.service, call.method):
            return False
        # A template has braces, not brackets, so that fnmatch matches it literally except for its stars.
        globs = ((self.route, call.route), (self.path, call.path))
        if any(want is not None and not fnmatchcase(have, want) for want, have in globs):
            return False
        return self.contains is None or self.contains in body

    def covers_position(self, position: int) -> bool:
        """Return whether the position among the matching requests matches."""
        if self.nth is not None:
            return position == self.nth
        return (self.first or 1) <= position and (self.last is None or position <= self.last)


@dataclass(frozen=True, slots=True)
class Effect:
    """What happens to the request.

    Args:
        status: Answer this without executing it; `message` and `kind` in the service's wording, or `body` verbatim.
        delay_s: Wait so long first.
        hang: Hold the connection so long, then close it; nothing takes effect.
        cut: Close the connection without an answer, `before` or `after` it took effect.
        late: Close the connection at once; it takes effect so many seconds later.
        again: Answer; it takes effect once more so many seconds later, as with a proxy that repeats requests.
        kill: Process id that gets SIGKILL, at the moment that `when` names; with `late` at once.
    """

    status: int | None = None
    message: str = "The simulator was told to refuse this."
    kind: str = ""
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    hang: float | None = None
    cut: Literal["before", "after"] | None = None
    late: float | None = None
    again: float | None = None
    kill: int | None = None
    when: Literal["before", "after_effect", "after_answer"] = "before"


@dataclass(slots=True)
class Order:
    """An active fault, with the number of its matches and of its effects."""

    id: str
    match: Match
    effect: Effect
    until: float | None = None
    seen: int = 0
    struck: int = 0
    document: dict[str, Any] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """Return the fault as JSON."""
        return {"id": self.id, **self.document, "seen": self.seen, "struck": self.struck}


class BadFaultError(ValueError):
    """The document is no valid fault."""


class FaultBook:
    """The active faults."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.orders: list[Order] = []
        self._clock = clock
        self._ids = itertools.count(1)

    def add(self, document: dict[str, Any]) -> Order:
        """Add a fault.

        Args:
            document: `{"match": {...}, "effect": {...}, "for_s": seconds}`; without `for_s` until it is removed.

        Raises:
            BadFaultError: An unknown key, or a value of the wrong type.
        """
        unknown = set(document) - {"match", "effect", "for_s"}
        if unknown:
            raise BadFaultError(f"unknown keys: {', '.join(sorted(unknown))}")
        match, effect = _build(Match, document.get("match", {})), _build(Effect, document.get("effect", {}))
        if effect == Effect():
            raise BadFaultError("the fault has no effect")
        if effect.cut not in {None, "before", "after"} or effect.when not in {"before", "after_effect", "after_answer"}:
            raise BadFaultError("cut is before or after; when is before, after_effect or after_answer")
        for_s = document.get("for_s")
        until = None if for_s is None else self._clock() + float(for_s)
        order = Order(str(next(self._ids)), match, effect, until, document=document)
        self.orders.append(order)
        return order

    def clear(self) -> None:
        """Remove every fault."""
        self.orders.clear()

    def remove(self, order_id: str) -> None:
        """Remove one fault; a missing one is fine."""
        self.orders = [order for order in self.orders if order.id != order_id]

    def choose(self, call: Call, body: bytes) -> Order | None:
        """Return the first fault that affects this request; every fault that matches counts it."""
        text = body.decode(errors="replace")
        now = self._clock()
        self.orders = [order for order in self.orders if order.until is None or now < order.until]
        chosen = None
        for order in self.orders:
            if not order.match.covers(call, text):
                continue
            order.seen += 1
            if chosen is None and order.match.covers_position(order.seen):
                order.struck += 1
                chosen = order
        return chosen


def _build(kind: type[T], values: dict[str, Any]) -> T:
    unknown = set(values) - {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown:
        raise BadFaultError(f"unknown keys in {kind.__name__.lower()}: {', '.join(sorted(unknown))}")
    return kind(**values)
