"""Cache of one kind of resources in one project, and how a list updates it; no HTTP, no threads, no clock.

:mod:`capo.openstack.list_poller` fills caches, :mod:`capo.openstack.cloud_view` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from capo.due_times import DueTimes
from capo.json_types import Body
from capo.names import Stamp
from capo.openstack.invalidations import Invalidation, Invalidations
from capo.openstack.kinds import ResourceKind
from capo.parts import PARTS, Part

DELETED: Final = "DELETED"
UNKNOWN: Final = "UNKNOWN"
FASTEST_S: Final = 1.0
SLOWEST_S: Final = 5.0
SLOWING: Final = 1.3
"""Factor by which the pause between two lists grows while nothing changes."""
FORGETTING: Final = 0.7
"""Decay of the longest list duration after a quicker list."""
HURRY_S: Final = 0.3
PATIENCE_S: Final = 600.0
TIRED_S: Final = 30.0
"""Pause once all pollers have waited longer than ``PATIENCE_S``: what takes that long is usually stuck."""
IDLE_S: Final = 60.0
"""A server that vanished or stopped is detected within this time."""
_GONE_KEPT_S: Final = 3600.0
NEVER_S: Final = float("-inf")
SMALL: Final = 256
"""Size of values that is always below what a resource takes in memory."""
MAX_MORE_VALUES: Final = 1 << 17
"""Distinct values of one index beyond one for each resource: some 40 MiB."""


@dataclass(frozen=True, slots=True)
class Item:
    """One resource as last seen.

    Args:
        as_of_s: the body is not older than this.
    """

    body: Body
    stamp: Stamp | None
    as_of_s: float

    @property
    def is_deleted(self) -> bool:
        """Whether Nova marks the server as deleted."""
        return self.body.get("status") == DELETED

    @property
    def state(self) -> str | None:
        """State reported by Octavia or any other service; None if it has none."""
        state: str | None = self.body.get("provisioning_status") or self.body.get("status")
        return state


@dataclass(frozen=True, eq=False)
class Index:
    """A way to find the resources of a kind without walking through all of them.

    A resource is found by any of its values, whatever their size. Only those are stored that are together no larger
    than the resource; another resource is compared at each search.

    Args:
        values: returns by which values a resource is found; pure. Their size is linear in that of the body.
    """

    values: Callable[[Body], Iterable[Hashable]]


BY_WHOLE: Final = {part: Index(part.whole_ids) for parts in PARTS.values() for part in parts}
"""By which resource its parts are found."""


@dataclass
class ResourceCache:
    """The resources of one kind."""

    kind: ResourceKind
    items: dict[str, Item] = field(default_factory=dict)
    full_began_s: float = NEVER_S
    """When the last complete list of everything began."""
    seen_s: float = NEVER_S
    """When the last complete list began, also one of changes."""
    _by_owner: dict[str, set[str]] = field(default_factory=dict)
    _indices: dict[Index, dict[Hashable, set[str]]] = field(default_factory=dict)
    _gone: dict[str, float] = field(default_factory=dict)
    _doubted: Invalidations = field(default_factory=Invalidations)
    _ending: dict[str, float] = field(default_factory=dict)
    _unreadable: set[str] = field(default_factory=set)

    def of_owner(self, owner: str) -> list[Item]:
        """Return the resources with an owner's stamp."""
        return [self.items[id_] for id_ in sorted(self._by_owner.get(owner, ()))]

    def find(self, index: Index, value: Hashable) -> list[Item]:
        """Return the resources that an index shows for a value; the first call builds it."""
        if index not in self._indices:
            self._indices[index] = {}
            for id_, item in self.items.items():
                self._enter(index, id_, item.body)
        members = self._indices[index]
        compared = (id_ for id_ in members.get(_COMPARED, ()) if value in index.values(self.items[id_].body))
        return [self.items[id_] for id_ in sorted({*members.get(value, ()), *compared})]

    def parts(self, part: Part, whole_id: str) -> list[str]:
        """Return the ids of the parts of a resource; not of what is part of another one as well."""
        items = self.find(BY_WHOLE[part], whole_id)
        return [item.body["id"] for item in items if set(part.whole_ids(item.body)) == {whole_id}]

    def as_of_s(self, item: Item) -> float:
        """Return how current an item is: a list of changes without it confirmed it."""
        return max(item.as_of_s, self.seen_s)

    @property
    def unreadable(self) -> int:
        """How many resources of the last list had no name and tags."""
        return len(self._unreadable)

    def size(self) -> int:
        """Return how many resources have an entry of any kind."""
        return len(self.items) + len(self._gone) + len(self._doubted) + len(self._ending)

    def is_gone(self, resource_id: str) -> bool:
        """Return whether the deletion of a resource was proven after all that is cached."""
        return resource_id in self._gone

    def upsert(self, body: Body, now_s: float) -> None:
        """Record the answer of our own write, or of a GET."""
        self._gone.pop(body["id"], None)
        self._doubted.remove(body["id"])
        self._put(body["id"], self.kind.keep(body), now_s)

    def forget(self, resource_id: str, now_s: float) -> None:
        """Record that a resource is proven gone; lists that began before do not restore it."""
        self._drop(resource_id)
        self._gone[resource_id] = now_s

    def invalidate(self, resource_id: str, now_s: float, owners: Collection[str] = ()) -> None:
        """Invalidate the cached resource: treat it as unknown until a newer list.

        Args:
            owners: those that may own it if it has no stamp.
        """
        item, before = self.items.get(resource_id), self._doubted.get(resource_id)
        self._drop(resource_id)
        if item is not None and item.stamp is not None:
            doubt = Invalidation(now_s, frozenset({item.stamp.owner}), is_stamped=True)
        elif item is None and before is not None:
            known = before.owners if before.is_stamped or not before.owners else before.owners.union(owners)
            doubt = replace(before, at_s=now_s, owners=known)
        else:
            doubt = Invalidation(now_s, frozenset(owners))
        self._doubted.set(resource_id, doubt)

    def end(self, resource_id: str, now_s: float) -> None:
        """Record that the cloud accepted a deletion; a later complete list without the resource confirms it."""
        self._ending[resource_id] = now_s

    def ending_s(self, resource_id: str) -> float | None:
        """Return when the cloud accepted a deletion; None if none was requested, or long ago."""
        return self._ending.get(resource_id)

    def in_doubt_since_s(self, resource_id: str) -> float | None:
        """Return since when a resource is in doubt, None if it is not."""
        doubt = self._doubted.get(resource_id)
        return doubt.at_s if doubt else None

    def doubted_s(self, owner_id: str, *, may_adopt: bool) -> float:
        """Return when a resource that may be an owner's was last in doubt: earlier lists prove no absence of it."""
        concerning = self._doubted.concerning(owner_id, may_adopt=may_adopt)
        return max((each.at_s for each in concerning), default=NEVER_S)

    def has_doubts(self, owner_id: str) -> bool:
        """Return whether a resource of an owner is in doubt, which no complete list has settled since."""
        return any(each.at_s >= self.full_began_s for each in self._doubted.of(owner_id))

    def take_all(self, bodies: Iterable[Body], began_s: float) -> set[str]:
        """Apply a complete list of everything; return the ids of what changed, appeared or vanished."""
        before = dict(self.items)
        listed = {body["id"]: body for body in bodies}
        changed = self._take(listed, began_s)
        for id_, item in before.items():
            ending_s = self._ending.get(id_)
            # Kept if its deletion was accepted while the list was under way: the next list confirms that.
            if id_ in listed or item.as_of_s >= began_s or (ending_s is not None and ending_s >= began_s):
                continue
            self._drop(id_)
            changed.add(id_)
            if ending_s is not None:
                self._gone[id_] = began_s
        # What was in doubt is proven absent now: its owner is woken for that.
        doubted = {id_ for id_, doubt in self._doubted.items() if self.full_began_s <= doubt.at_s < began_s}
        changed |= doubted - listed.keys()
        unnamed = {id_ for id_, body in listed.items() if is_partial(self.kind.name, body)}
        self._unreadable = unnamed - before.keys()
        self.full_began_s = self.seen_s = began_s
        self._gone = _recent(self._gone, began_s)
        for id_ in [id_ for id_, doubt in self._doubted.items() if began_s - doubt.at_s >= _GONE_KEPT_S]:
            self._doubted.remove(id_)
        self._ending = _recent(self._ending, began_s)
        return changed

    def confirm(self, began_s: float) -> None:
        """Record that all resources were unchanged when a list of something else began."""
        self.full_began_s = self.seen_s = began_s

    def take_changes(self, bodies: Iterable[Body], began_s: float) -> set[str]:
        """Apply a list of changes since the last one; return the ids of what really changed."""
        changed = self._take({body["id"]: body for body in bodies}, began_s)
        self.seen_s = began_s
        return changed

    def _take(self, listed: Mapping[str, Body], began_s: float) -> set[str]:
        changed: set[str] = set()
        for id_, body in listed.items():
            old = self.items.get(id_)
            doubted_s = self.in_doubt_since_s(id_) or NEVER_S
            newer_s = max(self._gone.get(id_, NEVER_S), doubted_s, old.as_of_s if old else NEVER_S)
            is_nobodys = old is None and (body.get("status") == DELETED or is_partial(self.kind.name, body))
            if newer_s >= began_s or is_nobodys:
                continue
            self._gone.pop(id_, None)
            self._doubted.remove(id_)
            new = self.kind.keep(self._completed(body, old))
            if old is None or self.kind.seen_as(old.body) != self.kind.seen_as(new):
                changed.add(id_)
            if old is not None and old.body == new:
                self.items[id_] = replace(old, as_of_s=began_s)
            else:
                self._put(id_, new, began_s)
        return changed

    def _completed(self, body: Body, old: Item | None) -> Body:
        """Keep name and tags of a server that Nova returns without them: a deleted one, or one of a down cell."""
        is_bare = body.get("status") == DELETED or is_partial(self.kind.name, body)
        if old is None or not is_bare:
            return body
        kept = {name: old.body[name] for name in ("name", "tags") if name in old.body}
        return {**body, **kept}

    def _put(self, id_: str, body: Body, as_of_s: float) -> None:
        self._drop(id_)
        item = Item(body, self.kind.stamp_of(body), as_of_s)
        self.items[id_] = item
        if item.stamp:
            self._by_owner.setdefault(item.stamp.owner, set()).add(id_)
        for index in self._indices:
            self._enter(index, id_, body)

    def _enter(self, index: Index, id_: str, body: Body) -> None:
        members, values = self._indices[index], _stored_values(index, body)
        # Not left out: a resource that a search lacks would look absent.
        if values is None or len(members) + len(values - members.keys()) > len(self.items) + MAX_MORE_VALUES:
            values = {_COMPARED}
        for value in values:
            members.setdefault(value, set()).add(id_)

    def _drop(self, id_: str) -> None:
        if (item := self.items.pop(id_, None)) is None:
            return
        if item.stamp:
            _remove(self._by_owner, item.stamp.owner, id_)
        for index, members in self._indices.items():
            is_compared = id_ in members.get(_COMPARED, ())
            for value in {_COMPARED} if is_compared else set(index.values(item.body)):
                _remove(members, value, id_)


Selection = Callable[[ResourceCache], Iterable[Item]]
"""Returns some of the resources of a kind."""


def everything(cache: ResourceCache) -> Iterable[Item]:
    """Return all resources."""
    return cache.items.values()


def nothing(_cache: ResourceCache) -> Iterable[Item]:
    """Return no resource: the list of the kind alone matters."""
    return ()


def with_ids(ids: Iterable[str]) -> Selection:
    """Return the selection of the resources with these ids."""
    return lambda cache: [cache.items[id_] for id_ in ids if id_ in cache.items]


def found_by(index: Index, *values: Hashable) -> Selection:
    """Return the selection of the resources that an index shows for any of the values."""
    return lambda cache: {item.body["id"]: item for value in values for item in cache.find(index, value)}.values()


def either(*selections: Selection) -> Selection:
    """Return the selection of the resources that are in any of the selections."""
    return lambda cache: {item.body["id"]: item for each in selections for item in each(cache)}.values()


def _name(body: Body) -> list[str]:
    """Return the name of a resource, nothing if it has none."""
    name = body.get("name")
    return [name] if isinstance(name, str) and name else []


BY_NAME: Final = Index(_name)


_COMPARED: Final = object()
"""In place of a value: the resources whose values are not stored."""


def _stored_values(index: Index, body: Body) -> set[Hashable] | None:
    """Return the values of a resource; None if they are larger than the resource."""
    values: set[Hashable] = set()
    size, most = 0, SMALL
    for value in index.values(body):
        size += size_of(value)
        if size > most and size > (most := max(SMALL, size_of(body))):
            return None
        values.add(value)
    return values


def size_of(value: Any) -> int:
    """Return the size of a body or a value: characters of its texts and names, and one for each part."""
    size, parts = 0, [value]
    while parts:  # no recursion: bodies are nested as deeply as their services like
        size += 1
        match parts.pop():
            case Mapping() as part:
                parts += part.keys()
                parts += part.values()
            case list() | tuple() as part:
                parts += part
            case part:
                size += len(str(part))
    return size


def _remove(index: dict[Any, set[str]], value: Hashable, id_: str) -> None:
    index[value].discard(id_)
    if not index[value]:
        del index[value]


def _recent(noted: Mapping[str, float], now_s: float) -> dict[str, float]:
    return {id_: at_s for id_, at_s in noted.items() if now_s - at_s < _GONE_KEPT_S}


def is_partial(kind: str, body: Body) -> bool:
    """Return whether a server has no name and tags because its cell is down (Compute API, 2.69)."""
    return kind == "server" and "name" not in body


@dataclass
class Schedule:
    """When a kind is listed next, and for which keys."""

    demands: dict[Hashable, tuple[float, float]] = field(default_factory=dict)
    """Key -> (not before, when to list); changed by :meth:`demand` and :meth:`settle`."""
    _demanded: DueTimes[Hashable] = field(default_factory=DueTimes)
    polls: DueTimes[Hashable] = field(default_factory=DueTimes)
    """Key -> until when its resources are polled; changed by :meth:`poll`, :meth:`end_poll` and :meth:`end_polls`."""
    _newest: DueTimes[Hashable] = field(default_factory=DueTimes)
    """Key -> when it began to poll, negated: the first one is the last to have begun."""
    paused: dict[Hashable, float] = field(default_factory=dict)
    """Key -> when its poll ended; if it polls again at once it keeps its start time."""
    since: dict[Hashable, float] = field(default_factory=dict)
    """Key -> when it began to poll without a break."""
    looks: set[float] = field(default_factory=set)
    """When everything is listed once more, for no particular key."""
    tracked: set[Hashable] = field(default_factory=set)
    """Keys whose resources are listed periodically."""
    period_s: float = FASTEST_S
    took_s: float = 0.0
    """How long lists take in seconds: the last one, or a decayed maximum of earlier ones."""
    hurry_s: float | None = None
    """Pause before one quick extra list, regardless of the period."""
    is_eventful: bool = False
    """The last periodic list showed that something ended."""
    began_s: float = NEVER_S
    retry_s: float = NEVER_S
    failures: int = 0
    is_running: bool = False

    def demand(self, key: Hashable, not_before_s: float, at_s: float) -> None:
        """Record or replace the demand of a key."""
        self.demands[key] = (not_before_s, at_s)
        self._demanded.set(key, at_s)

    def settle(self, key: Hashable) -> None:
        """Remove the demand of a key."""
        self.demands.pop(key, None)
        self._demanded.discard(key)

    def poll(self, key: Hashable, until_s: float) -> None:
        """Record or prolong the poll of a key, whose begin is known."""
        self.polls.set(key, until_s)
        self._newest.set(key, -self.since[key])

    def end_poll(self, key: Hashable, now_s: float) -> None:
        """End the poll of a key, if it has one."""
        if key in self.polls:
            self.polls.discard(key)
            self._rest(key, now_s)

    def end_polls(self, now_s: float) -> set[Hashable]:
        """End the polls whose time is over; return their keys."""
        over = set(self.polls.pop_until(now_s))
        for key in over:
            self._rest(key, now_s)
        return over

    def _rest(self, key: Hashable, now_s: float) -> None:
        self._newest.discard(key)
        self.paused[key] = now_s

    def leave(self, key: Hashable) -> None:
        """Remove all that is known of a key."""
        self.settle(key)
        self.polls.discard(key)
        self._newest.discard(key)
        self.paused.pop(key, None)
        self.since.pop(key, None)
        self.tracked.discard(key)

    def due_s(self, now_s: float) -> float:
        """Return when the next list must begin; infinite if none is requested."""
        polled_s = self.began_s + self.pause_s(now_s) if self.polls else float("inf")
        tracked_s = self.began_s + IDLE_S if self.tracked else float("inf")
        return max(min(self._demanded.first_s(), *self.looks, polled_s, tracked_s), self.retry_s)

    def pause_s(self, now_s: float) -> float:
        """Return the pause until the next list for pollers."""
        newest_s = -self._newest.first_s()
        if now_s - newest_s > PATIENCE_S:
            return TIRED_S
        return self.period_s if self.hurry_s is None else min(self.hurry_s, self.period_s)

    def pace(self, took_s: float, *, has_changed: bool, has_ended: bool, others_wait: bool) -> None:
        """Adapt the pause to the result of a list.

        The first change that ends something is followed by an early list: what was begun together ends together. While
        more of them end one after the other, the period applies to all.

        Args:
            took_s: duration of the list; at most half of the time is spent listing.
            has_ended: a resource reached another state.
            others_wait: another key waits that this change does not concern.
        """
        self.took_s = max(took_s, self.took_s * FORGETTING)
        was_hurried = self.hurry_s is not None
        is_first = has_ended and not self.is_eventful
        self.hurry_s = max(HURRY_S, 2 * took_s) if is_first and others_wait else None
        if was_hurried and not has_ended:
            return
        self.is_eventful = has_ended
        paced_s = self.period_s / SLOWING if has_changed else self.period_s * SLOWING
        self.period_s = max(min(max(paced_s, FASTEST_S), SLOWEST_S), 2 * took_s)
