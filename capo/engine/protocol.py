"""The create protocol: nothing is made twice and nothing is lost, wherever the process dies.

Before a create the intent is stored, after it the id; an intent without an id is an ambiguous create, which is neither
repeated nor forgotten before its window is over and the cloud was looked at again. The reasons are in
``docs/adr/0001-ownership-and-create-protocol.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from capo.engine.steps import Create, Wait
from capo.errors import AmbiguousAnswerError, CapoError
from capo.ledger import Ledger


class Sight(Protocol):
    """What the protocol tells the observer."""

    def learn(self, kind: str, body: Mapping[str, Any]) -> None:
        """Take the answer of a create into account."""

    def wrote(self, kind: str, roles: Sequence[str] = ()) -> None:
        """Demand a look that begins after now before anything of this kind is decided from its absence.

        Args:
            roles: those that a create was sent for.
        """

    def made(self, kind: str) -> None:
        """Have it looked within a minute whether a create took effect twice."""


class Clock(Protocol):
    """Time, injected so that tests own it."""

    def now(self) -> float:
        """Return steady seconds, by which all durations are counted: near those since 1970, and never set."""

    def wall(self) -> float:
        """Return seconds since 1970, for what people read: they may be set, so nothing is worked out from them."""


@dataclass(frozen=True)
class CreateProtocol:
    """Carries out the creates of one pass.

    Args:
        ledger: the object's records; changed here.
        sight: the observer, as this pass sees it.
        save: stores the ledger in the object's status, and returns when the API server has it.
        clock: now.
        started_s: when the pass began; the cloud was looked at after that at the latest.
        window_s: how long an unanswered create may still take effect.
        report: called with kind, role and resource of each create, or with its error, for Events.
    """

    ledger: Ledger
    sight: Sight
    save: Callable[[], None]
    clock: Clock
    started_s: float
    window_s: float
    report: Callable[[Create, Mapping[str, Mapping[str, Any]] | CapoError], None]

    def carry_out(self, create: Create) -> Wait | None:
        """Make what a step asked for and record it; or return a Wait while an earlier attempt may still take effect.

        Raises:
            CapoError: the call failed. A refusal clears the intent; an answer that never came leaves it.
        """
        if (left_s := self._window_left_s(create)) > 0:
            return Wait(AmbiguousAnswerError.reason, _unanswered(create), after_s=left_s)
        self._intend(create)
        made = self._call(create)
        for role, body in made.items():
            self.ledger.record(create.kind, role, body["id"])
            self.sight.learn(create.kind, body)
        self.sight.made(create.kind)
        self.report(create, made)
        return None

    def _window_left_s(self, create: Create) -> float:
        unanswered = (self.ledger.pending[role].since_s for role in create.roles if role in self.ledger.pending)
        return max((since_s + self.window_s - self.started_s for since_s in unanswered), default=0.0)

    def _intend(self, create: Create) -> None:
        """Have the intent stored; what is not is as it was before, also how long it was waited for."""
        before = dict(self.ledger.pending)
        self._note(create)
        try:
            self.save()
        except BaseException:
            self.ledger.pending = before
            raise

    def _note(self, create: Create) -> None:
        for role in create.roles:
            self.ledger.intend(create.kind, role, self.clock.now(), self.clock.wall())

    def _call(self, create: Create) -> Mapping[str, Mapping[str, Any]]:
        try:
            return create.call()
        except AmbiguousAnswerError as error:
            # The window begins when the answer is lost: a service that is slower than our limit still has the request.
            self._note(create)
            self.report(create, error)
            raise
        except CapoError as error:
            for role in create.roles:
                self.ledger.pending.pop(role, None)
            self.report(create, error)
            raise
        finally:
            self.sight.wrote(create.kind, create.roles)


def _unanswered(create: Create) -> str:
    return (
        f"whether the {create.kind} of an earlier attempt was made is not known; "
        "it is looked for by its stamp before another is made"
    )


def deletion_window_left_s(ledger: Ledger, *, now_s: float, window_s: float) -> float:
    """Return for how many seconds the finalizer must stay because an unanswered create may still take effect."""
    return max((p.since_s + window_s - now_s for p in ledger.pending.values()), default=0.0)
