"""The watches, by kopf: the only file that imports it, and all that is used of it is ``on.event``.

With these handlers alone kopf writes nothing to the cluster. It runs in a thread and loop of its own, because it ends
every younger task of its loop when it stops, and under a supervisor, because any error in a watch but 410 ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
import ssl
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import aiohttp
import kopf

from capo import logs
from capo.engine import metrics
from capo.kube.connection import Connection
from capo.kube.credentials import Credential
from capo.kube.errors import KubeError
from capo.kube.kinds import Kind

log = logging.getLogger(__name__)

Sink = Callable[[Kind, str | None, Mapping[str, Any]], object]
"""Takes kind, event type (None: listed) and object, in the watcher's thread."""

BEAT_S: Final = 5.0
GRACE_S: Final = 0.2
STUBBORN_S: Final = 2.0
CLOSING_S: Final = 0.01
RESTART_S: Final = 1.0
MAX_RESTART_S: Final = 15.0
HEALTHY_AFTER_S: Final = 60.0
CHUNK: Final = 500
BACKOFFS_S: Final = (0.5, 1.0, 2.0, 2.0, 2.0, 2.0)


class _NoDiffBase(kopf.DiffBaseStorage):  # type: ignore[misc]
    """Remembers nothing: ``on.event`` alone does not ask for it, and building the base costs a third of each event."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        return None


class Watcher:
    """Watches kinds and hands what it sees to a sink.

    Args:
        namespace: watch this one alone; empty means all.
        restart_s: first pause after a failure; doubles up to 15 s while it goes on failing.
        on_listed: called when a kind was listed because its watch starts or restarts: watch events do not include
            deletions before that. From the watcher's thread.
        on_resumed: called when a watch goes on after its connection ended, without a list. From the watcher's thread.
    """

    def __init__(  # noqa: PLR0913 - each named at the one call
        self,
        connection: Connection,
        sink: Sink,
        *,
        namespace: str = "",
        restart_s: float = RESTART_S,
        on_listed: Callable[[], None] = lambda: None,
        on_resumed: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_listed, self._on_resumed = on_listed, on_resumed
        self._listed: set[str] = set()
        """Paths of kinds that were listed and are not watched yet."""
        self._connection, self._sink, self._namespace, self._restart_s = connection, sink, namespace, restart_s
        self._kinds: tuple[Kind, ...] = ()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._flag: asyncio.Event | None = None
        self._beat_s = time.monotonic()
        self._sessions: list[aiohttp.ClientSession] = []
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._used = Credential()
        """That of the last session."""
        # kopf's default reads the user's name, which fails without a passwd entry, and resolves the hostname while the
        # loop waits. It uses the identity for peering alone, which standalone disables.
        self._identity = f"{socket.gethostname()}_{uuid.uuid4()}"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds that are watched."""
        return self._kinds

    def watch(self, kinds: Iterable[Kind]) -> None:
        """Watch exactly these kinds; a change of the list restarts all watches."""
        wanted = tuple(kinds)
        if [kind.api_version for kind in wanted] == [
            kind.api_version for kind in self._kinds
        ] and wanted == self._kinds:
            return
        self._kinds = wanted
        if self._thread is None:
            self._thread = threading.Thread(target=self._supervise, name="watcher", daemon=True)
            self._thread.start()
        else:
            self._end_watches()

    def restart(self) -> None:
        """Restart all watches, with lists."""
        self._end_watches()

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the watches and the thread."""
        self._is_stopping.set()
        self._end_watches()
        if self._thread:
            self._thread.join(timeout_s)

    def silent_s(self) -> float:
        """Return for how long the watches have been down or their loop hung; 0 when all is well."""
        if self._thread is None or self._is_stopping.is_set():
            return 0.0
        silent_s = time.monotonic() - self._beat_s
        return silent_s if silent_s > 2 * BEAT_S else 0.0

    def _end_watches(self) -> None:
        with self._lock:
            if self._loop and self._flag:
                self._loop.call_soon_threadsafe(self._flag.set)

    def _supervise(self) -> None:
        pause_s = self._restart_s
        while not self._is_stopping.is_set():
            began_s = time.monotonic()
            try:
                asyncio.run(self._operate())
            except Exception as error:  # noqa: BLE001 - whatever ends kopf must not end the watches
                metrics.FEED_FAILURES.inc()
                if time.monotonic() - began_s > HEALTHY_AFTER_S:
                    pause_s = self._restart_s
                log.warning("Watches failed and start again", extra={"err": repr(error), "pause_s": pause_s})
                self._is_stopping.wait(pause_s)
                pause_s = min(2 * pause_s, MAX_RESTART_S)

    async def _operate(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_note)
        beat = asyncio.create_task(self._keep_beating())  # older than kopf, so kopf does not end it
        with self._lock:
            # An asyncio.Event: a threading.Event parks a thread of the executor that nothing can cancel.
            self._loop, self._flag = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self._run_kopf(self._flag)
        finally:
            with self._lock:
                self._loop = self._flag = None
            beat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beat

    async def _run_kopf(self, flag: asyncio.Event) -> None:
        """Run kopf until the flag is set or a watch fails; raise what it failed of."""
        scope: dict[str, Any] = {"namespaces": [self._namespace]} if self._namespace else {"clusterwide": True}
        older = asyncio.all_tasks()
        roots = await kopf.spawn_tasks(
            registry=self._registry(self._kinds),
            settings=_settings(),
            standalone=True,
            identity=self._identity,
            stop_flag=flag,
            **scope,
        )
        running = asyncio.create_task(kopf.run_tasks(roots, ignored=older))
        ended, _ = await asyncio.wait(roots, return_when=asyncio.FIRST_COMPLETED)
        # kopf gives the other watches five seconds to end by themselves, which they never do.
        await asyncio.wait({running}, timeout=GRACE_S)
        left = {running, *(task for task in asyncio.all_tasks() if task not in older)}
        for task in left:
            task.cancel()
        gone, _ = await asyncio.wait(left, timeout=STUBBORN_S)
        await self._close_sessions()
        faults = [task.exception() for task in (*ended, *gone) if not task.cancelled()]
        if not flag.is_set():
            raise next(filter(None, faults), RuntimeError("kopf ended by itself"))

    async def _keep_beating(self) -> None:
        while True:
            self._beat_s = time.monotonic()
            await asyncio.sleep(BEAT_S)

    def _registry(self, kinds: tuple[Kind, ...]) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()  # not the smart one: no login by other client libraries
        kopf.on.login(registry=registry)(self._login)
        for kind in kinds:
            handler = functools.partial(self._seen, kind)
            kopf.on.event(kind.group, kind.version, kind.plural, id=f"watch-{kind.plural}", registry=registry)(handler)
        return registry

    async def _seen(self, kind: Kind, *, event: Mapping[str, Any], **_: Any) -> None:
        metrics.FEED_EVENTS.labels(kind.kind).inc()
        try:
            self._sink(kind, event["type"], event["object"])
        except Exception:
            log.exception("An event could not be taken", extra={"kind": kind.kind})

    async def _login(self, **_: Any) -> kopf.AiohttpSession:
        """Open a session of our own; called again when the API server answers 401.

        kopf's own sessions stay open when it is stopped while it starts; ours are closed in any case.
        """
        try:
            tls = await asyncio.to_thread(self._identify)
        except KubeError as error:
            # kopf would repeat a login after a minute; a start of the watches comes sooner.
            raise kopf.PermanentError(str(error)) from error
        authorization, proxy = self._used.authorization, self._connection.proxy
        trace = aiohttp.TraceConfig()
        trace.on_request_end.append(self._requested)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls or True, socket_factory=self._open_socket),
            headers={"Authorization": authorization} if authorization else None,
            proxy=proxy.url_with_login if proxy else None,
            trust_env=False,
            trace_configs=[trace],
        )
        self._sessions.append(session)
        return kopf.AiohttpSession(server=self._connection.server, aiohttp_session=session)

    def _identify(self) -> ssl.SSLContext | None:
        """Note the credential of the moment, another one than a session had that was refused; return TLS for it."""
        credentials, tls = self._connection.credentials, self._connection.tls
        if self._sessions and not credentials.renew(self._used):
            raise KubeError("the API server refuses these credentials")
        self._used = credentials.current()
        return tls.context(self._used.certificate) if self._connection.has_tls else None

    async def _requested(self, _session: object, _context: object, params: aiohttp.TraceRequestEndParams) -> None:
        """Report a kind's list or the resumption of its watch: kopf does not, and an empty list leads to no event."""
        path = params.url.path
        if params.method != "GET" or path.rpartition("/")[2] not in {kind.plural for kind in self._kinds}:
            return
        if "watch" not in params.url.query:
            self._listed.add(path)
            self._on_listed()
        elif path in self._listed:
            self._listed.discard(path)
        else:
            self._on_resumed()

    def _open_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, type_, proto, *_ = address
        opened = socket.socket(family, type_, proto)
        self._sockets.add(opened)
        return opened

    async def _close_sessions(self) -> None:
        for session in self._sessions:
            await session.close()
        self._sessions.clear()
        # aiohttp forgets a TLS connection whose end the server has not confirmed, and one that is cancelled on the way
        # to a proxy: when the loop ends, they would stay open.
        ends_s = time.monotonic() + STUBBORN_S
        while (left := [each for each in self._sockets if each.fileno() >= 0]) and time.monotonic() < ends_s:
            for each in left:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(CLOSING_S)


def _note(_loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """Log in one line what kopf's tasks leave behind: when several watches fail, kopf reports the first alone."""
    fault = context.get("exception")
    log.log(logs.verbosity(4), "A watch left an error", extra={"err": repr(fault) if fault else context["message"]})


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = CHUNK
    # The default grows to 21 s: after an outage of the API server nothing would be seen for so long.
    settings.networking.error_backoffs = BACKOFFS_S
    settings.persistence.diffbase_storage = _NoDiffBase()
    # The default kills the whole process ten minutes after a stop.
    settings.process.ultimate_exiting_timeout = None
    # queueing.worker_limit stays unset: an idle worker would keep its slot for five seconds.
    # persistence.finalizer stays at its default: kopf removes a finalizer of that name that it did not want.
    return settings
