"""The create protocol: no resource is created twice and none is lost, whenever the process dies.

Before a create the intent is stored, after it the id. An intent without an id is an ambiguous create: it is neither
repeated nor forgotten until its window is over and the cloud was listed again. The reasons are in
``docs/adr/0001-ownership-and-create-protocol.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from capo.clock import WallClock
from capo.engine.steps import Create, Wait
from capo.errors import AmbiguousAnswerError, CapoError
from capo.ledger import Ledger


class CacheWriter(Protocol):
    """What the protocol reports to the poller."""

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
    """

    ledger: Ledger
    cache_writer: CacheWriter
    save: Callable[[], None]
    clock: WallClock
    started_s: float
    window_s: float
    report: Callable[[Create, Mapping[str, Mapping[str, Any]] | CapoError], None]

    def carry_out(self, create: Create) -> Wait | None:
        """Create what a step asked for and record it; return a Wait if an earlier attempt may still take effect.

        Raises:
            CapoError: the call failed. A refusal clears the intent; a lost answer keeps it.
        """
        if (left_s := self._window_left_s(create)) > 0:
            text = (
                f"whether the {create.kind} of an earlier attempt was created is not known; "
                "waiting to find it by its stamp before another is created"
            )
            return Wait(AmbiguousAnswerError.reason, text, after_s=left_s)
        self._intend(create)
        made = self._call(create)
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
        """Store the intent; if that fails, restore the previous intents with their start times."""
        before = dict(self.ledger.pending)
        self._note(create.kind, create.roles)
        try:
            self.save()
        except BaseException:
            self.ledger.pending = before
            raise

    def _note(self, kind: str, roles: Iterable[str]) -> None:
        for role in roles:
            self.ledger.intend(kind, role, self.clock.now(), self.clock.wall())

    def _forget(self, roles: Iterable[str]) -> None:
        for role in roles:
            self.ledger.pending.pop(role, None)

    def _call(self, create: Create) -> Mapping[str, Mapping[str, Any]]:
        try:
            return create.call()
        except AmbiguousAnswerError as error:
            sent = create.roles if create.sent is None else tuple(create.sent)
            self._forget(set(create.roles).difference(sent))
            # The window begins when the answer is lost: a service that is slower than our timeout still has the
            # request.
            self._note(create.kind, sent)
            self.report(create, error)
            raise
        except CapoError as error:
            self._forget(create.roles)
            self.report(create, error)
            raise
        finally:
            self.cache_writer.mark_written(create.kind, create.roles)


def deletion_window_left_s(ledger: Ledger, *, now_s: float, window_s: float) -> float:
    """Return the seconds for which the finalizer must stay because an unanswered create may still take effect."""
    return max((p.since_s + window_s - now_s for p in ledger.pending.values()), default=0.0)
