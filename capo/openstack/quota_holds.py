"""Creates that wait until the project's quota has room, in place of one refusal for each of them.

A refusal that names a resource starts a *hold* of it for all objects of a cloud. While it lasts the limits are read for
all of them together, at most once a minute, and a create is sent when it fits into what is left, less what others of
this process have reserved. Without a hold nothing is asked, except in a burst of creates.

A hold only delays: it never decides that something exists or not. The cloud has the last word: limits that cannot be
read, or that contradict a refusal, let one create through as a probe, and each success two more; limits without room
let one through every ten minutes. All of it is memory of this process. Numbers and words are in
:mod:`capo.openstack.quota`; the effect is described in ``docs/reference/quotas.md``.
"""

from __future__ import annotations

import itertools
import logging
import random
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from capo import gauges
from capo.errors import AmbiguousAnswerError, CapoError, NotYetObserved, QuotaExceededError
from capo.gauges import Labels
from capo.openstack import quota
from capo.openstack.owners import namespace_of
from capo.openstack.quota import Amounts, Left, Needs
from capo.openstack.quota_places import QuotaPlaces
from capo.openstack.quota_state import (
    COUNTED_S,
    FORCED_S,
    FORGOTTEN_S,
    NEVER_S,
    Reserved,
    Service,
    Waiting,
    note_failure,
    note_refusal,
    note_success,
)

log = logging.getLogger(__name__)

FALLBACK_S: Final = 120.0
"""Interval at which every waiting object is reconciled, without a request; usually it is woken before."""

WAITING: Final = gauges.of_number(
    "capo_quota_waiting", "Objects that wait until a quota of their project has room.", ("namespace", "resource")
)
_ALL: Final[weakref.WeakSet[QuotaHolds]] = weakref.WeakSet()
_ALL_LOCK: Final = threading.Lock()


@dataclass(frozen=True)
class Request:
    """A create that is about to be sent.

    Args:
        owner: the owner id of the object.
        key: woken when there is room.
        kind: of the resources.
        count: how many.
        needs: returns what must have room before it is sent, of this and of other services; None for the resources
            alone. It may send requests, and is called only while a hold or a burst lasts.
        was_held: the object's status says that it waits for a quota, as after a restart of this process.
    """

    owner: str
    key: Hashable
    kind: str
    count: int
    needs: Callable[[], Needs] | None = None
    was_held: bool = False

    @property
    def is_of_server(self) -> bool:
        """Return whether it is a server, or a part that is created for one."""
        return self.kind == "server" or (self.kind in ("port", "volume") and self.needs is not None)

    def needed(self) -> Needs:
        """Return what must have room."""
        return self.needs() if self.needs else quota.of_create(self.kind, self.count)


@dataclass(frozen=True)
class Hold:
    """Why a create must wait.

    Args:
        words: the quota that is exhausted; the same for an object while it waits for the same resources.
        after_s: when the object is to ask again at the latest.
    """

    words: str
    after_s: float

    @property
    def message(self) -> str:
        """What conditions show."""
        return f"{self.words}. {QuotaExceededError.advice} The provider notices within 5 minutes."


class QuotaHolds:
    """The holds of one cloud; thread safe.

    Args:
        read: returns what is left of the quotas of a service; raises CapoError.
        now: steady seconds.
        wake: called with the key of an object that waits, when it may go on.
        places: what replacements free in the project; clouds with other credentials share it.
    """

    def __init__(
        self,
        read: Callable[[str], Left],
        now: Callable[[], float],
        wake: Callable[[Any], None],
        places: QuotaPlaces | None = None,
    ) -> None:
        self._read, self._now, self._wake = read, now, wake
        self.places = QuotaPlaces(now) if places is None else places
        self._lock = threading.RLock()
        self._services: Mapping[str, Service] = {name: Service(name, self.places) for name in quota.SERVICES}
        with _ALL_LOCK:
            _ALL.add(self)

    def __len__(self) -> int:
        with self._lock:
            return sum(len(each.waiting) + len(each.reserved) for each in self._services.values())

    def waiting(self) -> Counter[Labels]:
        """Return how many objects wait, by namespace and by resource, given as a label of metrics."""
        with self._lock:
            found = [each for service in self._services.values() for each in service.waiting.values()]
        seen_s = self._now() - FORGOTTEN_S
        return Counter(
            (namespace_of(each.key), label)
            for each in found
            if each.seen_s > seen_s
            for label in set(map(quota.label, each.resources))
        )

    # -- before and after a create ----------------------------------------------------------------------------------

    def hold(self, request: Request) -> Hold | None:
        """Return why a create must wait; None if it may be sent, whose end :meth:`settle` reports.

        Raises:
            NotYetObserved: another thread reads the limits; the key is woken then.
        """
        own = quota.service_of(request.kind)
        if own is None:
            return None
        with self._lock:
            now_s = self._now()
            for service in self._services.values():
                service.expire(now_s)
            is_burst = self._services[own].is_burst(now_s)
            is_checked = is_burst or request.was_held
            starts = request.is_of_server and self._starts_with_others(request, now_s)
            if not (is_checked or starts or self._is_held() or self.places.is_any()):
                self._begin(own, request.owner, Reserved(now_s, lambda: request.needed().get(own, {})))
                return None
        whole = self._whole(request)
        early = {quota.COMPUTE} if starts else set[str]()
        checked = [name for name in whole if is_checked or name in early or self._is_checked(name, request, whole)]
        return self._checked(request, own, whole, checked)

    def _is_held(self) -> bool:
        return any(each.held for each in self._services.values())

    def _is_checked(self, name: str, request: Request, whole: Needs) -> bool:
        """Return whether a service has a hold, or keeps a place of what the create needs for another object."""
        service = self._services[name]
        return bool(service.held) or any(service.kept(resource, request.key) for resource in whole[name])

    def _checked(self, request: Request, own: str, whole: Needs, names: Iterable[str]) -> Hold | None:
        """Decide on a create by the limits of some services; those behind the first without room are not read.

        Places that are kept for the object need no check: the cloud has the last word.
        """
        found = {name: self.places.uncovered(request.key, name, whole[name]) for name in names}
        needs = {name: found[name] for name in sorted(found, key=partial(self._rank, request.owner)) if found[name]}
        known: dict[str, Amounts] = {}
        for name, amounts in needs.items():
            self._look_up(name)
            self._refresh(name, request.key)
            known[name] = amounts
            with self._lock:
                service, now_s = self._services[name], self._now()
                if service.verdict(request.owner, amounts, key=request.key, now_s=now_s).short:
                    break
        with self._lock:
            return self._decided(request, own, whole, known)

    def _rank(self, owner: str, name: str) -> int:
        """Return the order in which the limits of services are read: first those without room, as far as is known."""
        service = self._services[name]
        return 0 if owner in service.waiting else 1 if service.held else 2

    def settle(self, request: Request, error: CapoError | None) -> None:
        """Report how a create ended."""
        own = quota.service_of(request.kind)
        if own is None:
            return
        refused = self._refused(request, own, error) if error else {}
        # The parts of a server are created later, each by a request of its own.
        others = () if request.is_of_server else self._whole(request).keys() - {own}
        self._settle_places(request, {own, *others}, error)
        woken: list[Hashable] = []
        with self._lock:
            service, now_s = self._services[own], self._now()
            reserved = service.reserved.pop(request.owner, None)
            if error and refused:
                note_refusal(service, refused, error, now_s)
            elif (error is None or isinstance(error, AmbiguousAnswerError)) and reserved and reserved.amounts:
                reserved.at_s, reserved.is_done = now_s, True
                service.reserved.put(request.owner, reserved)
                woken = note_success(service, reserved) if error is None else []
            for name in others:
                self._settle_with(name, request.owner, error)
            # The next in the queue asks from now on.
            woken = woken or [each.key for each in itertools.islice(service.waiting.values(), 1)]
        self._wake_all(woken)

    def _settle_places(self, request: Request, taken: Iterable[str], error: CapoError | None) -> None:
        """Settle what is kept for the object."""
        if not self.places.is_owner(request.key):
            return
        whole = self._whole(request)
        if error:
            self.places.note_failure(request.key)
        else:
            self.places.note_success(request.key, {name: whole[name] for name in taken if name in whole})
        with self._lock:
            for name in whole:
                self._services[name].began_s = NEVER_S  # limits that were read before may not show what changed

    def _settle_with(self, name: str, owner: str, error: CapoError | None) -> None:
        """Settle what the create took of another service: a read of its limits counts it from now on."""
        service = self._services[name]
        reserved = service.reserved.pop(owner, None)
        if error and reserved:
            note_failure(service, reserved, self._now())
        if reserved and reserved.amounts and (error is None or isinstance(error, AmbiguousAnswerError)):
            reserved.at_s, reserved.is_done = self._now(), True
            service.reserved.put(owner, reserved)

    def _refused(self, request: Request, own: str, error: CapoError) -> Amounts:
        """Return what a refusal names of what the create needed; looked up outside of the lock."""
        names = quota.named(own, error.message) if isinstance(error, QuotaExceededError) else frozenset[str]()
        needs = self._whole(request).get(own, {}) if names else {}
        return {name: amount for name, amount in needs.items() if name in names}

    def _whole(self, request: Request) -> Needs:
        """Return what a create needs; that of an object that waits is known."""
        with self._lock:
            known = (service.waiting.get(request.owner) for service in self._services.values())
            found = next((each.whole for each in known if each and each.kind == request.kind), None)
        return request.needed() if found is None else found

    def _begin(self, name: str, owner: str, reserved: Reserved) -> None:
        self._services[name].reserved.put(owner, reserved)
        self._services[name].note_begin(owner, self._now(), once=name == quota.COMPUTE)

    def _starts_with_others(self, request: Request, now_s: float) -> bool:
        """Count a server from its first part on; return whether others start at the same time."""
        compute = self._services[quota.COMPUTE]
        compute.note_begin(request.owner, now_s, once=True)
        return compute.starts_with_others(request.owner, now_s)

    # -- the decision -----------------------------------------------------------------------------------------------

    def _decided(self, request: Request, own: str, whole: Needs, checked: Needs) -> Hold | None:
        """Decide on a create; the services that were checked come with what needs room there."""
        now_s, owner, key = self._now(), request.owner, request.key
        verdicts = {
            name: self._services[name].verdict(owner, amounts, key=key, now_s=now_s)
            for name, amounts in checked.items()
        }
        if blocked := {name: verdict.short for name, verdict in verdicts.items() if verdict.short}:
            return self._wait(request, whole, blocked)
        for service in self._services.values():
            service.waiting.pop(owner, None)
        for name, verdict in verdicts.items():
            service = self._services[name]
            for resource in verdict.permitted - service.granted(request.owner).permitted:
                service.held[resource].take_permit(now_s)
            for resource in verdict.forced:
                service.held[resource].forced_s = now_s + FORCED_S
            reserved = Reserved(now_s, dict, whole[name], verdict.forced, verdict.permitted)
            service.reserved.put(request.owner, reserved)
        granted = self._services[own].reserved.get(request.owner) if own in verdicts else None
        self._begin(own, request.owner, granted or Reserved(now_s, dict, whole.get(own, {})))
        return None

    def _wait(self, request: Request, whole: Needs, blocked: Mapping[str, frozenset[str]]) -> Hold:
        """Note that an object waits, in its place in the queue."""
        now_s, told = self._now(), []
        for name in self._services.keys() - blocked.keys():
            self._services[name].waiting.pop(request.owner, None)
        due_s = now_s + FALLBACK_S * random.uniform(0.9, 1.1)  # noqa: S311 - spreads reconciles, no secret
        for name, short in blocked.items():
            service, needs = self._services[name], whole[name]
            known = service.waiting.get(request.owner)
            is_same = known is not None and known.resources == short
            words = known.words if known and is_same else service.words(request.owner, short, needs, key=request.key)
            waiting = Waiting(request.key, request.kind, short, needs, whole, words, now_s)
            service.waiting.put(request.owner, waiting)
            told.append(words)
            if next(iter(service.waiting)) == request.owner:  # the first one asks for all
                at_s = service.due_s(request.owner, short, needs, key=request.key, now_s=now_s)
                due_s = min(due_s, max(now_s + 1.0, at_s))
        return Hold("; ".join(told), due_s - now_s)

    # -- limits -----------------------------------------------------------------------------------------------------

    def _look_up(self, name: str) -> None:
        """Look up what creates take that were begun before there was a hold."""
        with self._lock:
            unknown = [each for each in self._services[name].reserved.values() if each.amounts is None]
        for each in unknown:
            each.amounts = each.needs()

    def _refresh(self, name: str, key: Hashable) -> None:
        """Read the limits of a service if they are outdated; wake the objects that fit into what is left now.

        Raises:
            NotYetObserved: another thread reads them; the key is woken then.
        """
        service = self._services[name]
        with self._lock:
            began_s = self._now()
            if service.is_reading:
                service.asking.append(key)
                raise NotYetObserved(name)
            if began_s < service.next_read_s(began_s):
                return
            service.is_reading = True
        left: Left = {}
        try:
            left = self._limits(name)
        finally:
            with self._lock:
                service.left, service.began_s, service.is_reading = left, began_s, False
                counted_s = began_s - (COUNTED_S if name == quota.COMPUTE else 0.0)
                for owner, each in list(service.reserved.items()):
                    if each.is_done and each.at_s <= counted_s:
                        del service.reserved[owner]  # the cloud has counted it
                woken = [*service.asking, *service.fitting(self._now())]
                service.asking = []
            self._wake_all(woken)

    def _limits(self, name: str) -> Left:
        """Return what is left; nothing is known if the limits cannot be read."""
        try:
            return self._read(name)
        except CapoError as error:
            log.info("Limits of the project cannot be read", extra={"service": name, "error": error.message})
            return {}

    def _wake_all(self, keys: Iterable[Hashable]) -> None:
        for key in keys:
            self._wake(key)


def _waiting() -> dict[Labels, float]:
    """Return how many objects of all clouds wait."""
    with _ALL_LOCK:
        clouds = list(_ALL)
    total = sum((each.waiting() for each in clouds), Counter[Labels]())
    return {labels: float(count) for labels, count in total.items()}


WAITING.set_function(_waiting)
