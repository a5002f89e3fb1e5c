"""A test environment for controllers: the real engine and OpenStack layer over HTTP, a simulated cloud, a fake clock.

Kubernetes is :class:`FakeKube`. Nothing sleeps: when nothing is due, time jumps to the next due action. Usage::

    with InMemoryEnvironment(ServerController) as environment:
        environment.apply(OPENSTACK_SERVER, {...})
        environment.settle()
"""

from __future__ import annotations

import base64
import collections
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self
from unittest import mock

from capo.engine import conditions
from capo.engine.context import Dependencies
from capo.engine.create import CreateProtocol
from capo.engine.queue import CONFLICT_S
from capo.engine.reconciler import Reconciler
from capo.engine.steps import Create
from capo.engine.store import Store, key_of
from capo.engine.tests.fake_kube import FakeClock, FakeKube, RecordedEvents
from capo.engine.worker import Result
from capo.json_types import Json
from capo.kube.errors import Conflict
from capo.kube.kinds import SECRET, Key, Kind
from capo.openstack.clouds import Clouds
from capo.openstack.list_poller import ListPoller
from capo.openstack.poller_pool import Site
from capo.settings import Settings
from capo.simulator.cloud import Cloud as SimulatedCloud
from capo.simulator.octavia import service as octavia
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client, everything
from controllers.credentials import CredentialsCache

MAX_PASSES: Final = 2000
"""More reconciles than this in one call of ``settle`` are a hot loop."""
NAMESPACE: Final = "default"
Factory = Callable[[CredentialsCache, Dependencies], Any]
"""Creates a controller."""


class ManualClouds(Clouds):
    """Clouds whose lists are polled by the stage, in its own time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pollers: list[ListPoller] = []

    def _observe(self, poller: ListPoller, site: Site) -> None:
        self.pollers.append(poller)


class InMemoryEnvironment:
    """One manager, one API server, one cloud.

    Args:
        factories: called with the identities; each returns a controller.
        settings: of the manager.
    """

    def __init__(self, *factories: Factory, settings: Settings | None = None) -> None:
        self.clock = FakeClock(float(int(time.time())))
        self.kube = FakeKube()
        self.events = RecordedEvents()
        self.settings = settings or Settings()
        self.unwatched: set[Kind] = set()
        self._factories = factories
        self.simulator = Simulator.start(SimulatedCloud(clock=self.clock.now))
        self.member = Client(self.simulator)
        self.cloud = self.simulator.cloud
        self.cloud.counter.reset()
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.member.session.close()
        self.simulator.stop()

    def start(self) -> None:
        """Start or restart the manager, with empty caches."""
        self.store = Store()
        self.store.listen(self._changed)
        self._due: dict[Key, float] = {}
        self._kinds: set[Kind] = set()
        deps = Dependencies(self.kube, self.store, self.events, self.clock, self.settings)  # type: ignore[arg-type]
        self.deps = deps
        self.clouds = ManualClouds(self.clock, self._wake)
        identities = CredentialsCache(self.kube, self.clouds, self.clock, max_age_s=self.settings.sync_period_s)  # type: ignore[arg-type]
        made = [make(identities, deps) for make in self._factories]
        # Controllers of objects without resources in the cloud are reconcilers of their own.
        self.controllers = [each if hasattr(each, "reconcile") else Reconciler(each, deps) for each in made]
        self._sync()

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def apply(self, kind: Kind, obj: Json) -> Json:
        """Create an object."""
        return self.kube.put(kind, obj)

    def apply_secret(self, name: str = "cloud", *, text: bytes | None = None) -> None:
        """Create or replace the Secret with the credentials of the simulated cloud, or with other text."""
        data = {"clouds.yaml": base64.b64encode(text or self.simulator.clouds_yaml.read_bytes()).decode()}
        self.apply(SECRET, {"metadata": {"name": name}, "data": data})

    def patch(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> None:
        """Merge patch an object as a user."""
        self.kube.edit(kind, NAMESPACE, name, patch)

    def delete(self, kind: Kind, name: str) -> None:
        """Request a deletion as a user."""
        self.kube.delete(kind, NAMESPACE, name)
        self.kube.writes.pop()

    def get(self, kind: Kind, name: str) -> Json:
        """Return an object that must exist."""
        found = self.kube.get(kind, NAMESPACE, name)
        assert found is not None, f"{kind.kind} {name} does not exist"
        return found

    def exists(self, kind: Kind, name: str) -> bool:
        return self.kube.get(kind, NAMESPACE, name) is not None

    def condition(self, kind: Kind, name: str, type_: str) -> Json:
        """Return a condition, empty when there is none."""
        conditions = self.get(kind, name).get("status", {}).get("conditions") or []
        return next((c for c in conditions if c["type"] == type_), {})

    # -- OpenStack --------------------------------------------------------------------------------------------------

    def inventory(self) -> dict[str, dict[str, Json]]:
        """Return all resources of the cloud by kind and id, except identities."""
        found: dict[str, dict[str, Json]] = {}
        for kind, items in everything(self.simulator).items():
            if items:
                found.setdefault(kind.partition("/")[2], {}).update(items)
        return found

    def add_fault(self, **document: Any) -> None:
        """Inject a fault."""
        self.simulator.call(lambda: self.cloud.faults.add(document))

    def clear_faults(self) -> None:
        """Remove all faults."""
        self.simulator.call(self.cloud.faults.clear)

    def requests(self) -> list[str]:
        """Return all requests of the manager, as ``METHOD path``."""
        return [f"{call['method']} {call['path']}" for call in self.cloud.counter.log()]

    def writes(self) -> list[str]:
        """Return the manager's requests that change resources, without logins."""
        return [request for request in self.requests() if not request.startswith("GET") and "/auth/" not in request]

    def network(self, cidr: str = "10.9.0.0/24") -> Json:
        """Create a network with a subnet as a user; its requests are not counted."""
        made: Json = self.member.make_network(cidr=cidr)[0]
        self.cloud.counter.reset()
        return made

    def use_ovn(self, *, default: str = "ovn", release: str = "2026.2") -> None:
        """Make Octavia offer the provider ovn of an OpenStack release, and set the default provider."""
        octavia.offer(self.cloud, default=default, release=release)

    # -- time -------------------------------------------------------------------------------------------------------

    def settle(self, *, for_s: float = 300.0, until: Callable[[], Any] | None = None) -> None:
        """Run reconciles and lists until nothing is due within ``for_s``, or until a condition holds."""
        ends_s = self.clock.now() + for_s
        for _ in range(MAX_PASSES):
            self._sync()
            if until and until():
                return
            if self._list() or self._run_one():
                continue
            next_s = min([*self._due.values(), *(o.next_due_s() for o in self.clouds.pollers)], default=float("inf"))
            if next_s > ends_s:
                self.clock.now_s = ends_s
                return
            self.clock.now_s = max(self.clock.now_s, next_s)
        raise AssertionError(f"{MAX_PASSES} passes without rest: a hot loop")

    def wake_all(self) -> None:
        """Requeue every object, as a resync does."""
        for controller in self.controllers:
            for obj in self.store.list(controller.kind):
                self._wake(key_of(controller.kind, obj))

    def timestamp(self) -> str:
        """Return now, as Kubernetes writes it."""
        return conditions.timestamp(self.clock.wall())

    def _list(self) -> bool:
        """Poll all lists that are due; return whether there were any."""
        due = [(poller, kind) for poller in self.clouds.pollers for kind in poller.due()]
        for poller, kind in due:
            poller.run(kind)
        return bool(due)

    def _run_one(self) -> bool:
        """Run the first reconcile that is due; return whether there was one."""
        due = {key: at_s for key, at_s in self._due.items() if at_s <= self.clock.now()}
        if not due:
            return False
        key = min(due, key=lambda key: (due[key], key.kind.kind, key.name))
        del self._due[key]
        controller = next(c for c in self.controllers if c.kind == key.kind)
        try:
            result: Result = controller.reconcile(key)
        except Conflict:
            result = Result(requeue_after_s=CONFLICT_S)
        if result.error:
            raise result.error
        if result.requeue_after_s is not None:
            self._later(key, result.requeue_after_s)
        return True

    def _later(self, key: Key, seconds: float) -> None:
        at_s = self.clock.now() + max(seconds, 0.001)
        self._due[key] = min(self._due.get(key, at_s), at_s)

    def _wake(self, key: Any) -> None:
        self._due[key] = self.clock.now()

    def _sync(self) -> None:
        """Update the store from the API server, as the watches do."""
        counts = collections.Counter(key.kind for key in self.kube.objects)
        for key, obj in list(self.kube.objects.items()):
            if key.kind not in self.unwatched and not self._is_stored(key, obj):
                self.store.apply(key.kind, "MODIFIED", obj)
        self._kinds |= counts.keys() | {c.kind for c in self.controllers}
        for kind in self._kinds:
            may_lack = self.store.count(kind) > counts[kind] or kind in self.unwatched
            for known in self.store.list(kind) if may_lack else ():
                metadata = known["metadata"]
                if Key(kind, metadata["namespace"], metadata["name"]) not in self.kube.objects:
                    self.store.apply(kind, "DELETED", known)

    def _is_stored(self, key: Key, obj: Json) -> bool:
        known = self.store.get(*key)
        return known is not None and known["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]

    def _changed(self, change: Any) -> None:
        for controller in self.controllers if hasattr(self, "controllers") else ():
            if controller.kind == change.key.kind and change.by != change.key:
                self._due[change.key] = self.clock.now()
            for route in controller.routes:
                if route.kind == change.key.kind:
                    for namespace, name in route.map(dict(change.obj), self.store):
                        key = Key(controller.kind, namespace, name)
                        if key != change.by:
                            self._due[key] = self.clock.now()


@contextmanager
def killed_at_write(stage: InMemoryEnvironment, number: int, *, is_certain: bool = True) -> Iterator[None]:
    """Kill the manager at its n-th write to Kubernetes; the block may end early.

    Args:
        is_certain: fail if the block makes fewer writes: a test that kills nothing proves nothing.
    """
    count = 0

    def is_time() -> bool:
        nonlocal count
        count += 1
        return count == number

    with killed_when(stage, is_time, is_certain=is_certain):
        yield


class Killed(BaseException):
    """Derived from BaseException, so that no handler catches it."""


@contextmanager
def killed_when(stage: InMemoryEnvironment, is_time: Callable[[], bool], *, is_certain: bool = True) -> Iterator[None]:
    """Kill the manager at its first write to Kubernetes while a condition holds; the block may end early.

    Args:
        is_certain: fail if there is no such write in the block.
    """

    def die(*_: object) -> None:
        if is_time():
            raise Killed

    stage.kube.before_write = die
    try:
        yield
    except Killed:
        return
    finally:
        stage.kube.before_write = None
    if is_certain:
        raise AssertionError("the manager was not killed: there were too few writes")


@contextmanager
def killed_before_create(number: int) -> Iterator[None]:
    """Kill the manager before it sends its n-th create, whose intent is stored; the block may end early.

    Raises:
        AssertionError: the block has fewer creates.
    """
    count = 0
    call = CreateProtocol._call

    def counted(protocol: CreateProtocol, create: Create) -> Mapping[str, Mapping[str, Any]]:
        nonlocal count
        count += 1
        if count == number:
            raise Killed
        return call(protocol, create)

    with mock.patch.object(CreateProtocol, "_call", counted):
        try:
            yield
        except Killed:
            return
    raise AssertionError("the manager was not killed: there were too few creates")
