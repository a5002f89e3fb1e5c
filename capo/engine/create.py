"""The create protocol: no resource is created twice and none is lost, whenever the process dies.

Before a create the intent is stored, after it the id. An intent without an id is an ambiguous create: it is neither
repeated nor forgotten until its window is over and the cloud was listed again. The reasons are in
``docs/adr/0001-ownership-and-create-protocol.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from capo.clock import WallClock
from capo.engine import metrics
from capo.engine.steps import Create, Wait
from capo.errors import AmbiguousAnswerError, CapoError, QuotaExceededError
from capo.ledger import Ledger

AHEAD_S: Final = 5.0
"""So long an intent that was stored ahead may be acted upon: other processes count their window from when they read it,
so it must be much shorter than that."""


class Hold(Protocol):
    """Why a create has to wait for a quota."""

    @property
    def message(self) -> str:
        """What is exhausted, and what a user can do."""

    @property
    def after_s(self) -> float:
        """Seconds after which the object asks again at the latest."""


class CacheWriter(Protocol):
    """What the protocol reports to the poller, and asks of what is known of the project."""

    def hold(self, create: Create) -> Hold | None:
        """Return why a create has to wait for a quota; None if it may be sent, whose end ``settle`` reports.

        Raises:
            NotYetObserved: the limits are being read; the object is woken then.
        """

    def settle(self, create: Create, error: CapoError | None) -> None:
        """Report how a create ended."""

    def upsert(self, kind: str, body: Mapping[str, Any]) -> None:
        """Add the answer of a create."""

    def mark_written(self, kind: str, roles: Sequence[str] = ()) -> None:
        """Require a list that begins after now before anything of this kind counts as absent.

        Args:
            roles: those that a create was sent for.
        """

    def mark_created(self, kind: str) -> None:
        """Schedule a list within a minute that shows whether a create took effect twice."""


@dataclass(frozen=True)
class CreateProtocol:
    """Carries out the creates of one reconcile.

    Args:
        ledger: the object's records; changed here.
        cache_writer: the poller, as this reconcile sees it.
        save: stores the ledger in the object's status, and returns when the API server has it.
        clock: now.
        started_s: when the reconcile began; the cloud was listed after that at the latest.
        window_s: how long an unanswered create may still take effect.
        report: called with kind, role and resource of each create, or with its error, for Events.
        is_saved: returns whether all that ``save`` stores beside the ledger is stored as it is now.
    """

    ledger: Ledger
    cache_writer: CacheWriter
    save: Callable[[], None]
    clock: WallClock
    started_s: float
    window_s: float
    report: Callable[[Create, Mapping[str, Mapping[str, Any]] | CapoError], None]
    is_saved: Callable[[], bool] = lambda: True

    def carry_out(self, create: Create) -> Wait | None:
        """Create what a step asked for and record it; return a Wait if an earlier attempt may still take effect.

        It also waits, before the intent is stored, while a quota of the project has no room.

        Raises:
            CapoError: the call failed. A refusal clears the intent; a lost answer keeps it.
        """
        if (left_s := self._window_left_s(create)) > 0:
            text = (
                f"whether the {create.kind} of an earlier attempt was created is not known; "
                "waiting to find it by its stamp before another is created"
            )
            return Wait(AmbiguousAnswerError.reason, text, after_s=left_s)
        if hold := self.cache_writer.hold(create):
            create.note_hold(QuotaExceededError.reason, hold.message)
            return Wait(QuotaExceededError.reason, hold.message, after_s=hold.after_s)
        metrics.AMBIGUOUS_CREATES.labels(create.kind)  # an increase needs the zero before the first one
        is_repeated = any(role in self.ledger.pending for role in create.roles)
        self._intend(create)
        try:
            made = self._call(create)
        finally:
            if is_repeated:
                self.cache_writer.mark_created(create.kind)  # the first one may take effect after its window
        for role, body in made.items():
            self.ledger.record(create.kind, role, body["id"])
            self.cache_writer.upsert(create.kind, body)
        self.cache_writer.mark_created(create.kind)
        self.report(create, made)
        return None

    def _window_left_s(self, create: Create) -> float:
        unanswered = (self.ledger.pending[role].since_s for role in create.roles if role in self.ledger.pending)
        return max((since_s + self.window_s - self.started_s for since_s in unanswered), default=0.0)

    def _intend(self, create: Create) -> None:
        """Store the intent, with those of the creates that follow; if that fails, restore the previous intents.

        An intent that was stored ahead is not stored again.
        """
        if self._is_stored_ahead(create.roles):
            self.ledger.begin(create.roles)
            return
        before, ahead = dict(self.ledger.pending), dict(self.ledger.ahead)
        self._note(create.kind, create.roles)
        self._note_ahead([*((each.kind, each.role) for each in ahead.values()), *create.next])
        try:
            self.save()
        except BaseException:
            self.ledger.pending, self.ledger.ahead = before, ahead
            raise

    def _is_stored_ahead(self, roles: Iterable[str]) -> bool:
        stored = [self.ledger.ahead.get(role) for role in roles]
        since_s = self.clock.now() - AHEAD_S
        return all(each is not None and each.since_s >= since_s for each in stored) and self.is_saved()

    def _note_ahead(self, coming: Iterable[tuple[str, str]]) -> None:
        self.ledger.ahead.clear()
        for kind, role in coming:
            self.ledger.intend_ahead(kind, role, self.clock.now(), self.clock.wall())

    def _note(self, kind: str, roles: Iterable[str]) -> None:
        for role in roles:
            self.ledger.intend(kind, role, self.clock.now(), self.clock.wall())

    def _forget(self, roles: Iterable[str]) -> None:
        for role in roles:
            self.ledger.pending.pop(role, None)

    def _call(self, create: Create) -> Mapping[str, Mapping[str, Any]]:
        try:
            made = create.call()
            self.cache_writer.settle(create, None)
            return made
        except AmbiguousAnswerError as error:
            self.cache_writer.settle(create, error)
            metrics.AMBIGUOUS_CREATES.labels(create.kind).inc()
            sent = create.roles if create.sent is None else tuple(create.sent)
            self._forget(set(create.roles).difference(sent))
            # The window begins when the answer is lost: a service that is slower than our timeout still has the
            # request.
            self._note(create.kind, sent)
            self.report(create, error)
            raise
        except CapoError as error:
            self.cache_writer.settle(create, error)
            self._forget(create.roles)
            self.report(create, error)
            raise
        finally:
            self.cache_writer.mark_written(create.kind, create.roles)


def deletion_window_left_s(ledger: Ledger, *, now_s: float, window_s: float) -> float:
    """Return the seconds for which the finalizer must stay because an unanswered create may still take effect."""
    return max((p.since_s + window_s - now_s for p in ledger.pending.values()), default=0.0)
