"""Resources of one kind that may or may not exist, because an answer was lost or contradicted another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

NOBODY: Final = ""


@dataclass(frozen=True)
class Invalidation:
    """Why a resource may or may not exist.

    Args:
        at_s: since when.
        owners: those of the stamp, else those that may own it; empty if the owner is unknown.
        is_stamped: the owner is from the stamp.
    """

    at_s: float
    owners: frozenset[str] = frozenset()
    is_stamped: bool = False


@dataclass
class Invalidations(Mapping[str, Invalidation]):
    """Invalidations by id, found by the owners that they may concern; many may come at once, as in an outage."""

    _known: dict[str, Invalidation] = field(default_factory=dict)
    _by_owner: dict[str, set[str]] = field(default_factory=dict)
    _unstamped: set[str] = field(default_factory=set)

    def __getitem__(self, id_: str) -> Invalidation:
        return self._known[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def set(self, id_: str, invalidation: Invalidation) -> None:
        """Record or replace the invalidation of a resource."""
        self.remove(id_)
        self._known[id_] = invalidation
        for owner in invalidation.owners or (NOBODY,):
            self._by_owner.setdefault(owner, set()).add(id_)
        if not invalidation.is_stamped:
            self._unstamped.add(id_)

    def remove(self, id_: str) -> None:
        """Remove the invalidation of a resource, if it has one."""
        if (known := self._known.pop(id_, None)) is None:
            return
        self._unstamped.discard(id_)
        for owner in known.owners or (NOBODY,):
            self._by_owner[owner].discard(id_)
            if not self._by_owner[owner]:
                del self._by_owner[owner]

    def of(self, owner: str) -> Iterable[Invalidation]:
        """Return those of an owner's resources, by their stamp or by who used them; others may concern it, too."""
        return [self._known[id_] for id_ in self._by_owner.get(owner, ())]

    def concerning(self, owner: str, *, may_adopt: bool) -> Iterable[Invalidation]:
        """Return those that may be of a resource of an owner that a list does not show.

        Args:
            may_adopt: the owner adopts unstamped resources.
        """
        ids = self._by_owner.get(owner, set()) | self._by_owner.get(NOBODY, set())
        return [self._known[id_] for id_ in (ids | self._unstamped if may_adopt else ids)]
