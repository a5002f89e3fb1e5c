"""Runs reconciles: takes keys from the queues of all controllers, and threads of one pool within each tenant's shares.

A reconcile is a plain function in a thread; it cannot be cancelled, so a key stays active until its thread ends.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import contextvars
import functools
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from capo import logs, shares
from capo.engine import metrics
from capo.engine.queue import Taken, WorkQueue
from capo.engine.store import Route
from capo.errors import CapoError, TerminalError
from capo.kube.errors import Conflict, KubeError
from capo.kube.kinds import Key, Kind
from capo.shares import CLOUD, CloudKey, Lane, Path, Resource, Shares

log = logging.getLogger(__name__)

Around = Callable[[Key], contextlib.AbstractContextManager[object]]
THREADS: Final = 128
CLOUD_SLOTS: Final = 10


@dataclass(frozen=True)
class Result:
    """The result of a reconcile.

    Args:
        requeue_after_s: requeue after so many seconds at the latest.
        error: why it failed; it is retried after a pause that grows.
        conflict: the object changed during the reconcile: retry at once.
    """

    requeue_after_s: float | None = None
    error: BaseException | None = None
    conflict: bool = False


class KeyReconciler(Protocol):
    """What the engine runs."""

    @property
    def name(self) -> str:
        """Return the controller's name in metrics and logs."""

    @property
    def kind(self) -> Kind:
        """Return the kind of the objects that it owns."""

    @property
    def concurrency(self) -> int:
        """Return the maximum concurrent reconciles for one cloud."""

    @property
    def routes(self) -> Sequence[Route]:
        """Return which other kinds requeue its objects."""

    def cloud_key(self, key: Key) -> CloudKey | None:
        """Return the budgets of the cloud that a reconcile uses; quick. None: the credentials were not read yet."""

    def resolve_cloud(self, key: Key) -> bool:
        """Resolve the cloud budget of a key, without a request to a cloud; return whether that succeeded. Blocks."""

    def reconcile(self, key: Key) -> Result:
        """Reconcile one object; blocks."""


class Slots:
    """Counts running reconciles: shares of all threads, and per cloud and controller."""

    def __init__(self, threads: int = THREADS, per_cloud: int = CLOUD_SLOTS) -> None:
        self.shares = Shares(threads, per_cloud)
        self._of_controller: collections.Counter[tuple[str, str]] = collections.Counter()

    def lacking(self, controller: KeyReconciler, path: Path) -> Resource | None:
        """Return the budget that a reconcile of the controller lacks in the last part of a path; None: it may begin."""
        if len(path) == CLOUD and self._of_controller[controller.name, path[-1]] >= controller.concurrency:
            return CLOUD, path[-1]
        return self.shares.lacking(path)

    def take(self, controller: KeyReconciler, lane: Lane) -> None:
        """Count the start of a reconcile."""
        self.shares.begin(lane)
        self._of_controller[controller.name, lane.cloud] += 1

    def free(self, controller: KeyReconciler, lane: Lane) -> None:
        """Count the end of a reconcile."""
        self.shares.end(lane)
        used = controller.name, lane.cloud
        self._of_controller[used] -= 1
        if not self._of_controller[used]:  # counters keep zeros: every cloud ever seen would stay
            del self._of_controller[used]


@dataclass
class Workers:
    """The reconciles of all controllers.

    Args:
        queues: one per controller.
        threads: size of the pool, over all controllers and clouds.
        per_cloud: maximum concurrent reconciles in one cloud.
        around: the context of each reconcile; entered in its thread.
    """

    queues: Sequence[tuple[KeyReconciler, WorkQueue]]
    threads: int = THREADS
    per_cloud: int = CLOUD_SLOTS
    around: Around = contextlib.nullcontext

    def __post_init__(self) -> None:
        self.slots = Slots(self.threads, self.per_cloud)
        self._pool = concurrent.futures.ThreadPoolExecutor(self.threads, thread_name_prefix="pass")
        self._wake = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        for controller, _ in self.queues:
            metrics.MAX_CONCURRENT.labels(controller.name).set(controller.concurrency)

    def wake(self) -> None:
        """Check the queues again: something may be ready. Main loop only."""
        self._wake.set()

    async def run(self) -> None:
        """Start reconciles while keys are ready and there is room, until :meth:`stop`."""
        while not self._is_stopping:
            self._wake.clear()
            self._begin_all()
            self._publish()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):
                    await self._wake.wait()

    async def stop(self, timeout_s: float) -> int:
        """Start no more reconciles and wait for the running ones; return how many still run after the timeout."""
        self._is_stopping = True
        self._wake.set()
        if self._running:
            await asyncio.wait(self._running, timeout=timeout_s)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return len(self._running)

    def _pause_s(self) -> float | None:
        if self._is_full():
            return None  # there is room only after a reconcile ended
        due_s = (queue.next_due_s() for _, queue in self.queues)
        return min((each for each in due_s if each is not None), default=None)

    def _is_full(self) -> bool:
        return len(self._running) >= self.threads

    def _begin_all(self) -> None:
        """Start one reconcile of each controller in turn until nothing is ready or there is no room."""
        has_begun = True
        while has_begun:
            has_begun = False
            for controller, queue in self.queues:
                if self._is_full():
                    return
                taken = queue.take(functools.partial(self.slots.lacking, controller))
                if taken:
                    has_begun = True
                    metrics.WAITED.labels(controller.name).observe(taken.waited_s)
                    self.slots.take(controller, taken.lane)
                    task = asyncio.get_running_loop().create_task(self._pass(controller, queue, taken))
                    self._running.add(task)
                    task.add_done_callback(self._ended)

    def _publish(self) -> None:
        for controller, queue in self.queues:
            metrics.DEPTH.labels(controller.name).set(queue.depth())
        shares.publish("passes", self.slots.shares)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # Only now the pool has room: a wake-up from inside the task would come too early.
        self._running.discard(task)
        self._wake.set()
        if not task.cancelled() and (fault := task.exception()):
            log.error("A pass could not be ended", exc_info=fault)

    async def _pass(self, controller: KeyReconciler, queue: WorkQueue, taken: Taken) -> None:
        loop = asyncio.get_running_loop()
        metrics.ACTIVE.labels(controller.name).inc()
        try:
            run = contextvars.copy_context().run
            result = await loop.run_in_executor(self._pool, run, _guarded, controller, taken, self.around)
            _settle(queue, taken.key, result)
        finally:
            metrics.ACTIVE.labels(controller.name).dec()
            self.slots.free(controller, taken.lane)
            queue.done(taken.key)
            for _, each in self.queues:  # budgets are those of all controllers
                each.freed(taken.lane)


def _settle(queue: WorkQueue, key: Key, result: Result) -> None:
    if result.conflict:
        queue.retry(key, Conflict("the object changed"))
    elif isinstance(result.error, TerminalError):
        queue.forget(key)
    elif result.error is not None:
        queue.retry(key, result.error)
    else:
        queue.forget(key)
    if result.requeue_after_s is not None:
        queue.add_after(key, result.requeue_after_s)


def lane_of(controller: KeyReconciler, key: Key) -> Lane:
    """Return the lane in which a key waits to be reconciled."""
    cloud = controller.cloud_key(key)
    if cloud is None:
        return _unlocated(key.namespace)
    # Keys that use no cloud share a lane of their namespace: the controller's concurrency applies there.
    return Lane(key.namespace, cloud.address, cloud.name if cloud.name else f"none/{key.namespace}")


def _unlocated(namespace: str) -> Lane:
    """Return the lane of reconciles that only resolve their cloud: they send it no request."""
    return Lane(namespace, f"unlocated/{namespace}", f"unlocated/{namespace}")


def _run(controller: KeyReconciler, taken: Taken, around: Around) -> Result:
    """Reconcile a key; one whose cloud is unresolved resolves it and starts again in that cloud's budget."""
    with around(taken.key):
        return _resolved_or_run(controller, taken)


def _resolved_or_run(controller: KeyReconciler, taken: Taken) -> Result:
    if taken.lane == _unlocated(taken.key.namespace) and controller.resolve_cloud(taken.key):
        return Result(requeue_after_s=0.0)
    return controller.reconcile(taken.key)


def _guarded(controller: KeyReconciler, taken: Taken, around: Around = contextlib.nullcontext) -> Result:
    """Reconcile with the key's fields in every log line; return an exception as a result."""
    began_s = time.perf_counter()
    with logs.fields(**_fields(controller, taken.key)):
        try:
            result = _run(controller, taken, around)
        except Conflict as error:
            result = Result(error=error, conflict=True)
        except KubeError as error:
            log.warning("Reconcile aborted: Kubernetes API error", extra={"err": str(error)})
            result = Result(error=error)
        except CapoError as error:
            log.warning("Pass failed", extra={"err": error.sentence})
            result = Result(error=error)
        except Exception as error:
            log.exception("Unhandled exception in reconcile")
            result = Result(error=error)
    _count(controller.name, result, time.perf_counter() - began_s)
    return result


def _fields(controller: KeyReconciler, key: Key) -> dict[str, Any]:
    return {
        "controller": controller.name,
        "controllerGroup": key.kind.group,
        "controllerKind": key.kind.kind,
        key.kind.kind: {"namespace": key.namespace, "name": key.name},
        "namespace": key.namespace,
        "name": key.name,
        "reconcileID": str(uuid.uuid4()),
    }


def _count(name: str, result: Result, seconds: float) -> None:
    if result.error is not None and not result.conflict:
        outcome = "error"
        metrics.ERRORS.labels(name).inc()
    elif result.conflict:
        outcome = "requeue"
    else:
        outcome = "success" if result.requeue_after_s is None else "requeue_after"
    metrics.RECONCILES.labels(name, outcome).inc()
    metrics.SECONDS.labels(name).observe(seconds)
