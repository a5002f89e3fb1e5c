"""A toy controller: one resource, `thing`, in a cloud that is a dict; a manager of it that can be restarted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capo import names
from capo.engine.context import Continue, Dependencies, Precondition, ReconcileContext, Report, Skip
from capo.engine.reconciler import Reconciler
from capo.engine.steps import Create, Done, Outcome, Plan, Results, Step, all_done
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeClock, FakeKube, RecordedEvents
from capo.errors import AmbiguousAnswerError, CapoError
from capo.kube.kinds import OPENSTACK_SERVER, Key
from capo.ledger import Ledger
from capo.names import Stamp
from capo.settings import Settings
from capo.shares import CloudKey

KIND = OPENSTACK_SERVER
KEY = Key(KIND, "default", "a")
FINALIZER = names.finalizer(KIND.kind)


@dataclass
class ToyCloud:
    things: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    calls: int = 0
    fault: Exception | None = None
    is_lost: bool = False

    def create(self, stamp: Stamp) -> Mapping[str, Any]:
        self.calls += 1
        if self.fault:
            raise self.fault
        body = {"id": f"id-{self.calls}", "stamp": str(stamp)}
        self.things[body["id"]] = body
        if self.is_lost:
            raise AmbiguousAnswerError("connection cut")
        return body


@dataclass
class ToyScope:
    context: ReconcileContext
    cloud: ToyCloud

    @property
    def cache_writer(self) -> ToyScope:
        return self

    def hold(self, create: Create) -> None: ...

    def settle(self, create: Create, error: CapoError | None) -> None: ...

    def upsert(self, kind: str, body: Mapping[str, Any]) -> None: ...

    def mark_written(self, kind: str, roles: Sequence[str] = ()) -> None: ...

    def mark_created(self, kind: str) -> None: ...

    def mine(self) -> list[Mapping[str, Any]]:
        return [body for body in self.cloud.things.values() if self.context.owner in body["stamp"]]


def ensure(scope: ToyScope) -> Outcome:
    mine = scope.mine()
    if mine:
        scope.context.ledger.record("thing", "thing", mine[0]["id"])
        return Done()
    return Create("thing", ("thing",), lambda: {"thing": scope.cloud.create(Stamp(scope.context.owner, "thing"))})


def remove(scope: ToyScope) -> Outcome:
    for body in scope.mine():
        del scope.cloud.things[body["id"]]
    return Done()


class ToyCredentials:
    def __init__(self, cloud: ToyCloud) -> None:
        self.cloud = cloud
        self.fault: Exception | None = None
        self.forgotten = 0

    def recorded_owner(self, obj: Mapping[str, Any], ledger: Ledger) -> str | None:
        things = (self.cloud.things.get(record.id) for record in ledger.records.values())
        return next((str(thing["stamp"]).split(":")[1] for thing in things if thing), None)

    def authenticate(self, obj: Mapping[str, Any]) -> None:
        if self.fault:
            raise self.fault

    def describe(self, obj: Mapping[str, Any], deps: Dependencies) -> str:
        return "Secret default/x, cloud 'toy'"

    def forget(self, obj: Mapping[str, Any]) -> bool:
        self.forgotten += 1
        return False

    def cloud_key(self, obj: Mapping[str, Any], deps: Dependencies) -> CloudKey | None:
        return CloudKey("toy", "192.0.2.1")

    def is_shared(self, obj: Mapping[str, Any], deps: Dependencies) -> bool:
        return False

    def resolve_cloud(self, obj: Mapping[str, Any], deps: Dependencies) -> None:
        """Return True."""


class ToyController:
    kind = KIND
    name = "toy"
    plan = Plan((Step("ThingReady", ensure, remove),))
    routes = ()
    concurrency = 1

    def __init__(self, cloud: ToyCloud) -> None:
        self.cloud = cloud
        self.stop: Skip | None = None
        self.credentials = ToyCredentials(cloud)

    def precondition(self, obj: Mapping[str, Any], deps: Dependencies) -> Precondition:
        return self.stop or Continue()

    def open(self, context: ReconcileContext) -> ToyScope:
        return ToyScope(context, self.cloud)

    def is_recorded(self, scope: ToyScope, results: Results) -> bool:
        return all_done(results)

    def report(self, scope: ToyScope, results: Results) -> Report:
        is_done = isinstance(results["ThingReady"], Done)
        spec = {"size": 1} if is_done and not scope.context.is_deleting else {}
        return Report(status={"ready": is_done}, spec=spec, spec_step="ThingReady")


class ToyEnvironment:
    """The API server, the cloud, and a manager that can be restarted."""

    def __init__(self) -> None:
        self.kube, self.clock, self.cloud, self.events = FakeKube(), FakeClock(), ToyCloud(), RecordedEvents()
        self.kube.put(KIND, {"metadata": {"name": "a"}, "spec": {}})
        self.start()

    def start(self, settings: Settings = Settings()) -> None:  # noqa: B008 - immutable
        self.store = Store()
        deps = Dependencies(self.kube, self.store, self.events, self.clock, settings)  # type: ignore[arg-type]
        self.controller = ToyController(self.cloud)
        self.manager: Reconciler[ToyScope] = Reconciler(self.controller, deps)

    def reconcile(self) -> Any:
        obj = self.kube.get(*KEY)
        if obj:
            self.store.apply(KIND, "MODIFIED", obj)
        return self.manager.reconcile(KEY)

    @property
    def obj(self) -> dict[str, Any]:
        found = self.kube.get(*KEY)
        assert found is not None
        return found

    def condition(self, type_: str) -> dict[str, Any]:
        return next(c for c in self.obj["status"]["conditions"] if c["type"] == type_)

    def delete(self) -> None:
        self.kube.delete(*KEY)
