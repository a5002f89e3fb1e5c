"""The process: servers, lease, store, watches and workers, started and stopped in order.

Every replica serves probes and metrics; only the leader lists, watches and reconciles. A lost lease ends the process at
once, because a thread in a reconcile cannot be stopped in any other way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from capo.clock import SystemClock
from capo.engine import diagnostics, metrics, threads
from capo.engine.access import Access
from capo.engine.context import Dependencies
from capo.engine.health import Health
from capo.engine.lease import NAME, CommonLease, Lease, Terms
from capo.engine.migration import Migration, MigrationError
from capo.engine.object_states import ObjectStates
from capo.engine.own_writes import OwnWrites
from capo.engine.queue import WorkQueue
from capo.engine.resync import Resync
from capo.engine.router import Router, cluster_of, object_filter
from capo.engine.store import Store
from capo.engine.watch import Watcher
from capo.engine.worker import KeyReconciler, Workers, lane_of
from capo.flag_values import MIGRATION_PHASES
from capo.kube.client import Kube
from capo.kube.errors import KubeError
from capo.kube.events import Events
from capo.kube.kinds import Key, Kind
from capo.kube.transport import Timeouts
from capo.listening import LimitedServer
from capo.settings import Settings

log = logging.getLogger(__name__)

DRAIN_S: Final = 7.0
"""How long running reconciles may finish, of the ten seconds between SIGTERM and SIGKILL."""
STOP_S: Final = 9.0
"""After so many seconds stopping no longer waits for the lease; its release gets the time that is left, at least 1 s.
"""
FIRST_RETRY_S: Final = 1.0
MAX_RETRY_S: Final = 15.0
HOUSEKEEPING_S: Final = 30.0
GAP_S: Final = 2.0
"""Seconds between a restart of watches and the full listing."""
DEAD_WATCHES_S: Final = 180.0
RESYNC_SPREAD: Final = 0.1
"""The part of the sync period over which a resync spreads its reconciles."""

Factory = Callable[[Dependencies, Callable[[Key], None]], Sequence[KeyReconciler]]
"""Creates all controllers from the shared tools and a function that requeues an object from any thread."""


class StartError(Exception):
    """The process cannot start; the message is one line for the user."""


@dataclass
class Manager:
    """One replica.

    Args:
        factory: creates the controllers.
        end_process: called with an exit status when the lease is lost.
    """

    settings: Settings
    kube: Kube
    factory: Factory
    end_process: Callable[[int], None] = os._exit
    health: Health = field(default_factory=Health)
    ports: dict[str, int] = field(default_factory=dict)
    _store: Store = field(default_factory=Store)
    _servers: list[LimitedServer] = field(default_factory=list)
    _lease: Lease | None = None
    _watcher: Watcher | None = None
    _workers: Workers | None = None
    _router: Router | None = None

    def __post_init__(self) -> None:
        self._events = Events(self.kube)
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Begin a graceful stop. Main loop only."""
        self._stop.set()

    async def run(self) -> int:
        """Run until a signal or :meth:`stop`; return the exit status.

        Raises:
            StartError: an address cannot be listened on, or the lease has no namespace.
        """
        self._catch_signals()
        try:
            await self._serve()
            if await self._lead():
                await self._first(self._act())
            return 0
        finally:
            await self._shut_down()

    async def _serve(self) -> None:
        settings = self.settings
        self.health.add("watches", self._watches, probes=("healthz",))
        await self._listen("health", self.health.application(), settings.health_address)
        if settings.diagnostics_address in ("", "0"):
            return
        if settings.insecure_diagnostics:
            await self._listen("diagnostics", diagnostics.application(), settings.diagnostics_address)
            return
        access = Access(self.kube, lambda question: threads.run(question, name="review"))
        await self._listen(
            "diagnostics",
            diagnostics.application(access),
            settings.diagnostics_address,
            tls=diagnostics.self_signed(settings.tls_min_version, settings.tls_cipher_suites),
        )

    async def _listen(
        self, name: str, app: web.Application, address: str, *, tls: ssl.SSLContext | None = None
    ) -> None:
        try:
            server = await diagnostics.serve(app, address, tls=tls)
        except OSError as error:
            raise StartError(f"cannot listen on {address} for {name}: {error.strerror or error}") from error
        self._servers.append(server)
        self.ports[name] = server.port
        log.info("Serving", extra={"what": name, "address": address, "port": server.port})

    async def _lead(self) -> bool:
        """Wait for the lease; return whether this replica may act (False: it was stopped before)."""
        if not self.settings.leader_elect:
            return True
        namespace = self.settings.pod_namespace or self.kube.connection.namespace
        if not namespace:
            raise StartError("--leader-elect needs the namespace of the lease: set POD_NAMESPACE")
        terms = Terms(self.settings.lease_duration_s, self.settings.renew_deadline_s, self.settings.retry_period_s)
        is_sharing = self.settings.lease_name != NAME
        limit_s = terms.sharing_call_timeout_s if is_sharing else terms.call_timeout_s
        limit = Timeouts(limit_s, limit_s, limit_s)
        own_client = Kube(self.kube.connection, timeouts=limit, pool_size=2)
        lease = Lease(own_client, namespace, terms, self._lost, name=self.settings.lease_name)
        if is_sharing:
            lease.common = CommonLease(own_client, namespace, terms, self._lost, identity=lease.identity)
        self._lease = lease
        self.kube.fence = lease.fence
        loop, acquired = asyncio.get_running_loop(), asyncio.Event()

        def on_acquired() -> None:
            loop.call_soon_threadsafe(acquired.set)

        lease.start(on_acquired)
        await self._first(acquired.wait())
        return acquired.is_set() and not self._stop.is_set()

    async def _act(self) -> None:
        deps, router, workers = await self._assemble()
        namespace, on_restored = self.settings.namespace, self._restart_watches
        resync = Resync(self.kube, self._store, router.kinds(), namespace=namespace, on_restored=on_restored)
        served = await self._primed(resync)
        listed, resumed = asyncio.Event(), asyncio.Event()
        on_listed, on_resumed = _setter(listed), _setter(resumed)
        self._store.on_suspicion = on_listed
        watcher = Watcher(
            self.kube.connection, self._store.apply, namespace=namespace, on_listed=on_listed, on_resumed=on_resumed
        )
        self._watcher = watcher
        metrics.WATCH_SILENT.set_function(watcher.silent_s)
        watcher.watch(served)
        log.info("Acting", extra={"known": self._store.counts()})
        looks = (
            self._resync(resync, watcher, router),
            self._complete(resync, listed),
            self._look_back(resync, resumed, listed),
        )
        await asyncio.gather(workers.run(), *looks, self._migrate(), keep_house(deps, self._housekeeping_s()))

    def _housekeeping_s(self) -> float:
        """Return the pause between two rounds of housekeeping, which reads quotas, too."""
        return min(HOUSEKEEPING_S, self.settings.openstack_quota_interval_s or HOUSEKEEPING_S)

    def _restart_watches(self) -> None:
        if self._watcher:
            self._watcher.restart()

    async def _assemble(self) -> tuple[Dependencies, Router, Workers]:
        settings = self.settings
        deps = Dependencies(self.kube, self._store, self._events, SystemClock(), settings)
        # In a thread: importing the controllers takes seconds, and probes must be answered during that time.
        controllers = await threads.run(lambda: self.factory(deps, self._wake), name="controllers")
        queues = [(controller, self._queue(controller)) for controller in controllers]
        own_writes = OwnWrites(self.kube, self._store)
        deps.housekeeping.append(own_writes.sweep)
        workers = Workers(queues, settings.worker_threads, settings.cloud_concurrency, own_writes.reconciling)
        accepts = object_filter(settings.namespace, settings.watch_filter)
        router = Router(self._store, queues, asyncio.get_running_loop(), accepts=accepts)
        own_writes.follow(router.kinds(), settings.namespace)
        ObjectStates(
            self._store, [controller.kind for controller in controllers], accepts=accepts, wall=deps.clock.wall
        )
        self._workers, self._router = workers, router
        return deps, router, workers

    def _queue(self, controller: KeyReconciler) -> WorkQueue:
        return WorkQueue(
            lane=lambda key: lane_of(controller, key),
            group=lambda key: cluster_of(self._store, key),
            on_ready=lambda: self._workers.wake() if self._workers else None,
        )

    def _wake(self, key: Key) -> None:
        if self._router:
            self._router.wake(key)

    async def _primed(self, resync: Resync) -> tuple[Kind, ...]:
        """Fill the store, retrying until the API server answers; return the served kinds."""
        pause_s = FIRST_RETRY_S
        while True:
            try:
                return await threads.run(resync.run, name="resync")
            except KubeError as error:
                log.warning("First listing failed", extra={"err": str(error), "pause_s": pause_s})
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_RETRY_S)

    async def _resync(self, resync: Resync, watcher: Watcher, router: Router) -> None:
        """List everything and requeue every object, in each sync period.

        What is known is requeued also where a list fails, such as that of another's kind with a broken webhook: the
        resources in the cloud change all the same.
        """
        loop, period_s = asyncio.get_running_loop(), self.settings.sync_period_s
        pause_s, due_s = period_s, loop.time() + period_s
        while True:
            await asyncio.sleep(pause_s)
            is_listed = await self._list(resync, watcher)
            pause_s = period_s if is_listed else min(MAX_RETRY_S, period_s)
            if is_listed or loop.time() >= due_s:
                router.wake_all(RESYNC_SPREAD * period_s)
                due_s = loop.time() + period_s

    async def _list(self, resync: Resync, watcher: Watcher) -> bool:
        """List everything; return whether that succeeded."""
        try:
            watcher.watch(await threads.run(resync.run, name="resync"))
        except KubeError as error:
            log.warning("Listing failed", extra={"err": str(error)})
            return False
        return True

    async def _migrate(self) -> None:
        """Rewrite stored objects in the storage version, beside reconciles.

        Repeats, as a CRD may change at any time.
        """
        phases = MIGRATION_PHASES.difference(self.settings.skip_crd_migration_phases)
        migration, pause_s = Migration(self.kube, phases), FIRST_RETRY_S
        while phases:
            try:
                await threads.run(migration.run, name="migration")
            except (KubeError, MigrationError) as error:
                log.warning("Stored objects are not migrated", extra={"err": str(error), "pause_s": pause_s})
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, self.settings.sync_period_s)
            else:
                await asyncio.sleep(self.settings.sync_period_s)
                pause_s = FIRST_RETRY_S

    async def _complete(self, resync: Resync, listed: asyncio.Event) -> None:
        """List everything after watches restarted: events do not include deletions from the time between."""
        while True:
            await listed.wait()
            await asyncio.sleep(GAP_S)  # watches mostly restart together
            listed.clear()
            try:
                await threads.run(resync.run, name="resync")
            except KubeError as error:
                log.warning("Listing failed", extra={"err": str(error)})
                listed.set()

    async def _look_back(self, resync: Resync, resumed: asyncio.Event, listed: asyncio.Event) -> None:
        """List everything if the API server's state is older than before: resumed watches do not report it."""
        while True:
            await resumed.wait()
            await asyncio.sleep(GAP_S)
            resumed.clear()
            try:
                if await threads.run(resync.is_behind, name="resync"):
                    listed.set()
            except KubeError as error:
                log.warning("Listing failed", extra={"err": str(error)})
                resumed.set()

    async def _first(self, work: Coroutine[Any, Any, object]) -> None:
        """Run until the work ends or the process is stopped; raises what the work raises."""
        tasks = [asyncio.create_task(each) for each in (work, self._stop.wait())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _shut_down(self) -> None:
        """Stop in an order that leaves no write in flight when the lease is released."""
        began_s = time.monotonic()
        left = await self._workers.stop(DRAIN_S) if self._workers else 0
        if self._watcher:
            await threads.run(lambda watcher=self._watcher: watcher.stop(1.0), name="stop")  # type: ignore[misc]
        await threads.run(lambda: self._events.stop(1.0), name="stop")
        if self._lease:
            end = self._lease.end if left else self._lease.release
            left_s = max(1.0, began_s + STOP_S - time.monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(threads.run(end, name="stop"), left_s)
        await diagnostics.close(self._servers)
        log.info("Stopped", extra={"left": left, "seconds": round(time.monotonic() - began_s, 3)})

    def _lost(self) -> None:
        for handler in logging.getLogger().handlers:
            handler.flush()
        self.end_process(1)

    def _watches(self) -> str | None:
        silent_s = self._watcher.silent_s() if self._watcher else 0.0
        return f"the watches are dead since {silent_s:.0f} s" if silent_s > DEAD_WATCHES_S else None

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(RuntimeError, ValueError):  # not in the main thread: tests stop it themselves
                loop.add_signal_handler(number, self._signalled)

    def _signalled(self) -> None:
        if self._stop.is_set():
            log.warning("Second signal: ending at once")
            self.end_process(1)
        log.info("Stopping")
        self.stop()


async def keep_house(deps: Dependencies, pause_s: float = HOUSEKEEPING_S) -> None:
    """Evict unused entries from caches, periodically."""

    def work() -> None:
        for duty in deps.housekeeping:
            try:
                duty()
            except Exception:
                log.exception("Housekeeping failed")

    while True:
        await asyncio.sleep(pause_s)
        await threads.run(work, name="housekeeping")


def _setter(event: asyncio.Event) -> Callable[[], None]:
    """Return a function that sets an event of the running loop from any thread."""
    loop = asyncio.get_running_loop()

    def set_event() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(event.set)

    return set_event
