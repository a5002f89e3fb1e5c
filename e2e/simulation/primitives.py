"""Replaces threads, locks, executors, clocks and randomness of the standard library while a simulation runs.

:func:`install` comes before the first import of ``capo``: names that are bound at import are bound to these. Locks that
libraries created before stay real; no task switch happens while one of them is held.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import itertools
import os
import queue
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

import time_machine

from e2e.simulation.scheduler import Scheduler, Task

_REAL_MONOTONIC: Final = time.monotonic
_REAL_URANDOM: Final = os.urandom


class _Now:
    """The scheduler of the simulation in this process, and its source of random bytes."""

    scheduler: Scheduler | None = None
    entropy: random.Random = random.Random(0)
    dns_gives_up_s: float | None = None


def scheduler() -> Scheduler:
    """Return the scheduler of the running simulation."""
    assert _Now.scheduler is not None, "no simulation runs"
    return _Now.scheduler


def begin(new: Scheduler, seed: str) -> None:
    """Start simulating: clocks, random numbers and threads are those of this scheduler."""
    _Now.scheduler = new
    _Now.entropy = random.Random(f"entropy {seed}")
    _Now.dns_gives_up_s = None
    random.seed(f"program {seed}")


def install() -> None:
    """Install all replacements; before :func:`begin` they behave as the real ones in one thread."""
    threading.Lock = threading._allocate_lock = Lock  # type: ignore[assignment,attr-defined]
    threading.RLock = RLock  # type: ignore[assignment]
    threading.Thread = Thread  # type: ignore[misc,assignment]
    concurrent.futures.ThreadPoolExecutor = Executor  # type: ignore[misc,assignment]
    time.monotonic = time.perf_counter = queue.time = _monotonic  # type: ignore[attr-defined]
    time.monotonic_ns = time.perf_counter_ns = _monotonic_ns
    socket.gethostname = lambda: "manager"
    socket.getaddrinfo = _no_names
    time.sleep = _sleep  # type: ignore[assignment]
    os.urandom = _urandom
    random._urandom = _urandom  # type: ignore[attr-defined]
    traveller = time_machine.travel(0.0, tick=False).start()
    traveller.time_ns = _wall_ns  # type: ignore[method-assign]


def _monotonic() -> float:
    return _Now.scheduler.now_s if _Now.scheduler else _REAL_MONOTONIC()


def _monotonic_ns() -> int:
    return int(_monotonic() * 1e9)


def set_dns(gives_up_s: float | None) -> None:
    """Configure lookups of names to fail after so many seconds; None: DNS answers at once that no name exists."""
    _Now.dns_gives_up_s = gives_up_s


def _no_names(host: object, *_: object, **__: object) -> NoReturn:
    if _Now.dns_gives_up_s is not None:
        _sleep(_Now.dns_gives_up_s)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is not known")


def _wall_ns() -> int:
    return int(_Now.scheduler.wall_s() * 1e9) if _Now.scheduler else 0


def _sleep(seconds: float) -> None:
    scheduler().sleep(seconds)


def _urandom(size: int) -> bytes:
    return _Now.entropy.randbytes(size) if _Now.scheduler else _REAL_URANDOM(size)


class Lock:
    """A lock whose acquisition is a point at which another task may run."""

    def __init__(self) -> None:
        self._holder: object = None
        self._waiters: collections.deque[Task] = collections.deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock; see :meth:`threading.Lock.acquire`."""
        now = _Now.scheduler
        if now is None:
            self._holder = self
            return True
        now.pause()
        ends_s = None if timeout < 0 else now.now_s + timeout
        while self._holder is not None:
            left_s = None if ends_s is None else ends_s - now.now_s
            if not blocking or (left_s is not None and left_s <= 0):
                return False
            task = now.current
            assert task is not None, "the scheduler itself waits for a lock"
            self._waiters.append(task)
            now.block(left_s)
            if task in self._waiters:
                self._waiters.remove(task)
        self._holder = now.current or self
        return True

    def release(self) -> None:
        """Release the lock and wake the waiting tasks."""
        if self._holder is None:
            raise RuntimeError("release of a lock that nobody holds")
        self._holder = None
        now = _Now.scheduler
        if now is None:
            return
        waiters, self._waiters = self._waiters, collections.deque()
        for task in waiters:  # all of them: the first may belong to a process that died
            now.wake(task)
        now.pause()

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._holder is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class RLock(Lock):
    """A lock that its holder may acquire again."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock; see :meth:`threading.RLock.acquire`."""
        if self._is_owned() or super().acquire(blocking, timeout):
            self._depth += 1
            return True
        return False

    def release(self) -> None:
        """Release it once."""
        if not self._is_owned():
            raise RuntimeError("release of a lock that another thread holds")
        self._depth -= 1
        if self._depth == 0:
            super().release()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_owned(self) -> bool:
        task = _Now.scheduler.current if _Now.scheduler else None
        return self._holder is not None and self._holder is (task or self)

    def _release_save(self) -> int:
        depth, self._depth = self._depth, 0
        super().release()
        return depth

    def _acquire_restore(self, depth: int) -> None:
        super().acquire()
        self._depth = depth


class Thread:
    """A thread that is a task of the process that starts it."""

    _numbers = itertools.count(1)

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.name = name or f"thread-{next(self._numbers)}"
        self.daemon = bool(daemon)
        self.ident: int | None = None
        self._target, self._args, self._kwargs = target, args, kwargs or {}
        self._task: Task | None = None

    def start(self) -> None:
        now = scheduler()
        process = now.current.process if now.current else None
        self._task = now.spawn(self.run, name=self.name, process=process)
        self.ident = self._task.number

    def run(self) -> None:
        """Run the target."""
        if self._target:
            self._target(*self._args, **self._kwargs)

    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._task is not None and not self._task.is_done

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended."""
        now = scheduler()
        me = now.current
        if not self.is_alive() or me is None or self._task is None:
            return
        self._task.on_end.append(lambda: now.wake(me))
        ends_s = None if timeout is None else now.now_s + timeout
        while self.is_alive() and (ends_s is None or now.now_s < ends_s):
            now.block(None if ends_s is None else ends_s - now.now_s)


class Executor(concurrent.futures.Executor):
    """A pool of threads that are tasks."""

    def __init__(self, max_workers: int | None = None, thread_name_prefix: str = "", **_: object) -> None:
        self._room = max_workers or 8
        self._name = thread_name_prefix or "pool"
        self._waiting: collections.deque[tuple[concurrent.futures.Future[Any], Callable[[], Any]]] = collections.deque()
        self._running = 0
        self._is_shut_down = False

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        """Call the function in a task of the calling process."""
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._waiting.append((future, lambda: function(*args, **kwargs)))
        self._begin()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work."""
        self._is_shut_down = True
        if cancel_futures:
            for future, _ in self._waiting:
                future.cancel()
            self._waiting.clear()

    def _begin(self) -> None:
        now = scheduler()
        if self._waiting and self._running < self._room:
            self._running += 1
            now.spawn(self._work, name=self._name, process=now.current.process if now.current else None)

    def _work(self) -> None:
        while self._waiting:
            future, work = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
                future.set_exception(error)
            else:
                future.set_result(result)
        self._running -= 1


class _Selector:
    """The blocking wait of an event loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        self._loop.wait(timeout)
        return []

    def close(self) -> None:
        """Do nothing."""


class Loop(asyncio.BaseEventLoop):
    """An asyncio loop that waits by the scheduler; it runs in the task that calls ``run_until_complete``."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector(self)
        self._clock_resolution = 1e-9
        self._task: Task | None = None
        self._is_woken = False

    def time(self) -> float:
        """Return the simulation's time."""
        return scheduler().now_s

    def wait(self, timeout_s: float | None) -> None:
        """Yield to other tasks; return when there is work, or when the time is over."""
        now = scheduler()
        self._task = now.current
        if self._is_woken or timeout_s == 0:
            now.give_way()
        else:
            now.block(timeout_s)
        self._is_woken = False

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing: sockets are not read."""

    def _write_to_self(self) -> None:
        self._is_woken = True
        if self._task is not None:
            scheduler().wake(self._task)
