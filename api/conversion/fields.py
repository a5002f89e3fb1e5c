"""Converts a part of an object, its spec or its status, from one version to the other without a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from api.conversion.json_ops import ConversionError
from capo.json_types import Json

Convert = Callable[[Json, int], Json]
"""Takes a part and the generation of its object."""
Keep = Callable[[Json, Json, int], Json]
"""Takes a converted part and the stored one, which may be outdated; returns the part with what is still valid."""


def keep_nothing(fresh: Json, _kept: Json, _generation: int) -> Json:
    """Return the converted part: nothing is restored."""
    return fresh


@dataclass(frozen=True)
class Way:
    """One direction."""

    there: Convert
    back: Convert
    keep: Keep = keep_nothing


@dataclass(frozen=True)
class Part:
    """Spec or status of a kind, in both directions."""

    name: str
    to_newer: Way
    to_older: Way

    @classmethod
    def of(
        cls, name: str, newer: Convert, older: Convert, *, keep_newer: Keep = keep_nothing, keep_older: Keep
    ) -> Part:
        """Return a part with these conversion functions."""
        return cls(name, Way(newer, older, keep_newer), Way(older, newer, keep_older))


def converted(value: Json, kept: Json | None, way: Way, generation: int) -> tuple[Json, bool]:
    """Return the part in the other version, and whether the conversion lost something.

    Args:
        kept: the part in the wanted version as it was when this one was converted from it. It is returned unchanged if
            the two are equal as far as both versions can express it.
    """
    fresh = way.there(value, generation)
    if kept is not None:
        fresh = _with_kept(fresh, kept, way, generation)
    return fresh, way.back(fresh, generation) != value


def _with_kept(fresh: Json, kept: Json, way: Way, generation: int) -> Json:
    try:
        if way.there(way.back(kept, generation), generation) == fresh:
            return kept
        return way.keep(fresh, kept, generation)
    except ConversionError:
        return fresh  # a user edited the annotation
