"""What this process wrote of the watched objects: no reconcile begins with an older state of them.

The store takes the answer of a write at once, so it is behind only if the answer was lost, or if a caller did not store
it. Kubernetes' own controllers wait in that case until their watch has caught up (KEP-5647, ``ConsistencyStore``). A
watch may lag without a limit, so here the object is read instead: a GET without ``resourceVersion`` is consistent.

Versions of an object are compared as numbers. Kubernetes documents that since 1.35 (KEP-5504); before, it is how
kube-apiserver has always taken them from etcd. If etcd was restored from a backup, a GET may return an older version
than was written: it counts, and the resync accepts the older state of everything (``history.py``). After a move the
objects are those of another API server, whose manager wrote none of them.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from capo import caches
from capo.engine import metrics
from capo.engine.history import version_of
from capo.engine.store import DELETED, Store
from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.kinds import Key, Kind

_RECONCILED: Final[contextvars.ContextVar[Key | None]] = contextvars.ContextVar("reconciled", default=None)


class _Written(NamedTuple):
    """The state that a write led to.

    Args:
        version: the resource version; None: the answer was lost.
        number: distinguishes writes whose answers were lost.
    """

    uid: str
    version: int | None
    number: int = 0


class OwnWrites:
    """Writes that the store may lack, by object and by the key whose reconcile sent them; thread safe."""

    def __init__(self, kube: Kube, store: Store) -> None:
        self._kube, self._store = kube, store
        self._kinds: frozenset[Kind] = frozenset()
        self._namespace = ""
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._written: dict[Key, _Written] = {}
        self._by: dict[Key, set[Key]] = {}
        caches.register("own_writes", self, lambda self: len(self._written))
        kube.on_write = self.note

    def follow(self, kinds: Iterable[Kind], namespace: str = "") -> None:
        """Take note of writes of these kinds in a namespace, empty for all: those that the store keeps."""
        self._kinds, self._namespace = frozenset(kinds), namespace

    def note(self, kind: Kind, namespace: str, name: str, answer: Object | None) -> None:
        """Record a write.

        Args:
            answer: of the API server; None: it was lost, and the write may have been carried out.
        """
        if kind not in self._kinds or (kind.is_namespaced and self._namespace not in ("", namespace)):
            return
        key, by = Key(kind, namespace, name), _RECONCILED.get()
        if answer is not None and answer.get("kind") == "Status":
            self._bury(key, (answer.get("details") or {}).get("uid"))
            return
        lost = _Written("", None, next(self._numbers))
        written = _Written(answer["metadata"]["uid"], version_of(answer)) if answer else lost
        with self._lock:
            self._written[key] = _newest(self._written.get(key), written)
            if by not in (None, key):
                self._by.setdefault(by, set()).add(key)

    @contextmanager
    def reconciling(self, key: Key) -> Iterator[None]:
        """Read what the store lacks of the writes of an object and of its earlier reconciles; then run the block.

        Raises:
            KubeError: it cannot be read; nothing may be decided.
        """
        for written in self._behind(key):
            self._read(written)
        token = _RECONCILED.set(key)
        try:
            yield
        finally:
            _RECONCILED.reset(token)
            self._behind(key)

    def sweep(self) -> None:
        """Forget the writes that the store has by now."""
        with self._lock:
            known = [*self._written, *self._by]
        for key in known:
            self._behind(key)

    def _behind(self, key: Key) -> list[Key]:
        """Return the objects of which the store lacks a write; forget the others."""
        with self._lock:
            if key not in self._written and key not in self._by:
                return []
            lacking = {each for each in (key, *self._by.get(key, ())) if not self._has(each)}
            if children := lacking - {key}:
                self._by[key] = children
            else:
                self._by.pop(key, None)
            return sorted(lacking, key=lambda each: (each.kind.kind, each.namespace, each.name))

    def _has(self, key: Key) -> bool:
        """Return whether the store has the last write of an object, which is forgotten then."""
        written = self._written.get(key)
        if written is None:
            return True
        if written.version is None or not self._store.has_reached(key, written.uid, written.version):
            return False
        del self._written[key]
        return True

    def _read(self, key: Key) -> None:
        with self._lock:
            written = self._written.get(key)
        known = self._store.get(*key)
        found = self._kube.read(*key)
        metrics.STALE_READS.labels(key.kind.kind).inc()
        if found is None:
            # Another one of the name may have come since.
            self._bury(key, known["metadata"]["uid"] if known else None)
        else:
            if written and version_of(found) < (written.version or 0):
                self._store.on_suspicion()
            self._store.apply(key.kind, "MODIFIED", found)
        with self._lock:
            if self._written.get(key) == written:
                self._written.pop(key, None)

    def _bury(self, key: Key, uid: Any) -> None:
        """Remove the object with this uid from the store: it was deleted."""
        known = self._store.get(*key)
        if known is not None and uid == known["metadata"]["uid"]:
            self._store.apply(key.kind, DELETED, known)


def _newest(before: _Written | None, written: _Written) -> _Written:
    """Return the later of two writes; a lost answer stays until the object was read."""
    if before is None or written.version is None:
        return written
    if before.version is None:
        return before
    return max(before, written, key=lambda each: each.version or 0)
