"""Maps a change in the store to the keys that it requeues, and hands them to the queues of the main loop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import Callable, Sequence
from typing import Final

from capo import names
from capo.contract import rules
from capo.engine.queue import WorkQueue
from capo.engine.store import Change, Route, Store
from capo.engine.worker import KeyReconciler
from capo.json_types import Object
from capo.kube.kinds import Key, Kind

log = logging.getLogger(__name__)

SPREAD_PER_OBJECT_S: Final = 0.02
MAX_SPREAD_S: Final = 30.0


class Router:
    """Adds keys to the queues of the controllers they concern.

    Args:
        queues: one per controller.
        loop: the main loop, whose thread alone uses the queues.
        accepts: returns whether this manager handles an object of our kinds (``--namespace``, ``--watch-filter``).
    """

    def __init__(
        self,
        store: Store,
        queues: Sequence[tuple[KeyReconciler, WorkQueue]],
        loop: asyncio.AbstractEventLoop,
        *,
        accepts: Callable[[Object], bool] = lambda _obj: True,
    ) -> None:
        self._store, self._queues, self._loop, self._accepts = store, queues, loop, accepts
        store.listen(self._changed, on_echo=self._echoed)

    def kinds(self) -> list[Kind]:
        """Return every kind that a controller owns or watches, each once."""
        wanted = (k for c, _ in self._queues for k in (c.kind, *(route.kind for route in c.routes)))
        return list(dict.fromkeys(wanted))

    def wake(self, key: Key) -> None:
        """Queue the key; any thread."""
        for controller, queue in self._queues:
            if controller.kind == key.kind and self._is_wanted(key):
                self._in_loop(queue.add, key)

    def wake_all(self, spread_s: float) -> None:
        """Queue every known object, spread evenly over so many seconds; any thread."""
        for controller, queue in self._queues:
            for obj in self._store.list(controller.kind):
                if self._accepts(obj):
                    key = Key(controller.kind, obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
                    self._in_loop(queue.add_after, key, _random_s(spread_s))

    def _changed(self, change: Change) -> None:
        for controller, queue in self._queues:
            if controller.kind == change.key.kind:
                self._wake_own(queue, change)
            for route in controller.routes:
                if route.kind == change.key.kind:
                    self._wake_routed(controller, queue, route, change)

    def _wake_own(self, queue: WorkQueue, change: Change) -> None:
        if not self._accepts(change.obj):
            if change.before is not None and self._accepts(change.before):
                self._in_loop(queue.add, change.key)  # its reconcile forgets it: another manager's now
            return
        if change.by == change.key:
            return
        if change.is_listed and is_settled(change.obj):
            spread_s = min(MAX_SPREAD_S, SPREAD_PER_OBJECT_S * self._store.count(change.key.kind))
            self._in_loop(queue.add_after, change.key, _random_s(spread_s))
        elif change.is_deleted:
            self._in_loop(queue.add, change.key)
        else:
            self._in_loop(functools.partial(queue.add, change.key, version=change.version))

    def _wake_routed(self, controller: KeyReconciler, queue: WorkQueue, route: Route, change: Change) -> None:
        for namespace, name in route.map(change.obj, self._store):
            key = Key(controller.kind, namespace, name)
            is_wanted = self._is_wanted(key) if route.is_filtered else self._store.get(*key) is not None
            if key != change.by and is_wanted:
                self._in_loop(queue.add, key)

    def _is_wanted(self, key: Key) -> bool:
        obj = self._store.get(*key)
        return obj is not None and self._accepts(obj)

    def _echoed(self, change: Change) -> None:
        for controller, queue in self._queues:
            if change.by == change.key and controller.kind == change.key.kind:
                self._in_loop(queue.mark_written, change.key, change.version)

    def _in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(function, *arguments)


def object_filter(namespace: str, watch_filter: str) -> Callable[[Object], bool]:
    """Return the filter of the objects of our kinds that this manager handles (C-57, C-58); empty means all."""
    return functools.partial(rules.is_selected, namespace=namespace, watch_filter=watch_filter)


def cluster_of(store: Store, key: Key) -> str:
    """Return the cluster of an object, by its label; an object without one is a group of its own."""
    obj = store.get(*key)
    labels = (obj["metadata"].get("labels") or {}) if obj else {}
    return f"{key.namespace}/{labels.get(names.CLUSTER_NAME_LABEL, key.name)}"


def is_settled(obj: Object) -> bool:
    """Return whether a listed object may wait a little: ready, not changed since, not being deleted."""
    if obj["metadata"].get("deletionTimestamp"):
        return False
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(
        c.get("type") == "Ready"
        and c.get("status") == "True"
        and c.get("observedGeneration", 0) == obj["metadata"].get("generation", 0)
        for c in conditions
    )


def _random_s(limit_s: float) -> float:
    return random.uniform(0, limit_s)  # noqa: S311 - spreads load, no secret
