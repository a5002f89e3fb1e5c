"""How many objects of our kinds are in which state, why and for how long: metrics that follow the changes of the store.

A change costs the same however many objects there are. A scrape looks for the longest wait among objects that are not
ready or are being deleted.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from api.v1beta2.conditions import ConditionType, Reason
from capo import caches, gauges
from capo.contract import rules
from capo.engine import conditions, metrics
from capo.engine.store import Change, Store
from capo.json_types import Object
from capo.kube.kinds import (
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OURS,
    Key,
    Kind,
)

OTHER: Final = "Other"
"""Reason of conditions that another program wrote, and of objects without a summary: the label stays bounded."""
_SUMMARIES: Final = {
    OPENSTACK_FLOATING_IP_POOL: str(ConditionType.FLOATING_IP_POOL_READY),
    OPENSTACK_CLUSTER_IDENTITY: str(ConditionType.AUTHENTICATION_SUCCEEDED),
}
"""The condition that sums up an object, where it is not ``Ready``."""
_UNUSED: Final = (OPENSTACK_MACHINE_TEMPLATE, OPENSTACK_CLUSTER_IDENTITY)
"""Kinds whose objects have no state before something uses them."""
_PROVISIONED: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE)
_REASONS: Final = frozenset(map(str, Reason))
_GENERAL: Final = frozenset((Reason.OPENSTACK_ERROR, Reason.DELETING))
"""Reasons of a summary that the condition of a step specifies."""


class State(StrEnum):
    """The state of an object."""

    READY = "ready"
    NOT_READY = "not_ready"
    UNKNOWN = "unknown"
    PAUSED = "paused"
    EXTERNAL = "external"
    DELETING = "deleting"


WAITING: Final = (State.NOT_READY, State.DELETING)


@dataclass(frozen=True)
class Observed:
    """What the metrics show of one object.

    Args:
        reason: why it is not ready or still exists; empty in other states.
        since_s: when it entered the state, seconds since 1970.
        pending_s: when each of its creates was sent whose resource is unknown, seconds since 1970.
        created_s: when it was created, seconds since 1970.
        is_provisioned: whether its infrastructure was ready once, for kinds that record it.
    """

    uid: str
    state: State
    reason: str
    since_s: float
    pending_s: tuple[float, ...]
    created_s: float
    is_provisioned: bool


def observe(kind: Kind, obj: Object) -> Observed:
    """Return what the metrics show of an object; pure."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    state, since = _state(kind, obj)
    created_s = conditions.seconds(metadata.get("creationTimestamp") or "")
    return Observed(
        uid=metadata["uid"],
        state=state,
        reason=_reason(kind, status.get("conditions") or ()) if state in WAITING else "",
        since_s=conditions.seconds(since) if since else created_s,
        pending_s=tuple(
            conditions.seconds(str(each.get("since"))) for each in (status.get("resources") or {}).get("pending") or ()
        ),
        created_s=created_s,
        is_provisioned=bool((status.get("initialization") or {}).get("provisioned")),
    )


def _state(kind: Kind, obj: Object) -> tuple[State, str]:
    """Return the state of an object, and since when, as a timestamp; empty: since it exists."""
    shown = (obj.get("status") or {}).get("conditions") or ()
    if deleted := obj["metadata"].get("deletionTimestamp"):
        return State.DELETING, deleted
    if rules.is_externally_managed(obj):
        return State.EXTERNAL, ""
    if conditions.is_true(shown, ConditionType.PAUSED):
        return State.PAUSED, ""
    summary = conditions.find(shown, _summary(kind)) or {}
    since = str(summary.get("lastTransitionTime") or "")
    if summary.get("status") == "True":
        return State.READY, since
    is_unused = kind in _UNUSED and summary.get("status") != "False"
    return (State.UNKNOWN if is_unused else State.NOT_READY), since


def _summary(kind: Kind) -> str:
    return _SUMMARIES.get(kind, str(ConditionType.READY))


def _reason(kind: Kind, shown: Iterable[Any]) -> str:
    """Return the reason of the summary, or that of the first step that specifies it."""
    summary = (conditions.find(shown, _summary(kind)) or {}).get("reason", OTHER)
    if summary in _GENERAL:
        others = (c for c in shown if c.get("type") not in (_summary(kind), ConditionType.PAUSED))
        summary = next((c.get("reason") for c in others if c.get("status") == "False"), summary)
    return summary if summary in _REASONS else OTHER


class ObjectStates:
    """Follows the objects of a store; thread safe.

    Args:
        kinds: those that controllers reconcile; only ours are followed.
        accepts: returns whether this manager handles an object.
        wall: seconds since 1970.
    """

    def __init__(
        self, store: Store, kinds: Iterable[Kind], *, accepts: Callable[[Object], bool], wall: Callable[[], float]
    ) -> None:
        self._store, self._accepts, self._wall = store, accepts, wall
        self._kinds = frozenset(kinds).intersection(OURS)
        self._lock = threading.Lock()
        self._known: dict[Key, Observed] = {}
        self._waiting: dict[gauges.Labels, dict[Key, float]] = {}
        """By namespace, kind and state, while there are any; since when, as in the next."""
        self._pending: dict[gauges.Labels, dict[Key, float]] = {}
        caches.register("object_states", self, lambda self: len(self._known))
        for kind in self._kinds:
            self._export(kind)
        metrics.OBJECTS_LONGEST.set_function(functools.partial(self._longest_s, self._waiting))
        metrics.PENDING_CREATES_LONGEST.set_function(functools.partial(self._longest_s, self._pending))
        store.listen(self._changed)

    def _export(self, kind: Kind) -> None:
        if kind in _PROVISIONED:
            metrics.PROVISIONING.labels(kind.kind)  # a rate needs the zero before the first one
        for state in State:
            metrics.OBJECTS.labels(kind.kind, state).set(0)

    def _changed(self, change: Change) -> None:
        key = change.key
        if key.kind not in self._kinds:
            return
        with self._lock:
            # Read again: two threads may report changes of one object in the wrong order.
            obj = self._store.get(*key)
            before = self._known.get(key)
            now = observe(key.kind, obj) if obj is not None and self._accepts(obj) else None
            if now and before and now.uid == before.uid:
                self._note_provisioned(key.kind, before, now)
            self._replace(key, before, now)

    def _replace(self, key: Key, before: Observed | None, now: Observed | None) -> None:
        if before:
            self._count(key.kind, before, -1)
            _leave(self._waiting, _labels(key, before.state), key)
            _leave(self._pending, (key.namespace,), key)
            del self._known[key]
        if now:
            self._known[key] = now
            self._count(key.kind, now, 1)
            if now.state in WAITING:
                self._waiting.setdefault(_labels(key, now.state), {})[key] = now.since_s
            if now.pending_s:
                self._pending.setdefault((key.namespace,), {})[key] = min(now.pending_s)

    @staticmethod
    def _count(kind: Kind, observed: Observed, by: int) -> None:
        metrics.OBJECTS.labels(kind.kind, observed.state).inc(by)
        if observed.reason:
            metrics.OBJECTS_WAITING.labels(kind.kind, observed.reason).inc(by)
        if observed.pending_s:
            metrics.PENDING_CREATES.inc(by * len(observed.pending_s))

    def _note_provisioned(self, kind: Kind, before: Observed, now: Observed) -> None:
        if now.is_provisioned and not before.is_provisioned:
            metrics.PROVISIONING.labels(kind.kind).observe(max(0.0, self._wall() - now.created_s))

    def _longest_s(self, since_s: Mapping[gauges.Labels, Mapping[Key, float]]) -> dict[gauges.Labels, float]:
        with self._lock:
            first_s = {labels: min(each.values()) for labels, each in since_s.items()}
        return {labels: max(0.0, self._wall() - each) for labels, each in first_s.items()}


def _labels(key: Key, state: State) -> gauges.Labels:
    return key.namespace, key.kind.kind, str(state)


def _leave(groups: dict[gauges.Labels, dict[Key, float]], labels: gauges.Labels, key: Key) -> None:
    if (group := groups.get(labels)) is not None:
        group.pop(key, None)
        if not group:
            del groups[labels]
