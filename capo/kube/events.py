"""Events on objects: aggregated, rate-limited, sent from a separate thread; they never delay a reconcile.

Written through events.k8s.io/v1, or through the core group where the role allows only that; the API server serves the
same objects in both. For their shape see ``event_objects.py``.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo import caches
from capo.caches import Bounded
from capo.kube import denials, event_objects
from capo.kube.client import Kube
from capo.kube.denials import Denials
from capo.kube.errors import Conflict, Denied, Gone, KubeError
from capo.kube.event_objects import CORE_EVENT, EVENT, Happening
from capo.kube.kinds import Kind
from capo.redaction import redact

log = logging.getLogger(__name__)

KINDS: Final = (EVENT, CORE_EVENT)
MAX_QUEUED: Final = 10_000
"""A scale-out of a thousand machines emits some six Events each, and one thread writes them one by one."""
MAX_SERIES: Final = 4096
MAX_NAMES: Final = 4
"""Number of names tried for one Event: another process may have created one in the same nanosecond."""
SERIES_S: Final = 360.0
"""Equal happenings within this time form one series (events.k8s.io ends a series after six minutes)."""
BURST: Final = 25
REFILL_S: Final = 300.0
"""Per object: 25 Events at once, then one in five minutes; the spam limit of client-go."""


@dataclass
class _Series:
    kind: Kind
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
        instance: name of this process in each Event.
        clock: monotonic seconds.
        wall_ns: nanoseconds since 1970, for times and names of Events.
    """

    kube: Kube
    instance: str = field(default_factory=lambda: os.uname().nodename)
    clock: Callable[[], float] = time.monotonic
    wall_ns: Callable[[], int] = time.time_ns
    _queue: queue.Queue[Happening | None] = field(default_factory=lambda: queue.Queue(MAX_QUEUED))
    _series: Bounded[tuple[str, str, str], _Series] = field(
        default_factory=lambda: Bounded.by_number(MAX_SERIES, name="events")
    )
    _buckets: Bounded[str, _Bucket] = field(default_factory=lambda: Bounded.by_number(MAX_SERIES, name="events"))
    _thread: threading.Thread | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _last_ns: int = 0

    def __post_init__(self) -> None:
        self._denials = Denials(self.clock)
        caches.register("events_queued", self, lambda events: events._queue.qsize())

    def emit(
        self, obj: Mapping[str, Any], type_: str, reason: str, message: str, *, action: str = "Reconciling"
    ) -> None:
        """Queue an Event on the object.

        Args:
            type_: ``Normal`` or ``Warning``.
            reason: CamelCase.
            message: a sentence; secrets in it are redacted.
        """
        happening = Happening(
            regarding=event_objects.reference(obj),
            type=type_,
            reason=reason[: event_objects.MAX_REASON],
            note=event_objects.cut(redact(message)),
            action=action,
            at_ns=self._begin(),
            instance=self.instance,
        )
        try:
            self._queue.put_nowait(happening)
        except queue.Full:
            log.warning("An Event is dropped: too many wait", extra={"reason": reason, "note": happening.note})

    def stop(self, timeout_s: float = 2.0) -> None:
        """Send queued Events within the time limit, and end the thread."""
        if self._thread is None:
            return
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _begin(self) -> int:
        """Start the thread if needed; return a unique, increasing time, which names an Event."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="events", daemon=True)
                self._thread.start()
            self._last_ns = max(self.wall_ns(), self._last_ns + 1)
            return self._last_ns

    def _run(self) -> None:
        while (happening := self._queue.get()) is not None:
            try:
                self._send(happening)
            except KubeError as error:
                # client-go does not report Events in a terminating namespace either.
                _log_loss(happening, error, logging.DEBUG if denials.is_terminating(error) else logging.WARNING)
            except Exception:
                log.exception("An Event could not be written")

    def _send(self, happening: Happening) -> None:
        if not self._is_allowed(happening.regarding["uid"]):
            return
        series = self._series.get(happening.identity)
        if series and self.clock() - series.last_s < SERIES_S:
            series.count += 1
            series.last_s = self.clock()
            self._series.put(happening.identity, series)
            if self._count(happening, series):
                return
        self._create(happening)

    def _count(self, happening: Happening, series: _Series) -> bool:
        """Count a happening on the Event of its series; return False if that is deleted or must not be changed."""
        body = event_objects.repeated(series.kind, happening, series.count)
        # events.k8s.io refuses changes of the core group's count; the core group accepts both kinds of changes.
        for kind in KINDS if series.kind == EVENT else (CORE_EVENT,):
            if self._denials.is_denied("patch", kind, happening.namespace):
                continue
            try:
                self.kube.patch(kind, happening.namespace, series.name, body)
            except Gone:
                return False
            except Denied as error:
                self._note_denial("patch", kind, happening, error)
            else:
                self._denials.forget("patch", kind, happening.namespace)
                return True
        return False

    def _create(self, happening: Happening) -> None:
        for attempt in range(MAX_NAMES):
            try:
                return self._create_named(happening, happening.at_ns + attempt)
            except Conflict:
                if attempt == MAX_NAMES - 1:
                    raise

    def _create_named(self, happening: Happening, at_ns: int) -> None:
        is_news = False
        for kind in self._denials.in_order("create", KINDS, happening.namespace):
            body = event_objects.created(kind, happening, at_ns)
            try:
                self.kube.create(kind, body)
            except Denied as error:
                is_news |= self._note_denial("create", kind, happening, error)
                denied = error
            else:
                self._denials.forget("create", kind, happening.namespace)
                series = _Series(kind, body["metadata"]["name"], 1, self.clock())
                self._series.put(happening.identity, series)
                return
        _log_loss(happening, denied, logging.WARNING if is_news else logging.DEBUG)

    def _note_denial(self, verb: str, kind: Kind, happening: Happening, error: Denied) -> bool:
        """Record that the role does not allow this; return whether that is new.

        Raises:
            Denied: the role is not the cause.
        """
        if not denials.is_for_want_of_rights(error):
            raise error
        is_news = self._denials.note(verb, kind, happening.namespace)
        if is_news:
            text = "Events are refused in one API group; the other one is used where that is allowed"
            about = {"group": kind.group or "core", "verb": verb, "namespace": happening.namespace, "err": str(error)}
            log.info(text, extra=about)
        return is_news

    def _is_allowed(self, uid: str) -> bool:
        now_s = self.clock()
        bucket = self._buckets.get(uid) or _Bucket(BURST, now_s)
        self._buckets.put(uid, bucket)
        bucket.tokens = min(BURST, bucket.tokens + (now_s - bucket.at_s) / REFILL_S)
        bucket.at_s = now_s
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _log_loss(happening: Happening, error: KubeError, level: int) -> None:
    log.log(level, "An Event could not be written", extra={"reason": happening.reason, "err": str(error)})
