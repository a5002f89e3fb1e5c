"""How current the lists of a project are, and what they cannot prove yet. Source of the rules: ADR 0001."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final, NoReturn

from capo.errors import NotYetObserved
from capo.ledger import Ledger, Pending
from capo.openstack.kinds import KINDS
from capo.openstack.list_poller import ListPoller
from capo.openstack.resource_cache import NEVER_S

LOOKS_S: Final = (3.0, 15.0, float("inf"))
"""Seconds after the begin of a create with a lost answer at which it is searched for; limited to its window."""


class ListFreshness:
    """Decides for one reconcile of one object which lists are recent enough, and demands those that are missing.

    Args:
        owner_id: the 13 characters that the object's stamps carry.
        key: the key that the poller wakes.
        is_taken_over: another provider created the object's resources: unstamped ones may be adopted.
        started_s: when the reconcile began.
        window_s: how long a create whose answer was lost may still take effect.
        max_age_s: a list that is older is repeated.
    """

    def __init__(  # noqa: PLR0913 - the facts of a reconcile, each named at the one call
        self,
        poller: ListPoller,
        ledger: Ledger,
        *,
        owner_id: str,
        key: Hashable,
        is_taken_over: bool,
        started_s: float,
        window_s: float,
        max_age_s: float,
    ) -> None:
        self._poller = poller
        self._owners = poller.owners
        self._ledger = ledger
        self._owner_id = owner_id
        self._key = key
        self._is_taken_over = is_taken_over
        self._started_s = started_s
        self._window_s = window_s
        self._max_age_s = max_age_s

    def is_young(self, kind: str, as_of_s: float, max_age_s: float | None = None) -> bool:
        """Return whether a state from that time is recent enough for this reconcile."""
        limit_s = self._max_age_s * KINDS[kind].age_factor if max_age_s is None else max_age_s
        return self._started_s - as_of_s <= limit_s

    def expect(self, kind: str, not_before_s: float, max_age_s: float | None = None) -> None:
        """Require a complete list that began at ``not_before_s`` or later and is not too old.

        Raises:
            NotYetObserved: there is none; it was demanded.
        """
        if not self.has(kind, not_before_s, max_age_s):
            self.demand(kind, not_before_s)

    def demand(self, kind: str, not_before_s: float) -> NoReturn:
        """Demand a list that begins at ``not_before_s`` or later.

        Raises:
            NotYetObserved: it was demanded; the poller wakes the object.
            CapoError: the lists fail; they are retried.
        """
        self._poller.demand(kind, self._key, not_before_s)
        if error := self._poller.error(kind):
            raise error.with_traceback(None)
        raise NotYetObserved(kind)

    def has(self, kind: str, not_before_s: float, max_age_s: float | None = None) -> bool:
        """Return whether there is a complete list that began at ``not_before_s`` or later and is not too old."""
        began_s = self._poller.began_s(kind)
        return began_s >= not_before_s and began_s != NEVER_S and self.is_young(kind, began_s, max_age_s)

    def unsettled_s(self, kind: str) -> float:
        """Return the time before which a list cannot prove absence: the later of ``unproven_s`` and the last doubt."""
        return max(self._owners.unproven_s(self._owner_id, kind), self._doubted_s(kind))

    def _doubted_s(self, kind: str) -> float:
        """Return the first moment after a resource that may be this owner's was last in doubt; ignores other owners."""
        doubted_s = self._poller.doubted_s(kind, self._owner_id, may_adopt=self._is_taken_over)
        # The list whose result was acted upon may have begun in the same moment of a coarse clock.
        return doubted_s if doubted_s == NEVER_S else math.nextafter(doubted_s, math.inf)

    def expect_current(self, kind: str) -> None:
        """Require complete knowledge of this owner's resources of a kind, newer than its last write."""
        wrote_s = self.unsettled_s(kind)
        pending = self._pending(kind)
        is_certain = self._poller.began_s(kind) >= self._doubted_s(kind)
        if self._owners.was_born_here(self._owner_id) and not self._is_taken_over and not pending and is_certain:
            ids = [record.id for record in self._ledger.records_of_kind(kind)]
            items = [self._poller.item(kind, id_) for id_ in ids]
            items += self._poller.of_owner(kind, self._owner_id)
            if all(item is not None and item.as_of_s >= wrote_s for item in items):
                return
        self.expect(kind, max([wrote_s, *(self.decided_s(each) for each in pending)]))

    # -- creates whose answer was lost --------------------------------------------------------------------------------

    def pending_until(self, kind: str) -> float | None:
        """Return when the last unanswered create of a kind can no longer take effect; None if there is none."""
        return max((pending.since_s + self._window_s for pending in self._pending(kind)), default=None)

    def look_again(self, kind: str, pending: Pending) -> None:
        """List the kind a few times while an unanswered create may still take effect.

        Raises:
            CapoError: the lists fail; they are retried.
        """
        for pause_s in LOOKS_S:
            if pending.since_s + min(pause_s, self._window_s) > self._started_s:
                self._poller.demand(kind, self._key, pending.since_s + min(pause_s, self._window_s))
                break
        if error := self._poller.trouble(kind):
            raise error.with_traceback(None)

    def decided_s(self, pending: Pending) -> float:
        """Return the earliest begin of a list that is conclusive about an unanswered create."""
        over_s = pending.since_s + self._window_s
        return over_s if self._started_s >= over_s else pending.since_s

    def _pending(self, kind: str) -> list[Pending]:
        return [pending for pending in self._ledger.pending.values() if pending.kind == kind]

    def expect_nothing_late(self, kind: str) -> None:
        """Require that every unanswered create of a kind is decided."""
        if (decided_s := self._owners.decided_s(self._owner_id)) != NEVER_S:
            self.expect(kind, decided_s)
        until_s = self.pending_until(kind)
        if until_s is None:
            return
        if self._started_s < until_s:
            self.look_again(kind, max(self._pending(kind), key=lambda pending: pending.since_s))
            raise NotYetObserved(kind)
        for pending in self._pending(kind):
            self._ledger.drop(pending.role)
