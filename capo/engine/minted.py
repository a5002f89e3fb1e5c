"""Owner ids that this process gave to objects which it created itself, before their first reconcile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from capo import names
from capo.caches import Bounded

MOST: Final = 20_000
"""Objects whose first reconcile is awaited; beyond that the oldest are evicted, which costs each of them a list."""


class MintedOwners:
    """Owner ids by the uid of their object; thread safe.

    Nothing in the cloud can carry such an id before the first reconcile of that very object: its absence needs no list
    (ADR 0001). An object that is moved or restored has another uid, and so does not count.
    """

    def __init__(self) -> None:
        self._of_uid: Bounded[str, str] = Bounded.by_number(MOST, name="minted_owners")
        self._creating: set[str] = set()

    @contextmanager
    def creating(self, wanted: Mapping[str, Any]) -> Iterator[None]:
        """Know an object by its owner id alone for the block, which sends its creation.

        Its first reconcile may begin before the answer, which has the uid; outside of this process the owner id is not
        known before.
        """
        owner = wanted["metadata"]["annotations"][names.OWNER_ID_ANNOTATION]
        self._creating.add(owner)
        try:
            yield
        finally:
            self._creating.discard(owner)

    def add(self, created: Mapping[str, Any]) -> None:
        """Record an object as the API server returned it from its creation."""
        self._of_uid.put(created["metadata"]["uid"], created["metadata"]["annotations"][names.OWNER_ID_ANNOTATION])

    def has(self, obj: Mapping[str, Any]) -> bool:
        """Return whether an object has the owner id that was recorded for it, or is sent with its creation now."""
        minted = self._of_uid.get(obj["metadata"]["uid"])
        noted = (obj["metadata"].get("annotations") or {}).get(names.OWNER_ID_ANNOTATION)
        return noted is not None and (minted == noted or noted in self._creating)

    def forget(self, uid: str) -> None:
        """Remove an object: something was created for it."""
        self._of_uid.drop(uid)

    def clear(self) -> None:
        """Remove all: the API server's objects may be newer than what this process remembers."""
        self._of_uid.clear()
