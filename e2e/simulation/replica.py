"""A manager as a simulated process: started, killed, frozen, restarted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capo.engine import reconciler
from capo.engine.manager import Manager
from capo.engine.worker import Result
from capo.kube.client import Kube
from capo.kube.connection import Connection
from capo.kube.kinds import Key
from capo.settings import Settings
from controllers import all_controllers
from e2e.simulation import apiclient, primitives
from e2e.simulation.apiclient import Endpoint
from e2e.simulation.scheduler import Process, Scheduler

NAMESPACE = "capo-system"


@dataclass(frozen=True)
class Actor:
    """The object of one management cluster that a task reconciles."""

    endpoint: Endpoint
    key: Key
    uid: str

    def __str__(self) -> str:
        """Return it as logs name it."""
        return f"{self.endpoint.name} {self.key.kind.kind} {self.key.namespace}/{self.key.name}"


class _Manager(Manager):
    """A manager without sockets and signals."""

    async def _listen(self, *_: object, **__: object) -> None:
        """Serve nothing: the simulation requests neither probes nor metrics."""

    def _catch_signals(self) -> None:
        """Do nothing: signals belong to the simulation."""


@dataclass(eq=False)
class Replica:
    """One manager of a management cluster, through all its restarts."""

    scheduler: Scheduler
    endpoint: Endpoint
    name: str
    settings: Settings
    skew_s: float = 0.0
    process: Process | None = None
    starts: int = 0

    @property
    def is_running(self) -> bool:
        """Return whether a process of it runs."""
        return self.process is not None and not self.process.is_dead

    def start(self) -> None:
        """Start the process."""
        self.starts += 1
        self.process = Process(f"{self.name}-{self.starts}", self.skew_s)
        self.scheduler.note(f"start {self.process.name}")
        self.scheduler.spawn(self._run, name=self.process.name, process=self.process)

    def kill(self) -> None:
        """End the process at once."""
        if self.process is not None:
            self.scheduler.kill(self.process)

    def freeze(self, seconds: float) -> None:
        """Suspend the process for so long."""
        if self.process is not None:
            self.scheduler.freeze(self.process, seconds)

    def step_clock(self, seconds: float) -> None:
        """Set the wall clock of its machine forward or back."""
        self.skew_s += seconds
        if self.process is not None:
            self.process.skew_s = self.skew_s

    def _run(self) -> None:
        loop = primitives.Loop()
        kube = Kube(Connection(f"http://{self.endpoint.name}", namespace=NAMESPACE))
        manager = _Manager(self.settings, kube, all_controllers, end_process=lambda _status: self._end())
        loop.run_until_complete(manager.run())

    def _end(self) -> None:
        self.scheduler.note("process ends itself")
        self.scheduler.end_process()


def track_actors() -> None:
    """Record in each task the object that it reconciles, during the reconcile."""
    reconcile, run = reconciler.Reconciler.reconcile, reconciler.Reconciler._pass

    def tracked(self: Any, key: Key) -> Result:
        task = primitives.scheduler().current
        obj = self.deps.store.get(*key)
        assert task is not None
        if obj is not None:
            host = self.deps.kube.connection.server.removeprefix("http://")
            task.actor = Actor(_endpoint(host), key, obj["metadata"]["uid"])
            apiclient.current().own_writes.check(task.process, task.actor, self.deps.store)
        try:
            return reconcile(self, key)
        finally:
            task.actor = None

    def with_object(self: Any, key: Key, writer: Any) -> Result:
        # It may have been created, or replaced by another one of its name, since the reconcile began.
        task, host = primitives.scheduler().current, self.deps.kube.connection.server.removeprefix("http://")
        assert task is not None
        task.actor = Actor(_endpoint(host), key, writer.obj["metadata"]["uid"])
        return run(self, key, writer)

    reconciler.Reconciler.reconcile = tracked  # type: ignore[method-assign]
    reconciler.Reconciler._pass = with_object  # type: ignore[method-assign]


def _endpoint(host: str) -> Endpoint:
    return apiclient.current().endpoints[host]
