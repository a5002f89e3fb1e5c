"""Owner ids that this process gave to objects which it created itself, before their first reconcile."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from capo import caches, names

MOST: Final = 20_000
"""Objects whose first reconcile is awaited; beyond that the oldest are evicted, which costs each of them a list."""


class MintedOwners:
    """Owner ids by the uid of their object; thread safe.

    Nothing in the cloud can carry such an id before the first reconcile of that very object: its absence needs no list
    (ADR 0001). An object that is moved or restored has another uid, and so does not count.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_uid: OrderedDict[str, str] = OrderedDict()
        caches.register("minted_owners", self, lambda minted: len(minted._of_uid))

    def add(self, created: Mapping[str, Any]) -> None:
        """Record an object as the API server returned it from its creation."""
        with self._lock:
            self._of_uid[created["metadata"]["uid"]] = created["metadata"]["annotations"][names.OWNER_ID_ANNOTATION]
            while len(self._of_uid) > MOST:
                self._of_uid.popitem(last=False)
                caches.evicted("minted_owners")

    def has(self, obj: Mapping[str, Any]) -> bool:
        """Return whether an object has the owner id that was recorded for it."""
        noted = (obj["metadata"].get("annotations") or {}).get(names.OWNER_ID_ANNOTATION)
        with self._lock:
            minted = self._of_uid.get(obj["metadata"]["uid"])
        return minted is not None and minted == noted

    def forget(self, uid: str) -> None:
        """Remove an object: something was created for it."""
        with self._lock:
            self._of_uid.pop(uid, None)

    def clear(self) -> None:
        """Remove all: the API server's objects may be newer than what this process remembers."""
        with self._lock:
            self._of_uid.clear()
