"""Last observed fields of each server; not persisted. ``external_changes.py`` uses them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from capo.caches import Bounded

MOST: Final = 20_000
"""Maximum number of servers; the next change of an evicted one is not noticed: a condition lacks a sentence."""


@dataclass(frozen=True)
class Sighting:
    """A field's last observed value.

    Args:
        changed_s: when this value first replaced another one, seconds since 1970, for messages; None if it never
            changed.
        is_news: this call was the first to observe the value.
    """

    value: str
    changed_s: float | None = None
    is_news: bool = False


class Sightings:
    """The last value of a few fields of each server; the reconciles of one server never overlap."""

    def __init__(self) -> None:
        self._seen: Bounded[str, dict[str, Sighting]] = Bounded.by_number(MOST, name="sightings")

    def note(self, server_id: str, field: str, value: str, *, now_s: float) -> Sighting:
        """Record a field's value; return it with the time of its last change, which later calls return, too."""
        fields = self._seen.get(server_id) or {}
        before = fields.get(field)
        if before is None or before.value == value:
            fields[field] = replace(before, is_news=False) if before else Sighting(value)
        else:
            fields[field] = Sighting(value, now_s, is_news=True)
        self._seen.put(server_id, fields)
        return fields[field]

    def last(self, server_id: str, field: str) -> str | None:
        """Return the value that was recorded last, None before the first."""
        known = (self._seen.get(server_id) or {}).get(field)
        return known.value if known else None

    def forget(self, server_id: str) -> None:
        """Remove the entries of a deleted server."""
        self._seen.drop(server_id)
