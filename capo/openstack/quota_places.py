"""Room in the quotas of a project that a replacement frees, kept for its owner until the owner has it again.

A replacement that deletes first returns its quota to the project. From before the deletion until the owner's create
succeeded no other create of this process takes it, whatever credentials that uses. A place decides nothing about what
exists: it only delays the creates of others, and it ends when its owner is no longer reconciled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from capo.openstack.quota import Amounts, Needs

KEPT_S: Final = 900.0
"""A place is kept for so long after its owner last asked for it: longer than the default resync period."""
FORGOTTEN_S: Final = 86400.0
"""A place that was used or left is remembered for so long: what objects record does not bring it back."""


@dataclass
class _Place:
    """What one replacement frees, less what its owner has taken again.

    Args:
        seen_s: when its owner asked for it last.
        is_tried: a create of its owner failed since: the place may be taken, so that the limits decide.
    """

    needs: dict[str, dict[str, int]]
    seen_s: float
    is_tried: bool = False


class QuotaPlaces:
    """The places of one project; thread safe.

    Args:
        now: steady seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._places: dict[tuple[Hashable, str], _Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    # -- of the owner -----------------------------------------------------------------------------------------------

    def keep(self, key: Hashable, slot: str, needs: Needs) -> None:
        """Keep a place before its resource is deleted.

        Args:
            key: whose create gets it: the key of an object, which also a new object of the same name has.
            slot: which of the owner's places it is.
        """
        with self._lock:
            self._put(key, slot, needs)

    def renew(self, key: Hashable, slot: str, needs: Needs) -> None:
        """Keep a place whose resource is deleted, for its owner; one that was used is not kept again."""
        with self._lock:
            if place := self._places.get((key, slot)):
                place.seen_s = self._now()
            else:
                self._put(key, slot, needs)

    def knows(self, key: Hashable, slot: str) -> bool:
        """Return whether there was such a place within a day."""
        with self._lock:
            return (key, slot) in self._places

    def release(self, key: Hashable, slot: str) -> None:
        """Give up what is left of a place: its owner does not need it any more."""
        with self._lock:
            if place := self._places.get((key, slot)):
                place.needs = {}

    def _put(self, key: Hashable, slot: str, needs: Needs) -> None:
        now_s = self._now()
        self._places = {k: each for k, each in self._places.items() if now_s - each.seen_s < FORGOTTEN_S}
        self._places[key, slot] = _Place({service: dict(amounts) for service, amounts in needs.items()}, now_s)

    # -- of creates -------------------------------------------------------------------------------------------------

    def is_any(self) -> bool:
        """Return whether any place is kept."""
        with self._lock:
            return any(True for _ in self._kept())

    def is_owner(self, key: Hashable) -> bool:
        """Return whether a place is kept for an object."""
        with self._lock:
            return any(owner == key for owner, _ in self._kept())

    def of_others(self, key: Hashable, service: str, resource: str) -> int:
        """Return how much is kept for others."""
        with self._lock:
            others = (place for owner, place in self._kept() if owner != key)
            return sum(place.needs.get(service, {}).get(resource, 0) for place in others)

    def uncovered(self, key: Hashable, service: str, needs: Amounts) -> Amounts:
        """Return what of the needs the owner's places do not cover: the limits decide on that alone."""
        with self._lock:
            own = [place.needs.get(service, {}) for owner, place in self._kept() if owner == key and not place.is_tried]
            return {name: amount for name, amount in needs.items() if amount > sum(each.get(name, 0) for each in own)}

    def is_lost(self, key: Hashable, service: str, resource: str) -> bool:
        """Return whether a create for which a place is kept failed."""
        with self._lock:
            own = (place for owner, place in self._kept() if owner == key and place.is_tried)
            return any(place.needs.get(service, {}).get(resource) for place in own)

    def note_failure(self, key: Hashable) -> None:
        """Note that a create of an owner failed: its places stay, and the limits decide on its next create."""
        with self._lock:
            for owner, place in self._kept():
                if owner == key:
                    place.is_tried = True

    def note_success(self, key: Hashable, taken: Needs) -> None:
        """Note what a create of an owner took."""
        with self._lock:
            for service, amounts in taken.items():
                for resource, amount in amounts.items():
                    self._take(key, service, resource, amount)

    def _take(self, key: Hashable, service: str, resource: str, amount: int) -> None:
        for owner, place in self._kept():
            kept = place.needs.get(service, {})
            if owner == key and resource in kept:
                used = min(amount, kept[resource])
                kept[resource] -= used
                amount -= used

    def _kept(self) -> Iterator[tuple[Hashable, _Place]]:
        since_s = self._now() - KEPT_S
        for (owner, _), place in self._places.items():
            if place.seen_s > since_s and any(any(each.values()) for each in place.needs.values()):
                yield owner, place
