"""What is known of one kind of resources in one project, and how a list changes that; no HTTP, no threads, no clock.

:mod:`capo.openstack.observer` fills shelves, :mod:`capo.openstack.observed` reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from capo.names import Stamp
from capo.openstack.kinds import ResourceKind

Body = Mapping[str, Any]

DELETED: Final = "DELETED"
UNKNOWN: Final = "UNKNOWN"
FASTEST_S: Final = 1.0
SLOWEST_S: Final = 5.0
SLOWING: Final = 1.3
"""Factor by which the pause between two looks grows while nothing changes."""
FORGETTING: Final = 0.7
"""What is left of how long a look took after another one that was quicker."""
HURRY_S: Final = 0.3
PATIENCE_S: Final = 600.0
TIRED_S: Final = 30.0
"""The pause once all who poll have waited for so long: what takes that long is stuck, mostly."""
_GONE_KEPT_S: Final = 3600.0
NEVER_S: Final = float("-inf")


@dataclass(frozen=True)
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
        """Whether Nova says that the server was deleted."""
        return self.body.get("status") == DELETED

    @property
    def state(self) -> str | None:
        """What Octavia, or any other service, calls the state; None for what has none."""
        state: str | None = self.body.get("provisioning_status") or self.body.get("status")
        return state


@dataclass(frozen=True)
class Snapshot:
    """What is known of a kind at one moment.

    Args:
        items: by id.
        began_s: when the last complete list of everything began; what is not in ``items`` was not there then.
        unreadable: how many resources of a Nova cell that is down were listed without a name and tags.
    """

    items: Mapping[str, Item]
    began_s: float
    unreadable: int


@dataclass(frozen=True)
class Doubt:
    """Why a resource may be here or not.

    Args:
        at_s: since when.
        owners: those whose it is, as its stamp says, else those whose it may be; empty when nobody knows.
        is_stamped: the stamp said so.
    """

    at_s: float
    owners: frozenset[str] = frozenset()
    is_stamped: bool = False

    def concerns(self, owner_id: str, *, may_adopt: bool) -> bool:
        """Return whether it may be a resource of this owner that a list does not show.

        Args:
            may_adopt: the owner adopts what carries no stamp.
        """
        return not self.owners or owner_id in self.owners or (may_adopt and not self.is_stamped)


@dataclass
class Shelf:
    """The resources of one kind."""

    kind: ResourceKind
    items: dict[str, Item] = field(default_factory=dict)
    full_began_s: float = NEVER_S
    """When the last complete list of everything began."""
    seen_s: float = NEVER_S
    """When the last complete list began, also one of changes."""
    _by_owner: dict[str, set[str]] = field(default_factory=dict)
    _gone: dict[str, float] = field(default_factory=dict)
    _doubted: dict[str, Doubt] = field(default_factory=dict)
    _ending: dict[str, float] = field(default_factory=dict)
    _unreadable: set[str] = field(default_factory=set)

    def snapshot(self) -> Snapshot:
        """Return what is known now; later changes do not show in it."""
        return Snapshot(dict(self.items), self.full_began_s, len(self._unreadable))

    def of_owner(self, owner: str) -> list[Item]:
        """Return everything that carries a stamp of an owner."""
        return [self.items[id_] for id_ in sorted(self._by_owner.get(owner, ()))]

    def as_of_s(self, item: Item) -> float:
        """Return how current an item is: a list of changes that left it out confirmed it."""
        return max(item.as_of_s, self.seen_s)

    def size(self) -> int:
        """Return how many resources there is something to know of."""
        return len(self.items) + len(self._gone) + len(self._doubted) + len(self._ending)

    def is_gone(self, resource_id: str) -> bool:
        """Tell whether a deletion was proven after everything that is on the shelf."""
        return resource_id in self._gone

    def learn(self, body: Body, now_s: float) -> None:
        """Take the answer of a write of ours, or of a GET."""
        self._gone.pop(body["id"], None)
        self._doubted.pop(body["id"], None)
        self._put(body["id"], body, now_s)

    def forget(self, resource_id: str, now_s: float) -> None:
        """Note that a resource is proven gone; lists that began before do not bring it back."""
        self._drop(resource_id)
        self._gone[resource_id] = now_s

    def doubt(self, resource_id: str, now_s: float, owners: Collection[str] = ()) -> None:
        """Trust what is known of a resource no longer; it is neither here nor gone, and older lists do not tell.

        Args:
            owners: those whose it may be if it carries no stamp.
        """
        item, before = self.items.get(resource_id), self._doubted.get(resource_id)
        self._drop(resource_id)
        if item is not None and item.stamp is not None:
            doubt = Doubt(now_s, frozenset({item.stamp.owner}), is_stamped=True)
        elif item is None and before is not None:
            known = before.owners if before.is_stamped or not before.owners else before.owners.union(owners)
            doubt = replace(before, at_s=now_s, owners=known)
        else:
            doubt = Doubt(now_s, frozenset(owners))
        self._doubted[resource_id] = doubt

    def end(self, resource_id: str, now_s: float) -> None:
        """Note that the cloud accepted a deletion: a complete list that begins later and lacks it proves the end."""
        self._ending[resource_id] = now_s

    def ending_s(self, resource_id: str) -> float | None:
        """Return when the cloud accepted a deletion; None when it was not asked for, or long ago."""
        return self._ending.get(resource_id)

    def in_doubt_since_s(self, resource_id: str) -> float | None:
        """Return since when a resource is in doubt, None if it is not."""
        doubt = self._doubted.get(resource_id)
        return doubt.at_s if doubt else None

    def doubted_s(self, owner_id: str, *, may_adopt: bool) -> float:
        """Return when something that may be an owner's was doubted: a list that began before tells no absence of it."""
        concerning = (each for each in self._doubted.values() if each.concerns(owner_id, may_adopt=may_adopt))
        return max((each.at_s for each in concerning), default=NEVER_S)

    def take_all(self, bodies: Iterable[Body], began_s: float) -> set[str]:
        """Take a complete list of everything; return the ids of what changed, appeared or vanished."""
        before = dict(self.items)
        listed = {body["id"]: body for body in bodies}
        changed = self._take(listed, began_s)
        for id_, item in before.items():
            if id_ not in listed and item.as_of_s < began_s:
                self._drop(id_)
                changed.add(id_)
                if self._ending.get(id_, began_s) < began_s:
                    self._gone[id_] = began_s
        # What was in doubt is known to be absent by now: that is news for its owner.
        doubted = {id_ for id_, doubt in self._doubted.items() if self.full_began_s <= doubt.at_s < began_s}
        changed |= doubted - listed.keys()
        unnamed = {id_ for id_, body in listed.items() if is_partial(self.kind.name, body)}
        self._unreadable = unnamed - before.keys()
        self.full_began_s = self.seen_s = began_s
        self._gone = _recent(self._gone, began_s)
        kept = _recent({id_: doubt.at_s for id_, doubt in self._doubted.items()}, began_s)
        self._doubted = {id_: self._doubted[id_] for id_ in kept}
        self._ending = _recent(self._ending, began_s)
        return changed

    def confirm(self, began_s: float) -> None:
        """Note that everything is known to be still as it was when a list of something else began."""
        self.full_began_s = self.seen_s = began_s

    def take_changes(self, bodies: Iterable[Body], began_s: float) -> set[str]:
        """Take a list of what changed since the one before; return the ids of what really changed."""
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
            self._doubted.pop(id_, None)
            new = self._completed(body, old)
            if old is None or self.kind.seen_as(old.body) != self.kind.seen_as(new):
                changed.add(id_)
            self._put(id_, new, began_s)
        return changed

    def _completed(self, body: Body, old: Item | None) -> Body:
        """Keep what a deleted server, or one of a cell that is down, does not show any more: its name and tags."""
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

    def _drop(self, id_: str) -> None:
        item = self.items.pop(id_, None)
        if item and item.stamp:
            owned = self._by_owner[item.stamp.owner]
            owned.discard(id_)
            if not owned:
                del self._by_owner[item.stamp.owner]


def _recent(noted: Mapping[str, float], now_s: float) -> dict[str, float]:
    return {id_: at_s for id_, at_s in noted.items() if now_s - at_s < _GONE_KEPT_S}


def is_partial(kind: str, body: Body) -> bool:
    """Return whether a server is shown without name and tags, because its cell is down (Compute API, 2.69)."""
    return kind == "server" and "name" not in body


@dataclass
class Schedule:
    """When a kind is listed next, and for whom."""

    demands: dict[Hashable, tuple[float, float]] = field(default_factory=dict)
    """Key -> (not before, when to list)."""
    polls: dict[Hashable, float] = field(default_factory=dict)
    """Key -> until when its resources are looked at again and again."""
    paused: dict[Hashable, float] = field(default_factory=dict)
    """Key -> when its poll ended; one that polls again at once is no newcomer."""
    since: dict[Hashable, float] = field(default_factory=dict)
    """Key -> when it began to poll without a break."""
    looks: set[float] = field(default_factory=set)
    """When everything is listed once more, for nobody in particular."""
    tracked: set[Hashable] = field(default_factory=set)
    """Keys whose resources are looked at once in a while."""
    period_s: float = FASTEST_S
    took_s: float = 0.0
    """How long looks take: the last one, or somewhat less than those before."""
    hurry_s: float | None = None
    """Look again so soon, once, whatever the period."""
    is_eventful: bool = False
    """The last look that was due by the period showed that something ended."""
    began_s: float = NEVER_S
    retry_s: float = NEVER_S
    failures: int = 0
    is_running: bool = False

    def pause_s(self, now_s: float) -> float:
        """Return the pause until the next look of those who poll."""
        if all(now_s - self.since.get(key, now_s) > PATIENCE_S for key in self.polls):
            return TIRED_S
        return self.period_s if self.hurry_s is None else min(self.hurry_s, self.period_s)

    def pace(self, took_s: float, *, has_changed: bool, has_ended: bool, others_wait: bool) -> None:
        """Adapt the pause to what a look showed.

        The first that ended after a look without an end is followed by a look soon after: what was begun together ends
        together. While one ends after the other, the period serves all.

        Args:
            took_s: how long the look took; half of the time at most is spent looking.
            has_ended: a resource came into another state.
            others_wait: somebody waits whom this change does not concern.
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
