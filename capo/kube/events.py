"""Events on objects: aggregated, limited, sent from a thread of their own, and never in the way of a pass.

Written through events.k8s.io/v1; the API server shows the same objects in the core group.
"""

from __future__ import annotations

import collections
import datetime
import logging
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo import caches
from capo.kube.client import Kube
from capo.kube.errors import Gone, KubeError
from capo.kube.kinds import Kind
from capo.redaction import redact

log = logging.getLogger(__name__)

EVENT: Final = Kind("events.k8s.io", "v1", "events", "Event")
CONTROLLER: Final = "capo-controller-manager"
MAX_NOTE: Final = 1024
MAX_REASON: Final = 128
MAX_QUEUED: Final = 10_000
"""A thousand machines that scale out at once have some six Events each, and one thread writes them one by one."""
MAX_SERIES: Final = 4096
SERIES_S: Final = 360.0
"""The same happening within this time counts as one series (events.k8s.io ends a series after six minutes)."""
BURST: Final = 25
REFILL_S: Final = 300.0
"""Per object: 25 Events at once, then one in five minutes; as client-go limits spam."""


@dataclass(frozen=True)
class _Happening:
    regarding: Mapping[str, str]
    type: str
    reason: str
    note: str
    action: str
    time: str

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.regarding["uid"], self.reason, self.note


@dataclass
class _Series:
    name: str
    count: int
    last_s: float


@dataclass
class _Bucket:
    tokens: float
    at_s: float


@dataclass
class Events:
    """Records Events; :meth:`emit` returns at once and never raises.

    Args:
        instance: names this process in each Event.
        clock: monotonic seconds.
    """

    kube: Kube
    instance: str = field(default_factory=lambda: os.uname().nodename)
    clock: Callable[[], float] = time.monotonic
    _queue: queue.Queue[_Happening | None] = field(default_factory=lambda: queue.Queue(MAX_QUEUED))
    _series: collections.OrderedDict[tuple[str, str, str], _Series] = field(default_factory=collections.OrderedDict)
    _buckets: collections.OrderedDict[str, _Bucket] = field(default_factory=collections.OrderedDict)
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        caches.register("events", self, lambda events: max(len(events._series), len(events._buckets)))
        caches.register("events_queued", self, lambda events: events._queue.qsize())

    def emit(
        self, obj: Mapping[str, Any], type_: str, reason: str, message: str, *, action: str = "Reconciling"
    ) -> None:
        """Have an Event on the object.

        Args:
            type_: ``Normal`` or ``Warning``.
            reason: CamelCase.
            message: a sentence; secrets in it are struck out.
        """
        metadata = obj["metadata"]
        regarding = {
            "apiVersion": obj.get("apiVersion", ""),
            "kind": obj.get("kind", ""),
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
        }
        note = _cut(redact(message))
        happening = _Happening(regarding, type_, reason[:MAX_REASON], note, action, _now())
        try:
            self._started().put_nowait(happening)
        except queue.Full:
            log.warning("An Event is dropped: too many wait", extra={"reason": reason, "note": note})

    def stop(self, timeout_s: float = 2.0) -> None:
        """Send what waits, as far as the time reaches, and end the thread."""
        if self._thread is None:
            return
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _started(self) -> queue.Queue[_Happening | None]:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()
        return self._queue

    def _run(self) -> None:
        while (happening := self._queue.get()) is not None:
            try:
                self._send(happening)
            except KubeError as error:
                log.warning("An Event could not be written", extra={"reason": happening.reason, "err": str(error)})
            except Exception:
                log.exception("An Event could not be written")

    def _send(self, happening: _Happening) -> None:
        if not self._is_allowed(happening.regarding["uid"]):
            return
        series = self._series.get(happening.identity)
        namespace = happening.regarding["namespace"] or "default"
        if series and self.clock() - series.last_s < SERIES_S:
            series.count += 1
            series.last_s = self.clock()
            self._series.move_to_end(happening.identity)
            body = {"series": {"count": series.count, "lastObservedTime": happening.time}}
            try:
                self.kube.patch(EVENT, namespace, series.name, body)
            except Gone:
                pass
            else:
                return
        self._create(happening, namespace)

    def _create(self, happening: _Happening, namespace: str) -> None:
        name = f"{happening.regarding['name'][:230]}.{secrets.token_hex(8)}"
        event = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": happening.time,
            "reportingController": CONTROLLER,
            "reportingInstance": self.instance[:MAX_REASON],
            "action": happening.action,
            "reason": happening.reason,
            "regarding": {key: value for key, value in happening.regarding.items() if value},
            "note": happening.note,
            "type": happening.type,
        }
        self.kube.create(EVENT, event)
        self._series[happening.identity] = _Series(name, 1, self.clock())
        if len(self._series) > MAX_SERIES:
            self._series.popitem(last=False)
            caches.evicted("events")

    def _is_allowed(self, uid: str) -> bool:
        now_s = self.clock()
        bucket = self._buckets.setdefault(uid, _Bucket(BURST, now_s))
        bucket.tokens = min(BURST, bucket.tokens + (now_s - bucket.at_s) / REFILL_S)
        bucket.at_s = now_s
        self._buckets.move_to_end(uid)
        if len(self._buckets) > MAX_SERIES:
            self._buckets.popitem(last=False)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _cut(note: str) -> str:
    data = note.encode()
    return note if len(data) <= MAX_NOTE else data[: MAX_NOTE - 3].decode(errors="ignore") + "..."


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
