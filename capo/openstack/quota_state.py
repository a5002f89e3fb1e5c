"""What is known of the quotas of one service: what is left, what is reserved, what is held, and who waits.

Not thread safe: :class:`capo.openstack.quota_holds.QuotaHolds` calls it under its lock.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from capo.due_times import DueTimes
from capo.errors import CapoError
from capo.openstack import quota
from capo.openstack.quota import Amounts, Left, Needs
from capo.openstack.quota_places import QuotaPlaces

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 60.0
"""Interval at which limits are read, and at which a create is tried that they do not rule out after a refusal."""
LONG_S: Final = 600.0
LATER_PAUSE_S: Final = 150.0
"""The same once a hold lasts for ``LONG_S``: an exhausted quota may stay so for days."""
FORCED_S: Final = 600.0
"""Interval at which a create is sent although the limits have no room for it."""
LINGER_S: Final = 60.0
"""A hold ends so long after its last refusal, once nothing waits for it and a create succeeded."""
FORGOTTEN_S: Final = 300.0
"""What an object waits for, or has reserved, is dropped when it was not seen for so long. A hold lasts for so long
after a refusal, because the object that met it asks again within two minutes."""
BURST: Final = 16
BURST_S: Final = 60.0
"""So many creates of a service within this time are checked against its limits before any is refused."""
SERVERS: Final = 2
"""So many servers that start within that time are checked, too: Nova alone accepts what exceeds its quotas."""
COUNTED_S: Final = 10.0
"""Nova counts cores and memory of a server only when its conductor has stored it, after the answer of the create."""
MAX_WOKEN: Final = 8
"""Waiting objects that one success wakes; each of them wakes as many."""
NEVER_S: Final = float("-inf")
_LOST: Final = (
    "what the deletion of the former one freed is not left: something else in the project took it, or the quota was "
    "lowered"
)


@dataclass
class Held:
    """A resource whose quota is exhausted.

    Args:
        forced_s: when a create may be sent although the limits have no room for it.
        words: of the last refusal.
        refused: the smallest amount that was refused; None if the limits alone ruled a create out.
        probe_s: when one create may be sent that the limits do not rule out, although an amount like it was refused.
        permits: further ones that may be sent.
        is_blind: the limits were wrong: permits alone decide, until the next refusal.
        linger_s: how long it lasts after the last refusal if nothing waits.
    """

    since_s: float
    forced_s: float
    words: str = ""
    refused: int | None = None
    refused_s: float = NEVER_S
    probe_s: float = NEVER_S
    permits: int = 0
    is_blind: bool = False
    linger_s: float = LINGER_S

    def needs_permit(self, amount: int, free: int | None) -> bool:
        """Return whether the refusal contradicts the limits, or nothing is known of them."""
        is_wrong = self.is_blind or self.refused is not None
        return is_wrong and (free is None or self.refused is None or amount >= self.refused)

    def has_permit(self, now_s: float) -> bool:
        """Return whether a create may be sent that the limits do not decide on."""
        return self.permits > 0 or now_s >= self.probe_s

    def take_permit(self, now_s: float) -> None:
        """Use up what :meth:`has_permit` found."""
        if self.permits > 0:
            self.permits -= 1
        else:
            self.probe_s = now_s + self.pause_s(now_s)

    def pause_s(self, now_s: float) -> float:
        """Return the pause before limits are read, or a create is tried, once more."""
        return FIRST_PAUSE_S if now_s - self.since_s < LONG_S else LATER_PAUSE_S


@dataclass
class Waiting:
    """An object that waits.

    Args:
        resources: those that it waits for.
        needs: what it needs of this service.
        whole: what it needs of all services.
        words: the exhausted quotas, as its condition shows them.
    """

    key: Hashable
    kind: str
    resources: frozenset[str]
    needs: Amounts
    whole: Needs
    words: str
    seen_s: float


@dataclass
class Reserved:
    """What a create takes that the last read of the limits may not have counted.

    Args:
        needs: looks the amounts up; called outside of the lock.
        amounts: None until they are needed.
        forced: resources that it takes although the limits have no room.
        permitted: resources for which it took a permit, which lasts until it was sent.
    """

    at_s: float
    needs: Callable[[], Amounts]
    amounts: Amounts | None = None
    forced: frozenset[str] = frozenset()
    permitted: frozenset[str] = frozenset()
    is_done: bool = False


@dataclass(frozen=True)
class Verdict:
    """What the quotas of one service mean for a create.

    Args:
        short: the resources that it has to wait for.
        forced: those that it may try although the limits have no room.
        permitted: those for which it needs a permit.
    """

    short: frozenset[str]
    forced: frozenset[str]
    permitted: frozenset[str]


V = TypeVar("V")


class Expiring(dict[str, V]):
    """Entries by owner in the order of arrival; :meth:`expire` drops those that were not seen for ``FORGOTTEN_S``.

    It examines only entries that may be due, each once in that time: none in most calls.

    Args:
        seen_s: returns when an entry was seen last.
    """

    def __init__(self, seen_s: Callable[[V], float]) -> None:
        super().__init__()
        self._seen_s = seen_s
        self._due: DueTimes[str] = DueTimes()
        """When to examine an owner; also one whose entry was deleted since."""

    def put(self, owner: str, entry: V) -> None:
        """Store an entry; a later one of the same owner keeps its place in the order."""
        self[owner] = entry
        self._schedule(owner)

    def expire(self, now_s: float) -> None:
        """Drop the entries that were not seen for long."""
        for owner in self._due.pop_until(now_s):
            entry = self.get(owner)
            if entry is None:
                continue
            if now_s - self._seen_s(entry) < FORGOTTEN_S:
                self._schedule(owner)
            else:
                del self[owner]

    def _schedule(self, owner: str) -> None:
        if owner not in self._due:
            self._due.set(owner, self._seen_s(self[owner]) + FORGOTTEN_S)


@dataclass
class Service:
    """What is known of the quotas of one service.

    Args:
        name: of the service.
        places: what is kept for replacements.
    """

    name: str
    places: QuotaPlaces
    left: Left = field(default_factory=dict)
    began_s: float = NEVER_S
    held: dict[str, Held] = field(default_factory=dict)
    waiting: Expiring[Waiting] = field(default_factory=lambda: Expiring(lambda each: each.seen_s))
    reserved: Expiring[Reserved] = field(default_factory=lambda: Expiring(lambda each: each.at_s))
    recent: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=BURST))
    """Times and owners of creates, the last ones."""
    is_reading: bool = False
    asking: list[Hashable] = field(default_factory=list)
    """Woken when the limits, which another thread reads, are known."""

    def is_burst(self, now_s: float) -> bool:
        """Return whether creates are so frequent that limits are read before any refusal."""
        return len(self.recent) == BURST and now_s - self.recent[0][0] < BURST_S

    def starts_with_others(self, owner: str, now_s: float) -> bool:
        """Return whether enough objects, an owner among them, begin creates within the time of a burst."""
        others = {other for at_s, other in self.recent if now_s - at_s < BURST_S} - {owner}
        return len(others) + 1 >= SERVERS

    def note_begin(self, owner: str, now_s: float, *, once: bool = False) -> None:
        """Count a create.

        Args:
            once: not again if the owner was counted within the time of a burst.
        """
        if not (once and any(other == owner and now_s - at_s < BURST_S for at_s, other in self.recent)):
            self.recent.append((now_s, owner))

    def next_read_s(self, now_s: float) -> float:
        """Return when the limits are outdated."""
        return self.began_s + max((held.pause_s(now_s) for held in self.held.values()), default=FIRST_PAUSE_S)

    def free(self, resource: str, owner: str) -> int | None:
        """Return what is left for an owner, before places of others; None if that is unlimited or unknown."""
        left = self.left.get(resource)
        if left is None or (resource in self.held and self.held[resource].is_blind):
            return None
        others = (each.amounts or {} for other, each in self.reserved.items() if other != owner)
        return left - sum(amounts.get(resource, 0) for amounts in others)

    def kept(self, resource: str, key: Hashable) -> int:
        """Return what is kept for replacements of others."""
        return self.places.of_others(key, self.name, resource)

    def hold_on(self, resource: str, now_s: float) -> Held:
        """Return the hold of a resource; it begins now if there was none."""
        return self.held.setdefault(resource, Held(now_s, now_s + FORCED_S))

    def granted(self, owner: str) -> Reserved:
        """Return what an owner was let through with that has not been sent yet; an empty one without any."""
        known = self.reserved.get(owner)
        return known if known and not known.is_done else Reserved(NEVER_S, dict)

    def verdict(self, owner: str, needs: Amounts, *, key: Hashable, now_s: float) -> Verdict:
        """Decide on a create; a resource that the limits rule out is held from now on."""
        short, forced, permitted = set[str](), set[str](), set[str]()
        granted = self.granted(owner)
        for name, amount in needs.items():
            free, held, kept = self.free(name, owner), self.held.get(name), self.kept(name, key)
            if free is not None and amount > free - kept:
                held = self.hold_on(name, now_s)
                may_try = name in granted.forced or now_s >= held.forced_s
                (forced if may_try and not kept else short).add(name)  # a probe might take what is kept
            elif held and (held.needs_permit(amount, free) or (kept and name not in self.left)):
                may_try = name in granted.permitted or held.has_permit(now_s)
                (permitted if may_try and not kept else short).add(name)
        return Verdict(frozenset(short), frozenset(forced), frozenset(permitted))

    def words(self, owner: str, short: Iterable[str], needs: Amounts, *, key: Hashable) -> str:
        """Return which quotas are exhausted, with what is left of them where that is known."""
        found = []
        for name in sorted(short):
            free, kept, refusal = self.free(name, owner), self.kept(name, key), self.held[name].words
            is_known = free is not None and needs[name] > free - kept
            told = ": ".join(filter(None, (f"quota of {quota.name(name)} exhausted", refusal)))
            text = quota.exhausted(name, needs[name], free) if is_known and free is not None else told
            if kept:
                text += f", {kept} kept for what is being replaced"
            if self.places.is_lost(key, self.name, name):
                text += f"; {_LOST}" + (f": {refusal}" if refusal and refusal not in text else "")
            found.append(text)
        return "; ".join(found)

    def due_s(self, owner: str, short: Iterable[str], needs: Amounts, *, key: Hashable, now_s: float) -> float:
        """Return when the answer to an owner may change without an event."""
        due = []
        for name in short:
            free, held, kept = self.free(name, owner), self.held[name], self.kept(name, key)
            if kept:
                due.append(self.next_read_s(now_s))
            elif free is not None and needs[name] > free:
                due.append(min(self.next_read_s(now_s), held.forced_s))
            else:
                due.append(held.probe_s)
        return min(due)

    def fitting(self, now_s: float) -> list[Hashable]:
        """Return the keys of the waiting objects that fit into what is left, in the order of their arrival."""
        taken: dict[str, int] = {}
        permits = {name: held.permits or int(now_s >= held.probe_s) for name, held in self.held.items()}
        free = {name: self.free(name, "") for each in self.waiting.values() for name in each.needs}
        found = []
        for each in self.waiting.values():
            needs = each.needs
            kept = {name: self.kept(name, each.key) for name in needs}
            asked = [
                name for name in needs if name in self.held and self.held[name].needs_permit(needs[name], free[name])
            ]
            has_room = all(
                (left := free[name]) is None or taken.get(name, 0) + amount <= left - kept[name]
                for name, amount in needs.items()
            )
            if has_room and all(permits[name] > 0 and not kept[name] for name in asked):
                found.append(each.key)
                taken |= {name: taken.get(name, 0) + amount for name, amount in needs.items()}
                permits |= {name: permits[name] - 1 for name in asked}
        return found

    def expire(self, now_s: float) -> None:
        """Drop what was not seen for long, and holds that nothing waits for."""
        self.waiting.expire(now_s)
        self.reserved.expire(now_s)
        if self.held and not self.waiting:
            ends_s = {name: max(each.since_s, each.refused_s) + each.linger_s for name, each in self.held.items()}
            self.held = {name: held for name, held in self.held.items() if now_s < ends_s[name]}


def note_refusal(service: Service, refused: Amounts, error: CapoError, now_s: float) -> None:
    """Hold the resources that a refusal named."""
    for name, amount in refused.items():
        held = service.hold_on(name, now_s)
        if held.refused is None:
            log.info("Creates wait: a quota is exhausted", extra={"resource": name, "refusal": error.message})
        held.words, held.is_blind = quota.why(error), False
        held.refused = amount if held.refused is None else min(amount, held.refused)
        held.refused_s, held.forced_s, held.permits = now_s, now_s + FORCED_S, 0
        held.probe_s, held.linger_s = now_s + held.pause_s(now_s), FORGOTTEN_S


def note_failure(service: Service, reserved: Reserved, now_s: float) -> None:
    """Prolong the holds whose limits a create was sent against: another service names no quota when it fails it."""
    for name in service.held.keys() & reserved.forced:
        service.held[name].refused_s, service.held[name].linger_s = now_s, FORGOTTEN_S


def note_success(service: Service, reserved: Reserved) -> list[Hashable]:
    """Admit two more creates for each that succeeds after a refusal; return the keys to wake."""
    permits = 0
    for name in service.held.keys() & (reserved.amounts or {}).keys():
        held = service.held[name]
        held.linger_s = LINGER_S
        held.is_blind = held.is_blind or name in reserved.forced
        if held.refused is not None or held.is_blind:
            held.permits += 2
            permits = max(permits, held.permits)
    return [each.key for each in itertools.islice(service.waiting.values(), min(permits, MAX_WOKEN))]
