"""A seeded scheduler with a simulated clock: tasks are greenlets, and one runs at a time.

A task runs until it pauses, waits or ends; which one runs next is decided by the seed. When none can run, time jumps to
the next timer. Nothing here waits for real time, and nothing depends on it.
"""

from __future__ import annotations

import asyncio.events
import hashlib
import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import greenlet

EPOCH_S: Final = 1_900_000_000.0
"""The time of day at which every simulation begins, seconds since 1970."""
START_S: Final = 10_000.0
"""Monotonic time at which every simulation begins."""
MAX_SWITCHES_AT_ONCE: Final = 50_000
"""More switches than this at one time are a loop that never waits."""


class HotLoopError(Exception):
    """Tasks ran repeatedly while time did not advance."""


@dataclass(eq=False)
class Process:
    """The state of a simulated process: a name, its own wall clock, and whether it runs.

    Args:
        skew_s: its wall clock, relative to the true one.
    """

    name: str
    skew_s: float = 0.0
    is_dead: bool = False
    frozen_until_s: float = 0.0


@dataclass(eq=False)
class Task:
    """A thread of a simulated process.

    Args:
        actor: the object that it reconciles at the moment; monitors of requests read it.
    """

    number: int
    name: str
    process: Process | None
    greenlet: Any = None
    is_done: bool = False
    is_ready: bool = False
    was_woken: bool = False
    wait: int = 0
    actor: Any = None
    error: BaseException | None = None
    on_end: list[Callable[[], None]] = field(default_factory=list)


@dataclass(order=True)
class _Timer:
    due_s: float
    tie: float
    number: int
    callback: Callable[[], None] = field(compare=False)
    is_cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Cancel the callback."""
        self.is_cancelled = True


class Scheduler:
    """Runs tasks one at a time, in an order that only the seed determines.

    Args:
        switch_rate: probability that a pause switches to another task.
        stall_rate: probability that a pause takes long, as on an overloaded machine.
        stall_s: maximum duration of such a pause.
    """

    def __init__(self, seed: str, *, switch_rate: float = 0.3, stall_rate: float = 0.0, stall_s: float = 10.0) -> None:
        self.now_s = START_S
        self.random = random.Random(f"schedule {seed}")
        self.switch_rate = switch_rate
        self.stall_rate = stall_rate
        self.stall_s = stall_s
        self.current: Task | None = None
        self.faults: list[str] = []
        self.lines: list[str] = []
        self._keeps_lines = False
        self.switches = 0
        self._main = greenlet.getcurrent()
        self._ready: list[Task] = []
        self._frozen: list[Task] = []
        self._timers: list[_Timer] = []
        self._numbers = itertools.count(1)
        self._hash = hashlib.blake2b(digest_size=12)
        self._kept: set[Task] = set()
        self._switches_at_once = 0

    # -- time -------------------------------------------------------------------------------------------------------

    def wall_s(self) -> float:
        """Return the time of day as the running process sees it, seconds since 1970."""
        process = self.current.process if self.current else None
        return self.true_wall_s() + (process.skew_s if process else 0.0)

    def true_wall_s(self) -> float:
        """Return the true time of day, seconds since 1970."""
        return EPOCH_S + self.now_s - START_S

    def after(self, seconds: float, callback: Callable[[], None]) -> _Timer:
        """Call back in so many seconds; the seed orders callbacks that are due together."""
        timer = _Timer(self.now_s + max(0.0, seconds), self.random.random(), next(self._numbers), callback)
        heapq.heappush(self._timers, timer)
        return timer

    # -- tasks ------------------------------------------------------------------------------------------------------

    def spawn(self, function: Callable[[], object], *, name: str, process: Process | None = None) -> Task:
        """Start a task; it runs when it is scheduled. An exception in it is a defect."""
        task = Task(next(self._numbers), name, process)
        task.greenlet = greenlet.greenlet(lambda: self._run(task, function), parent=self._main)
        self._kept.add(task)  # a greenlet without references is ended by the interpreter, at any moment
        self._make_ready(task)
        return task

    def pause(self) -> None:
        """Switch to another task, if the seed wants it; call it wherever another thread could interfere."""
        if self.current is None:
            return
        drawn = self.random.random()
        if drawn < self.stall_rate:
            self.sleep(self.random.uniform(0.0, self.stall_s))
        elif drawn < self.switch_rate:
            self.give_way()

    def give_way(self) -> None:
        """Switch to any task that can run, this one included."""
        task = self._running()
        self._make_ready(task)
        self._leave()

    def block(self, timeout_s: float | None = None) -> bool:
        """Wait until woken; return False on a timeout."""
        task = self._running()
        task.wait += 1
        task.was_woken = False
        timer = None
        if timeout_s is not None:
            timer = self.after(timeout_s, lambda number=task.wait: self._time_is_up(task, number))  # type: ignore[misc]
        self._leave()
        if timer:
            timer.cancel()
        return task.was_woken

    def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds."""
        ends_s = self.now_s + seconds
        while self.now_s < ends_s:
            self.block(ends_s - self.now_s)

    def wake(self, task: Task) -> None:
        """End the wait of a task."""
        if not task.is_ready and not task.is_done and task is not self.current:
            task.was_woken = True
            self._make_ready(task)

    def kill(self, process: Process) -> None:
        """Stop all tasks of a process; no handler of theirs runs, as with SIGKILL."""
        process.is_dead = True
        self.note(f"kill {process.name}")
        if self.current and self.current.process is process:
            self._leave()

    def freeze(self, process: Process, seconds: float) -> None:
        """Stop all tasks of a process for so long, as when its machine is suspended; clocks advance."""
        process.frozen_until_s = self.now_s + seconds
        self.after(seconds, self._thaw)

    def end_process(self) -> NoReturn:
        """End the process of the running task, as ``os._exit`` does."""
        process = self._running().process
        assert process is not None
        self.kill(process)
        raise AssertionError("a task of a dead process ran")

    # -- the run ----------------------------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool], *, for_s: float) -> bool:
        """Run tasks and timers until a condition holds or time is over; return whether the condition holds.

        Raises:
            HotLoopError: time does not advance.
        """
        ends_s = self.now_s + for_s
        while not until():
            if self._ready:
                self._switch()
                continue
            while self._timers and self._timers[0].is_cancelled:
                heapq.heappop(self._timers)
            if not self._timers or self._timers[0].due_s > ends_s:
                self.now_s = max(self.now_s, ends_s)
                return until()
            timer = heapq.heappop(self._timers)
            if timer.due_s > self.now_s:
                self.now_s, self._switches_at_once = timer.due_s, 0
            timer.callback()
        return True

    def note(self, line: str) -> None:
        """Add a line to the trace, whose hash is equal in all runs of a seed."""
        self._hash.update(f"{self.now_s:.6f} {line}\n".encode())
        if self._keeps_lines:
            task = self.current
            who = f"{task.name} {task.actor or ''}" if task else ""
            self.lines.append(f"{self.now_s:11.4f} {who}: {line}")

    def keep_lines(self) -> None:
        """Keep every line of the trace for printing."""
        self._keeps_lines = True

    def trace(self) -> str:
        """Return the hash of all lines of the trace and of every switch."""
        return self._hash.hexdigest()

    def _run(self, task: Task, function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - a thread that dies is what a simulation looks for
            task.error = error
            self.faults.append(f"{task.name} died: {error!r}")
        task.is_done = True
        self._kept.discard(task)
        for callback in task.on_end:
            callback()
        self.current = None

    def _running(self) -> Task:
        if self.current is None:
            raise RuntimeError("only a task can wait: the scheduler itself was asked to")
        return self.current

    def _make_ready(self, task: Task) -> None:
        if task.is_ready or task.is_done:
            return
        task.is_ready = True
        self._ready.append(task)

    def _time_is_up(self, task: Task, number: int) -> None:
        if task.wait == number and not task.is_ready:
            self._make_ready(task)

    def _thaw(self) -> None:
        self._ready += self._frozen
        self._frozen = []

    def _leave(self) -> None:
        """Switch to the scheduler; return when this task is scheduled again."""
        task = self.current
        loop = asyncio.events._get_running_loop()
        asyncio.events._set_running_loop(None)
        self._main.switch()
        asyncio.events._set_running_loop(loop)
        self.current = task

    def _switch(self) -> None:
        """Run a task until it switches back."""
        ready = self._ready
        index = self.random.randrange(len(ready)) if len(ready) > 1 else 0
        task = ready[index]
        ready[index] = ready[-1]
        ready.pop()
        process = task.process
        if process is not None and process.is_dead:
            task.is_done = True
            return
        if process is not None and process.frozen_until_s > self.now_s:
            self._frozen.append(task)
            return
        self.switches += 1
        self._switches_at_once += 1
        if self._switches_at_once > MAX_SWITCHES_AT_ONCE:
            raise HotLoopError(f"{task.name} and others never wait")
        self._hash.update(task.number.to_bytes(4, "big"))
        task.is_ready = False
        self.current = task
        task.greenlet.switch()
        self.current = None
