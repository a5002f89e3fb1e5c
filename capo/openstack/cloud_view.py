"""The cloud as one reconcile sees it, and what may be concluded from that.

``find`` returns None only when an absence is proven: by a complete list that began after the object's last write and,
after a create whose answer was lost, after its window. State that is not known yet is demanded from the poller, and
:class:`NotYetObserved` is raised; the poller wakes the object. Source of the rules: ADR 0001.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from capo.clock import Clock
from capo.errors import (
    AmbiguousMatchError,
    CapoError,
    CloudUnavailableError,
    ForeignResourceError,
    NotAuthorizedError,
    NotFoundError,
    QuotaExceededError,
    RateLimitedError,
)
from capo.json_types import Body
from capo.ledger import Ledger
from capo.names import Stamp
from capo.openstack.duplicates import Duplicates
from capo.openstack.kinds import KINDS, SERVER, ResourceKind
from capo.openstack.list_freshness import ListFreshness
from capo.openstack.provenance import Provenance
from capo.openstack.quota import Needs
from capo.openstack.quota_holds import Hold, Request
from capo.openstack.resource_cache import BY_NAME, FASTEST_S, NEVER_S, Item, Selection, everything, found_by

if TYPE_CHECKING:
    from capo.openstack.cloud import Cloud

log = logging.getLogger(__name__)

Upstream = Callable[[Body], bool]

POLL_S: Final = 900.0
LOOKS_TO_END: Final = 6
"""A deletion is confirmed within this many list durations: two pauses of two, and two lists."""
UNREADABLE_S: Final = 60.0
"""Pause before a kind is listed again after a list that a down cell left incomplete."""
CONTRADICTED_S: Final = 3.0
"""Pause before the list that confirms a deletion answered by 404: a service may contradict itself."""
AFTERMATH_S: Final = 25.0
"""Delay after a create before it is checked for having taken effect twice, or after it was given up."""
AFTERMATH_GRID_S: Final = 30.0
"""Creates within this time share one such list."""


class Creation(Protocol):
    """What is about to be created: the engine's ``Create``."""

    @property
    def kind(self) -> str:
        """Kind of all resources."""

    @property
    def roles(self) -> Sequence[str]:
        """One for each resource."""

    @property
    def needs(self) -> Callable[[], Needs] | None:
        """Returns what the quotas must have room for; None: the resources alone."""

    @property
    def is_doubtful(self) -> bool:
        """Whether the room is looked up before anything named a quota."""


class CloudView:
    """View of the cloud for one reconcile of one object.

    Args:
        owner_id: the 13 characters that the object's stamps carry.
        key: the key that the poller wakes.
        is_taken_over: another provider created the object's resources: unstamped ones may be adopted.
        uid: uid of the object; lists that began before this process registered it prove no absence.
        common_name: part of the name or the description of all that is created for the object; empty admits any name.
        is_recorded_elsewhere: returns whether another object has recorded a resource, given kind and id.
        is_newborn: the owner id was generated in this reconcile: no resource in the cloud has it yet.
        is_history_lost: the object has no records or intents, as after a move: a create may be in flight.
        started_s: when the reconcile began.
        window_s: how long a create whose answer was lost may still take effect.
        max_age_s: a list that is older is repeated.
        was_held: the object's status says that it waits for a quota.
    """

    def __init__(  # noqa: PLR0913 - the facts of a pass, each named at the one call
        self,
        cloud: Cloud,
        ledger: Ledger,
        *,
        owner_id: str,
        key: Hashable,
        clock: Clock,
        uid: str = "",
        common_name: str = "",
        is_recorded_elsewhere: Callable[[str, str], bool] = lambda _kind, _id: False,
        is_taken_over: bool = False,
        is_newborn: bool = False,
        is_history_lost: bool = False,
        started_s: float | None = None,
        window_s: float = 60.0,
        max_age_s: float = 600.0,
        was_held: bool = False,
    ) -> None:
        self._cloud = cloud
        self._poller = cloud.poller
        self._owners = cloud.poller.owners
        self._ledger = ledger
        self._owner_id = owner_id
        self._key = key
        self._is_recorded_elsewhere = is_recorded_elsewhere
        self._clock = clock
        self._is_taken_over = is_taken_over
        self._started_s = clock.now() if started_s is None else started_s
        self._window_s = window_s
        self._was_held = was_held
        self.duplicates = Duplicates(cloud, ledger, owner_id=owner_id)
        self._provenance = Provenance(cloud.poller, ledger, owner_id=owner_id, common_name=common_name)
        self._lists = ListFreshness(
            cloud.poller,
            ledger,
            owner_id=owner_id,
            key=key,
            is_taken_over=is_taken_over,
            started_s=self._started_s,
            window_s=window_s,
            max_age_s=max_age_s,
        )
        unknown_writes_s = window_s if is_history_lost else 0.0
        self._owners.register(
            owner_id,
            key,
            uid=uid,
            was_born_here=is_newborn,
            unknown_writes_s=unknown_writes_s,
            credential=cloud.fingerprint,
        )
        self._poller.registrations.move(owner_id, self._poller)
        self._poller.begin_pass(key)

    # -- resources --------------------------------------------------------------------------------------------------

    def find(
        self,
        kind: str,
        role: str,
        *,
        upstream: Upstream | None = None,
        among: Selection = everything,
        upstream_id: str | None = None,
    ) -> Body | None:
        """Return the resource of a role, or None if it is proven that there is none.

        Args:
            upstream: identifies an unstamped resource that the Go provider created for this role; used only for an
                object that was taken over from it.
            among: selects those that ``upstream`` may identify.
            upstream_id: the one that the Go provider's status names; it is chosen if several match.

        Raises:
            NotYetObserved: not known yet; the poller wakes the object.
            AmbiguousMatchError: more than one unstamped resource matches.
            ForeignResourceError: the recorded or matching resource is not this object's.
            CloudUnavailableError: the list failed, or a down Nova cell hides its servers.
        """
        recorded = self._ledger.records.get(role)
        found = self._recorded(kind, recorded.id) if recorded else None
        if found is not None:
            self._provenance.expect_own(kind, found)
        if recorded and found is None:
            log.info("Resource was deleted", extra={"kind": kind, "role": role, "id": recorded.id})
            self._ledger.drop(role)
        found = self._converged(kind, role, found)
        if found is None and not self._is_known_absent(kind, role):
            # The list that satisfied the proof may have ended after the first look, and show the resource.
            found = self._converged(kind, role, None)
            if found is None and self._is_taken_over and upstream:
                found = self._adopted(kind, upstream, among, upstream_id)
        if found is None:
            self._poller.untrack(kind, self._key)
            return None
        if self._ledger.id_of(role) != found["id"]:
            self._ledger.record(kind, role, found["id"])
        self._keep(kind, found)
        return found

    def prefetch(self, kind: str, role: str) -> None:
        """Request in advance the list that a later step needs for a role, so that it need not wait then."""
        if role in self._ledger.records or self._owners.was_born_here(self._owner_id):
            return
        not_before_s = self._owners.unproven_s(self._owner_id, kind)
        if not self._lists.has(kind, not_before_s):
            self._poller.demand(kind, self._key, not_before_s)

    def get(self, kind: str, resource_id: str) -> Body:
        """Return a resource that must exist, regardless of its owner.

        Raises:
            NotFoundError: it does not exist.
        """
        found = self._recorded(kind, resource_id)
        if found is None:
            raise NotFoundError(f"{kind} {resource_id} does not exist", status=404, resource=f"{kind} {resource_id}")
        return found

    def owned(self, kind: str) -> list[Body]:
        """Return everything of a kind that is recorded or has this owner's stamp, for its deletion.

        Recorded resources that are not this object's are omitted.

        Raises:
            NotYetObserved: not known yet, or a create whose answer was lost may still take effect.
        """
        self._lists.expect_current(kind)
        found = {item.body["id"]: item.body for item in self._poller.of_owner(kind, self._owner_id)}
        for record in self._ledger.records_of_kind(kind):
            body = self._recorded(kind, record.id)
            if body is None:
                self._ledger.drop(record.role)
            elif self._provenance.is_left_alone(kind, body):
                self._ledger.remove(record.role)
            else:
                found[record.id] = body
        left = [body for body in found.values() if not _is_deleted(body)]
        if not left:
            self._poller.untrack(kind, self._key)
            self._lists.expect_nothing_late(kind)
            # The list that satisfied this may have ended after the first look, and show a late resource.
            late = [item.body for item in self._poller.of_owner(kind, self._owner_id)]
            left = [body for body in late if not _is_deleted(body)]
        for body in left:
            self._keep(kind, body)
        return left

    def list_matching(
        self,
        kind: str,
        predicate: Callable[[Body], bool] = lambda _body: True,
        *,
        max_age_s: float | None = None,
        among: Selection = everything,
    ) -> list[Body]:
        """Return every resource of the project that matches, regardless of its owner.

        Args:
            max_age_s: maximum age of the list; None means any.
            among: selects those that may match, which saves a walk through all of a large project.

        Raises:
            NotYetObserved: the kind was not listed since this object's last write, or too long ago.
        """
        self._lists.expect(kind, self._owners.wrote_s(self._owner_id, kind), max_age_s)
        return self.peek(kind, predicate, among=among)

    def peek(
        self, kind: str, predicate: Callable[[Body], bool] = lambda _body: True, *, among: Selection = everything
    ) -> list[Body]:
        """Return the known resources that match, regardless of their owner; sends no request and does not wait."""
        items = self._poller.select(kind, among)
        return [item.body for item in items if not item.is_deleted and predicate(item.body)]

    def others(self, kind: str, fits: Callable[[Body], bool], among: Selection) -> list[Item]:
        """Return the listed resources of a selection that match and are not this object's; demands no list."""
        items = self._poller.select(kind, among)
        return [item for item in self._strangers(kind, items) if fits(item.body)]

    def namesakes(self, kind: str, names: Iterable[str]) -> list[Item]:
        """Return the listed resources that have one of the names and are not this object's; demands no list."""
        return list(self._strangers(kind, self._poller.select(kind, found_by(BY_NAME, *names))))

    def _strangers(self, kind: str, items: Iterable[Item]) -> Iterator[Item]:
        ours = {record.id for record in self._ledger.records_of_kind(kind)}
        return (item for item in items if not item.is_deleted and not self._is_ours(item, ours))

    def was_listed(self, kind: str) -> bool:
        """Return whether the kind was ever listed completely."""
        return self._poller.began_s(kind) != NEVER_S

    def _is_ours(self, item: Item, recorded: Container[str]) -> bool:
        return item.body["id"] in recorded or (item.stamp is not None and item.stamp.owner == self._owner_id)

    def has_listed(self, kinds: Iterable[str]) -> bool:
        """Return whether all of these kinds were ever listed completely."""
        return all(self._poller.began_s(kind) != NEVER_S for kind in kinds)

    def pending_until(self, kind: str) -> float | None:
        """Return when the last unanswered create of a kind can no longer take effect; None if there is none."""
        return self._lists.pending_until(kind)

    # -- writes of this reconcile -----------------------------------------------------------------------------------

    def upsert(self, kind: str, body: Body) -> None:
        """Record the answer of our own write; kinds that are not listed, such as pool members, are ignored."""
        if kind in KINDS:
            self._poller.upsert(kind, body)

    def forget(self, kind: str, resource_id: str) -> None:
        """Record that a resource is deleted, here and in the ledger.

        Raises:
            NotYetObserved: its deletion was answered by 404: a list that begins later has to confirm it.
        """
        if self._poller.in_doubt_since_s(kind, resource_id) is not None:
            self._lists.demand(kind, self._clock.now() + CONTRADICTED_S)
        self._poller.forget(kind, resource_id)
        for record in self._ledger.records_of_kind(kind):
            if record.id == resource_id:
                self._ledger.drop(record.role)

    def end(self, kind: str, resource_id: str) -> None:
        """Record that the cloud accepted a deletion; a later complete list without the resource confirms it."""
        self._poller.end(kind, resource_id)

    def end_in_s(self, kind: str, resource_id: str) -> float:
        """Return for how many seconds a deletion may still be unconfirmed, given how long lists take."""
        ending_s = self._poller.ending_s(kind, resource_id)
        if ending_s is None:
            return 0.0
        return max(0.0, ending_s + LOOKS_TO_END * self._poller.took_s(kind) - self._clock.now())

    def invalidate(self, kind: str, resource_id: str) -> None:
        """Record that a change may or may not have taken effect: the resource is read before it is used again."""
        self._poller.invalidate(kind, resource_id, self._owner_id)

    def failed(self, kind: str, resource_id: str, error: CapoError) -> None:
        """Record that a change failed; the resource is in doubt, unless the service rejected the token or the rate."""
        if not isinstance(error, NotAuthorizedError | RateLimitedError):
            self.invalidate(kind, resource_id)

    def mark_written(self, kind: str, roles: Sequence[str] = ()) -> None:
        """Require a list that begins after now before any absence of this kind is concluded.

        Args:
            roles: those that a create was sent for, after their absence was proven.
        """
        self._owners.mark_written(self._owner_id, kind, roles)

    def mark_created(self, kind: str) -> None:
        """Schedule a list of the kind within a minute: a proxy or a second manager may have repeated the create.

        Servers need none: they are polled while they are built, and tracked afterwards.
        """
        if kind in KINDS and kind != SERVER.name:
            due_s = self._clock.now() + AFTERMATH_S
            self._poller.look_later(kind, math.ceil(due_s / AFTERMATH_GRID_S) * AFTERMATH_GRID_S)

    def poll(self, kind: str, for_s: float = POLL_S) -> None:
        """List the kind repeatedly; the object is woken when its resources change.

        After a deletion call everything is listed once: a server without a host vanishes at once, and no list of
        changes ever shows it.

        Raises:
            CapoError: the lists fail, so that no change would be seen; they are retried.
        """
        self._poller.poll(kind, self._key, for_s)
        if error := self._poller.trouble(kind):
            raise error.with_traceback(None)
        wrote_s = self._owners.wrote_s(self._owner_id, kind)
        if any(item.as_of_s < wrote_s for item in self._poller.of_owner(kind, self._owner_id)):
            self._poller.demand(kind, self._key, self._clock.now() + FASTEST_S)

    # -- quotas -----------------------------------------------------------------------------------------------------

    def hold(self, create: Creation) -> Hold | None:
        """Return why a create has to wait for a quota; None if it may be sent, whose end ``settle`` reports.

        Raises:
            NotYetObserved: another thread reads the limits; the object is woken then.
        """
        request = self._request(create.kind, len(create.roles), create.needs)
        return self._cloud.quota_holds.hold(replace(request, was_held=request.was_held or create.is_doubtful))

    def settle(self, create: Creation, error: CapoError | None) -> None:
        """Report how a create ended."""
        self._cloud.quota_holds.settle(self._request(create.kind, len(create.roles), create.needs), error)

    @contextlib.contextmanager
    def within_quota(self, kind: str, count: int) -> Iterator[None]:
        """Create parts of a resource in this block, such as the rules of a group, if a quota has room for them.

        Raises:
            QuotaExceededError: it has none, by its last refusal and the limits; nothing was sent.
            NotYetObserved: the limits are being read.
        """
        request, holds = self._request(kind, count), self._cloud.quota_holds
        if hold := holds.hold(request):
            raise QuotaExceededError(hold.words)
        try:
            yield
        except CapoError as error:
            holds.settle(request, error)
            raise
        holds.settle(request, None)

    def _request(self, kind: str, count: int, needs: Callable[[], Needs] | None = None) -> Request:
        return Request(self._owner_id, self._key, kind, count, needs=needs, was_held=self._was_held)

    # -- conclusions ------------------------------------------------------------------------------------------------

    def _keep(self, kind: str, body: Body) -> None:
        self._poller.claim(kind, body["id"], self._key)
        if not _is_deleted(body):
            self._poller.track(kind, self._key)

    def _recorded(self, kind: str, resource_id: str) -> Body | None:
        """Return a resource by its id; None if its deletion is proven."""
        item = self._poller.item(kind, resource_id)
        if item is not None and self._lists.is_young(kind, item.as_of_s):
            return item.body
        if self._poller.is_gone(kind, resource_id):
            return None
        # Absence from a list is no proof: the shared list is tried first, then a GET of the one resource.
        self._lists.expect(kind, NEVER_S)
        item = self._poller.item(kind, resource_id)
        return item.body if item is not None else self._asked(KINDS[kind], resource_id)

    def _asked(self, kind: ResourceKind, resource_id: str) -> Body | None:
        try:
            answer = self._cloud.get(kind.service, kind.path(resource_id), microversion=kind.microversion)
        except NotFoundError:
            self._poller.forget(kind.name, resource_id)
            return None
        body: Body = answer[kind.body_key]
        if body.get("id") != resource_id:
            raise CloudUnavailableError(f"{kind.service} answered with another {kind.name} than {resource_id}")
        self._poller.upsert(kind.name, body)
        return body

    def _converged(self, kind: str, role: str, recorded: Body | None) -> Body | None:
        """Return the resource of a role, its duplicates deleted; None if none is recorded or stamped."""
        stamped = self._stamped(kind, role)
        if len(stamped) > (1 if recorded else 0):
            return self.duplicates.converge(KINDS[kind], role, stamped, recorded)
        return recorded

    def _stamped(self, kind: str, role: str) -> list[Item]:
        stamp = Stamp(self._owner_id, role)
        return [i for i in self._poller.of_owner(kind, self._owner_id) if i.stamp == stamp and not i.is_deleted]

    def _is_known_absent(self, kind: str, role: str) -> bool:
        """Require proof that no resource has the role's stamp; return whether that needed no list.

        If this process generated the owner id, it knows every resource with that id, unless an answer was lost or one
        is in doubt: its record may be lost, too, as after a restore.
        """
        pending, is_certain = self._ledger.pending.get(role), not self._poller.has_doubts(kind, self._owner_id)
        if pending is None and is_certain and not self._is_taken_over and self._owners.was_born_here(self._owner_id):
            return True
        self._lists.expect(
            kind, max([self._lists.unsettled_s(kind), *([self._lists.decided_s(pending)] if pending else [])])
        )
        # In this order, so that an existing resource is found by the first list.
        self._lists.expect(kind, self._owners.decided_s(self._owner_id))
        if pending and self._started_s < pending.since_s + self._window_s:
            self._lists.look_again(kind, pending)  # so that a late resource is adopted soon, not at the window's end
        if unreadable := self._poller.unreadable(kind):
            # No other object may demand a list: without one the cell's recovery would go unnoticed.
            self._poller.demand(kind, self._key, self._clock.now() + UNREADABLE_S)
            raise CloudUnavailableError(
                f"cannot determine the owner of {unreadable} {kind}s: their part of the cloud is down"
            )
        return False

    def _adopted(self, kind: str, upstream: Upstream, among: Selection, upstream_id: str | None) -> Body | None:
        items = self._poller.select(kind, among)
        fitting = [item for item in items if not item.is_deleted and upstream(item.body)]
        unstamped = [item.body for item in fitting if item.stamp is None]
        unstamped = [body for body in unstamped if body["id"] == upstream_id] or unstamped
        if len(unstamped) > 1:
            ids = ", ".join(sorted(body["id"] for body in unstamped))
            text = f"{len(unstamped)} {kind}s could be the one of the Go provider"
            raise AmbiguousMatchError(f"{text}: {ids}", if_shared=text)
        if unstamped and self._is_recorded_elsewhere(kind, unstamped[0]["id"]):
            raise ForeignResourceError(
                f"{kind} {unstamped[0]['id']} has the name, but is recorded for another object",
                if_shared=f"a {kind} has the name, but is recorded for another object",
                resource=f"{kind} {unstamped[0]['id']}",
            )
        if unstamped:
            log.info("Adopted a resource of the Go provider", extra={"kind": kind, "id": unstamped[0]["id"]})
            return unstamped[0]
        for item in fitting:
            if item.stamp is not None and item.stamp.owner != self._owner_id:
                raise ForeignResourceError(
                    f"{kind} {item.body.get('name')} belongs to owner {item.stamp.owner}",
                    if_shared=f"{kind} {item.body.get('name')} belongs to another owner",
                    resource=f"{kind} {item.body['id']}",
                )
        return None


def _is_deleted(body: Body) -> bool:
    return body.get("status") == "DELETED" or body.get("provisioning_status") == "DELETED"
