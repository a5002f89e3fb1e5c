"""Shared lists: one list per project and kind serves all objects; single resources are not polled.

An object *demands* a list to prove an absence, *polls* while it waits for a change, and is *tracked* while it has a
server. A complete list wakes the objects that demanded it and those whose resources changed; incomplete lists are
discarded. What may be concluded from them is decided in :mod:`capo.openstack.cloud_view`.
"""

from __future__ import annotations

import datetime
import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

from capo.errors import (
    CapoError,
    CloudUnavailableError,
    IdentityError,
    NotAuthorizedError,
    RateLimitedError,
    without_frames,
)
from capo.json_types import Body
from capo.openstack import load_balancer_freshness
from capo.openstack.kinds import KINDS, LOAD_BALANCER, SERVER
from capo.openstack.list_source import Source
from capo.openstack.owners import Owners
from capo.openstack.registrations import Registrations
from capo.openstack.resource_cache import FASTEST_S, NEVER_S, Item, ResourceCache, Schedule, Selection
from capo.parts import PARTS

log = logging.getLogger(__name__)


COALESCE_S: Final = 0.1
"""Demands that arrive within this time share one list."""
FULL_S: Final = 600.0
POLLED_FULL_S: Final = 30.0
"""Longest time for which only changes are listed, while idle and while an object waits; then everything is listed."""
OVERLAP_S: Final = 10.0
"""Allowed clock difference between Nova's hosts: each list of changes begins this long before the last one."""
BACKOFF_S: Final = (2.0, 60.0)
ERROR_KEPT_S: Final = 30.0
"""A failure older than this, after its pause, is ignored."""
NEWCOMER_S: Final = 15.0
"""A key that polled this recently continues at the current pace."""
MAX_AT_ONCE: Final = 3


class ListPoller:
    """Lists of one project; thread safe.

    Args:
        now: monotonic seconds, by which everything is counted.
        wake: called with a key, never while a lock is held.
        registrations: of this poller and of those that its owners may change to.
    """

    def __init__(
        self,
        source: Source,
        now: Callable[[], float],
        wake: Callable[[Any], None],
        registrations: Registrations | None = None,
    ) -> None:
        self._source = source
        self._now = now
        self._wake = wake
        self._lock = threading.RLock()
        self.registrations = registrations or Registrations()
        self.owners = Owners(now, self.registrations.kept_s)
        self._caches = {name: ResourceCache(kind) for name, kind in KINDS.items()}
        self._schedules = {name: Schedule() for name in KINDS}
        self._errors: dict[str, CapoError] = {}
        self._cursors: dict[str, float] = {}
        self._listed_s: dict[str, float | None] = {}
        """Octavia's own time of its last list, by kind of children."""
        self._claims: dict[tuple[str, str], Hashable] = {}
        self._claimed: dict[Hashable, set[tuple[str, str]]] = {}
        self._is_closed = False
        self.due_changed: Callable[[], None] = lambda: None
        """Called when the next list may be due sooner; a pool replaces it."""

    # -- registration -----------------------------------------------------------------------------------------------

    def unregister(self, owner_id: str) -> None:
        """Remove an owner whose object is gone, or uses another poller."""
        self.registrations.leave(owner_id, self)
        with self._lock:
            if (gone := self.owners.remove(owner_id)) is None:
                return
            for schedule in self._schedules.values():
                schedule.leave(gone)
            for place in self._claimed.pop(gone, ()):
                del self._claims[place]

    def is_in_use(self, credential: str) -> bool:
        """Return whether any object recently reconciled with the credentials of a fingerprint."""
        with self._lock:
            self._expire()
            return self.owners.has_keys_of(credential)

    def claim(self, kind: str, resource_id: str, key: Hashable) -> None:
        """Wake a key for changes of a resource without its stamp."""
        with self._lock:
            self._release(kind, resource_id)
            self._claims[kind, resource_id] = key
            self._claimed.setdefault(key, set()).add((kind, resource_id))

    def track(self, kind: str, key: Hashable) -> None:
        """List a key's resources once a minute; servers only."""
        with self._lock:
            if kind == SERVER.name:
                self._schedules[kind].tracked.add(key)
        self.due_changed()

    def untrack(self, kind: str, key: Hashable) -> None:
        """Undo :meth:`track`."""
        with self._lock:
            self._schedules[kind].tracked.discard(key)

    # -- requests ---------------------------------------------------------------------------------------------------

    def demand(self, kind: str, key: Hashable, not_before_s: float = NEVER_S) -> None:
        """List everything of a kind as soon as possible, in a list that begins at ``not_before_s`` or later."""
        with self._lock:
            is_closed = self._is_closed
            schedule = self._schedules[kind]
            known = schedule.demands.get(key)
            at_s = known[1] if known else self._now() + COALESCE_S
            not_before_s = max(not_before_s, known[0]) if known else not_before_s
            schedule.demand(key, not_before_s, max(at_s, not_before_s))
        if is_closed:
            self._wake(key)  # its next reconcile uses another cloud
        self.due_changed()

    def look_later(self, kind: str, at_s: float) -> None:
        """List everything of a kind at a future time; only keys whose resources changed are woken."""
        with self._lock:
            self._schedules[kind].looks.add(at_s)
        self.due_changed()

    def poll(self, kind: str, key: Hashable, for_s: float) -> None:
        """List a kind for a key, every 1 to 5 s and less often later, until its next reconcile or for ``for_s``."""
        with self._lock:
            schedule, now_s = self._schedules[kind], self._now()
            is_known = key in schedule.polls or now_s - schedule.paused.pop(key, NEVER_S) < NEWCOMER_S
            if not is_known:
                schedule.period_s, schedule.since[key] = FASTEST_S, now_s
                if not schedule.polls:
                    schedule.began_s = max(schedule.began_s, now_s)
            schedule.poll(key, now_s + for_s)
        self.due_changed()

    def begin_pass(self, key: Hashable) -> None:
        """Stop the polls of a key; its reconcile polls again for what it still waits for."""
        with self._lock:
            for schedule in self._schedules.values():
                schedule.end_poll(key, self._now())

    # -- knowledge --------------------------------------------------------------------------------------------------

    def upsert(self, kind: str, body: Body) -> None:
        """Record the answer of our own write; lists that began before it do not overwrite it."""
        with self._lock:
            self._caches[kind].upsert(body, self._now())

    def forget(self, kind: str, resource_id: str) -> None:
        """Record that a resource is proven gone, with its parts."""
        with self._lock:
            self._caches[kind].forget(resource_id, self._now())
            self._release(kind, resource_id)
            self._forget_parts(kind, resource_id)

    def _forget_parts(self, kind: str, resource_id: str) -> None:
        for part in PARTS.get(kind, ()):
            for id_ in self._caches[part.kind].parts(part, resource_id):
                self.forget(part.kind, id_)

    def _release(self, kind: str, resource_id: str) -> None:
        place = kind, resource_id
        if (key := self._claims.pop(place, None)) is not None:
            self._claimed[key].discard(place)
            if not self._claimed[key]:
                del self._claimed[key]

    def invalidate(self, kind: str, resource_id: str, owner_id: str | None = None) -> None:
        """Invalidate a resource: treat it as unknown until a newer list.

        Args:
            owner_id: the caller; if the resource has no stamp it may belong to him or to those who claim it.
        """
        with self._lock:
            owners = self.owners.with_key(self._claims.get((kind, resource_id)))
            owners |= {owner_id} if owner_id else set()
            self._caches[kind].invalidate(resource_id, self._now(), owners)

    def end(self, kind: str, resource_id: str) -> None:
        """Record that the cloud accepted a deletion."""
        with self._lock:
            self._caches[kind].end(resource_id, self._now())

    def ending_s(self, kind: str, resource_id: str) -> float | None:
        """Return when the cloud accepted a deletion, None if none was requested."""
        with self._lock:
            return self._caches[kind].ending_s(resource_id)

    def took_s(self, kind: str) -> float:
        """Return how many seconds lists of a kind take."""
        with self._lock:
            return self._schedules[kind].took_s

    def in_doubt_since_s(self, kind: str, resource_id: str) -> float | None:
        """Return since when a resource is in doubt; None if it is not, or if a complete list began later."""
        with self._lock:
            since_s = self._caches[kind].in_doubt_since_s(resource_id)
            return None if since_s is None or self._caches[kind].full_began_s > since_s else since_s

    def doubted_s(self, kind: str, owner_id: str, *, may_adopt: bool = False) -> float:
        """Return when a resource of a kind was last in doubt that may be the owner's, or that it may adopt."""
        with self._lock:
            return self._caches[kind].doubted_s(owner_id, may_adopt=may_adopt)

    def has_doubts(self, kind: str, owner_id: str) -> bool:
        """Return whether a resource of the owner is in doubt, which no complete list has settled since."""
        with self._lock:
            return self._caches[kind].has_doubts(owner_id)

    def item(self, kind: str, resource_id: str) -> Item | None:
        """Return a resource as last seen, as current as the last list that did not contradict it."""
        with self._lock:
            cache = self._caches[kind]
            item = cache.items.get(resource_id)
            return Item(item.body, item.stamp, cache.as_of_s(item)) if item else None

    def is_gone(self, kind: str, resource_id: str) -> bool:
        """Return whether a resource is proven gone."""
        with self._lock:
            return self._caches[kind].is_gone(resource_id)

    def of_owner(self, kind: str, owner_id: str) -> list[Item]:
        """Return the resources with an owner's stamp."""
        with self._lock:
            cache = self._caches[kind]
            return [Item(item.body, item.stamp, cache.as_of_s(item)) for item in cache.of_owner(owner_id)]

    def select(self, kind: str, selection: Selection) -> list[Item]:
        """Return the resources of a selection."""
        with self._lock:
            return list(selection(self._caches[kind]))

    def began_s(self, kind: str) -> float:
        """Return when the last complete list of everything began."""
        with self._lock:
            return self._caches[kind].full_began_s

    def unreadable(self, kind: str) -> int:
        """Return how many resources of the last list had no name and tags."""
        with self._lock:
            return self._caches[kind].unreadable

    def error(self, kind: str) -> CapoError | None:
        """Return why the last list of a kind failed; None if it succeeded or the failure is old."""
        with self._lock:
            is_recent = self._now() < self._schedules[kind].retry_s + ERROR_KEPT_S
            return self._errors.get(kind) if is_recent else None

    def forget_refusals(self) -> None:
        """Forget that lists were refused to other credentials: what is demanded now is listed with new ones."""
        with self._lock:
            for kind, error in list(self._errors.items()):
                if isinstance(error, IdentityError | NotAuthorizedError):
                    del self._errors[kind]
                    self._schedules[kind].failures, self._schedules[kind].retry_s = 0, NEVER_S
        self.due_changed()

    def trouble(self, kind: str) -> CapoError | None:
        """Return why lists of a kind fail: repeatedly, or because the credentials are refused; else None."""
        with self._lock:
            error = self.error(kind)
            is_lasting = self._schedules[kind].failures > 1 or isinstance(error, NotAuthorizedError)
            return error if is_lasting else None

    def is_failing(self) -> bool:
        """Return whether lists of any kind fail repeatedly for another reason than the credentials."""
        with self._lock:
            troubles = [self.trouble(kind) for kind in self._errors]
        return any(error and not isinstance(error, NotAuthorizedError) for error in troubles)

    # -- lists ------------------------------------------------------------------------------------------------------

    def next_due_s(self) -> float:
        """Return when the next list must begin; infinite if none is requested."""
        with self._lock:
            return min(self._due_by_kind().values(), default=float("inf"))

    def due(self, most: int = MAX_AT_ONCE) -> list[str]:
        """Return the kinds whose list must begin now, at most ``most``, and mark them as begun."""
        with self._lock:
            now_s, due_s = self._now(), self._due_by_kind()
            room = min(most, MAX_AT_ONCE - self._running())
            kinds = sorted((kind for kind, at_s in due_s.items() if at_s <= now_s), key=due_s.__getitem__)[:room]
            for kind in kinds:
                self._schedules[kind].is_running = True
            return kinds

    def _due_by_kind(self) -> dict[str, float]:
        """Return when the list of each kind must begin that may begin beside those that are running."""
        if self._is_closed or self._running() >= MAX_AT_ONCE:
            return {}
        now_s = self._now()
        return {kind: each.due_s(now_s) for kind, each in self._schedules.items() if not each.is_running}

    def _running(self) -> int:
        return sum(each.is_running for each in self._schedules.values())

    def run(self, kind: str) -> None:
        """List a kind that :meth:`due` returned, and wake the keys concerned."""
        woken: Iterable[Hashable] = ()
        try:
            woken = self._list(kind)
        finally:
            with self._lock:
                self._schedules[kind].is_running = False
        for key in woken:
            self._wake(key)
        self.due_changed()

    def _list(self, kind: str) -> set[Hashable]:
        with self._lock:
            self._expire()
            began_s = self._now()
            self._schedules[kind].began_s = began_s
            since_s = self._changes_since_s(kind, began_s)
        try:
            listing = self._ask(kind, since_s)
            return self._apply(kind, listing, began_s, is_full=since_s is None)
        except CapoError as error:
            return self._failed(kind, error, began_s)
        except Exception as error:
            log.exception("List failed by a fault of the program", extra={"kind": kind})
            text = f"the list of {kind}s failed by a fault of the program: {type(error).__name__}"
            return self._failed(kind, CloudUnavailableError(text), began_s)

    def _apply(self, kind: str, listing: Any, began_s: float, *, is_full: bool) -> set[Hashable]:
        """Record what a list shows; return the keys to wake."""
        with self._lock:
            cache = self._caches[kind]
            take = cache.take_all if is_full else cache.take_changes
            # A list of changes replaces what it contains, a full list also what it lacks.
            ids = (body["id"] for body in listing.items)
            before = dict(cache.items) if is_full else {id_: cache.items[id_] for id_ in ids if id_ in cache.items}
            changed = take(listing.items, began_s)
            for gone in filter(cache.is_gone, changed):
                self._forget_parts(kind, gone)
            self._errors.pop(kind, None)
            self._move_cursor(kind, listing.cloud_s)
            affected = self._owners(kind, changed, before)
            if kind == LOAD_BALANCER.name:
                self._confirm_children(listing.items, before, began_s)
            elif kind in load_balancer_freshness.CHILDREN:
                self._listed_s[kind] = listing.cloud_s
            ended = [id_ for id_ in changed if id_ in before and _state(before, id_) != _state(cache.items, id_)]
            self._pace(kind, began_s, affected, has_changed=bool(changed), has_ended=bool(ended))
            self._end_polls(kind, self._owners(kind, ended, before))
            impatient = self._schedules[kind].end_polls(self._now())
            return self._served(kind, began_s, is_full=is_full) | affected | impatient

    def _end_polls(self, kind: str, keys: Iterable[Hashable]) -> None:
        """Stop the polls of keys whose resource reached another state: they are woken, and poll again if needed.

        Those of which something else changed go on: their reconcile, which may wait long, is to find the latest.
        """
        for key in keys:
            self._schedules[kind].end_poll(key, self._now())

    def _confirm_children(self, balancers: list[Body], before: Iterable[str], began_s: float) -> None:
        """Treat a list of load balancers as a list of their children if it shows that these are unchanged."""
        is_complete = {body["id"] for body in balancers} >= set(before)
        for kind in load_balancer_freshness.CHILDREN:
            listed_s = self._listed_s.get(kind)
            if (
                is_complete
                and listed_s is not None
                and load_balancer_freshness.are_as_listed(balancers, listed_s=listed_s)
            ):
                self._caches[kind].confirm(began_s)

    def _changes_since_s(self, kind: str, began_s: float) -> float | None:
        """Return the cloud's time since which to list changes, None if everything must be listed."""
        schedule = self._schedules[kind]
        is_demanded = bool(schedule.demands) or any(at_s <= began_s for at_s in schedule.looks)
        limit_s = POLLED_FULL_S if self._schedules[kind].polls else FULL_S
        is_old = began_s - self._caches[kind].full_began_s > limit_s
        if kind != SERVER.name or is_demanded or is_old or kind not in self._cursors:
            return None
        return self._cursors[kind] - OVERLAP_S

    def _move_cursor(self, kind: str, cloud_s: float | None) -> None:
        """Record up to when changes are known, by the cloud's own time: its ``Date``, else its newest timestamp."""
        if kind != SERVER.name:
            return
        moment_s = self._newest_s(kind) if cloud_s is None else cloud_s
        if moment_s is not None:
            self._cursors[kind] = moment_s

    def _newest_s(self, kind: str) -> float | None:
        items = self._caches[kind].items.values()
        stamps = [item.body["updated"] for item in items if item.body.get("updated")]
        return datetime.datetime.fromisoformat(max(stamps)).timestamp() if stamps else None

    def _ask(self, kind: str, since_s: float | None) -> Any:
        what = KINDS[kind]
        params = what.list_params("" if what.is_own_by_scope else self._source.project_id)
        if since_s is not None:
            # Never combined with tags: deleted servers have none (Compute API, "List Servers").
            moment = datetime.datetime.fromtimestamp(since_s, tz=datetime.UTC)
            params["changes-since"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._source.listing(
            what.service, what.list_path, what.key, params=params, microversion=what.microversion, keep=what.keep
        )

    def _failed(self, kind: str, error: CapoError, began_s: float) -> set[Hashable]:
        with self._lock:
            schedule = self._schedules[kind]
            schedule.failures += 1
            least_s, most_s = BACKOFF_S
            pause_s = min(most_s, least_s * 2 ** min(schedule.failures - 1, 10))
            if isinstance(error, RateLimitedError):
                pause_s = max(pause_s, error.retry_after_s or 0.0)
            schedule.retry_s = self._now() + pause_s
            self._errors[kind] = without_frames(error)
            log.info("List failed", extra={"kind": kind, "err": error.sentence, "pause_s": pause_s})
            waiting = {key for key, (not_before_s, _) in schedule.demands.items() if not_before_s <= began_s}
            for key in waiting:
                schedule.settle(key)
            return waiting | set(schedule.polls if self.trouble(kind) else ())

    def _served(self, kind: str, began_s: float, *, is_full: bool) -> set[Hashable]:
        """Return the keys whose demand a list satisfied."""
        schedule = self._schedules[kind]
        schedule.failures, schedule.retry_s = 0, NEVER_S
        if not is_full:
            return set()
        schedule.looks = {at_s for at_s in schedule.looks if at_s > began_s}
        met = {key for key, (not_before_s, _) in schedule.demands.items() if not_before_s <= began_s}
        for key in met:
            schedule.settle(key)
        return met

    def _pace(self, kind: str, began_s: float, affected: set[Hashable], *, has_changed: bool, has_ended: bool) -> None:
        """Adapt the pause between lists."""
        schedule = self._schedules[kind]
        others_wait = any(key not in affected for key in schedule.polls)
        took_s = self._now() - began_s
        schedule.pace(took_s, has_changed=has_changed, has_ended=has_ended, others_wait=others_wait)

    def _owners(self, kind: str, ids: Iterable[str], before: Mapping[str, Item]) -> set[Hashable]:
        keys: set[Hashable] = set()
        for id_ in ids:
            item = self._caches[kind].items.get(id_) or before.get(id_)
            if (claimed := self._claims.get((kind, id_))) is not None:
                keys.add(claimed)
            if item and item.stamp and (known := self.owners.key_of(item.stamp.owner)) is not None:
                keys.add(known)
        return keys

    def size(self) -> int:
        """Return how many resources are known, in doubt, or known to be gone."""
        with self._lock:
            return sum(cache.size() for cache in self._caches.values())

    def _expire(self) -> None:
        for owner_id in self.owners.pop_expired():
            self.unregister(owner_id)

    def close(self) -> None:
        """Stop listing; wake all keys, so that they use another cloud."""
        self.mark_closed()
        keys = self.owners.keys()
        for key in keys:
            self._wake(key)
        self.due_changed()

    def mark_closed(self) -> None:
        """Stop listing."""
        with self._lock:
            self._is_closed = True

    @property
    def is_closed(self) -> bool:
        """Whether no more lists begin."""
        return self._is_closed


def _state(items: Mapping[str, Item], id_: str) -> str | None:
    return items[id_].state if id_ in items else None
