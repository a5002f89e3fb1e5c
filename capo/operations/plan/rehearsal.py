"""Runs the controllers in virtual time until nothing is left to do; nothing sleeps, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from api.v1beta2 import OpenStackCluster
from capo.clock import SystemClock
from capo.engine.context import Dependencies
from capo.engine.queue import CONFLICT_S
from capo.engine.reconciler import Reconciler
from capo.engine.steps import Plan, Step
from capo.engine.store import Change as StoreChange
from capo.engine.store import Store
from capo.engine.worker import KeyReconciler, Result
from capo.errors import CapoError
from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.errors import Conflict, KubeError
from capo.kube.events import Events
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_FLOATING_IP_POOL, OPENSTACK_MACHINE_TEMPLATE, Key, Kind
from capo.operations.errors import OperatorError
from capo.operations.plan.changes import Recorder
from capo.operations.plan.cloud import PlannedClouds
from capo.operations.plan.kubernetes import PlannedKube
from capo.settings import Settings
from controllers import all_controllers
from controllers.openstackcluster import bastion_plan

QUIET_S: Final = 700.0
"""The plan is complete when nothing was written for so long: longer than each window and each full list."""
MAX_RECONCILES: Final = 20_000
MAX_S: Final = 4 * 3600.0
_UNSCOPED: Final = frozenset({OPENSTACK_FLOATING_IP_POOL})
"""Kinds whose objects serve several clusters: they are reconciled when an object of the plan wakes them."""
_SILENT: Final = frozenset({OPENSTACK_MACHINE_TEMPLATE})
"""Kinds whose reconciles write a status alone."""


class VirtualClock:
    """A clock that jumps to the next moment at which something is due."""

    def __init__(self) -> None:
        self.now_s = self.start_s = SystemClock().now()

    def now(self) -> float:
        """Return steady seconds."""
        return self.now_s

    def wall(self) -> float:
        """Return seconds since 1970."""
        return self.now_s


class PlannedEvents:
    """Takes Events, and writes none."""

    def emit(self, obj: Object, type_: str, reason: str, message: str, action: str | None = None) -> None:
        """Take an Event: the changes that it reports are in the plan."""


class Rehearsal:
    """The controllers of one plan.

    Args:
        kube: the API server of the plan, with all objects that are watched.
        is_planned: whether an object belongs to the plan; others are not reconciled.
        settings: of requests to clouds.
    """

    def __init__(
        self,
        kube: PlannedKube,
        recorder: Recorder,
        clock: VirtualClock,
        *,
        is_planned: Callable[[Kind, Object], bool],
        settings: Settings,
    ) -> None:
        self.kube, self.recorder, self.clock = kube, recorder, clock
        self._is_planned = is_planned
        self.store = Store()
        self._due: dict[Key, float] = {}
        self._written_s = clock.now()
        recorder.on_change = self._mark_written
        deps = Dependencies(cast(Kube, kube), self.store, cast(Events, PlannedEvents()), clock, Settings())
        self.clouds = PlannedClouds(clock, self._wake, recorder=recorder, settings=settings)
        self.controllers: Mapping[Kind, KeyReconciler] = {
            each.kind: each for each in all_controllers(deps, self._wake, self.clouds) if each.kind not in _SILENT
        }
        for each in self.controllers.values():
            if isinstance(each, Reconciler):
                each.controller = _Traced(each.controller, recorder)
        self._sync()
        self.store.listen(self._changed)

    @staticmethod
    def watched() -> tuple[Kind, ...]:
        """Return the kinds that the controllers watch."""
        deps = Dependencies(cast(Kube, None), Store(), cast(Events, None), VirtualClock(), Settings())
        clouds = PlannedClouds(deps.clock, _ignore, recorder=Recorder(), settings=deps.settings)
        made = all_controllers(deps, _ignore, clouds)
        kinds = [kind for each in made for kind in (each.kind, *(route.kind for route in each.routes))]
        return tuple(dict.fromkeys(kinds))

    def wake(self, keys: Iterable[Key]) -> None:
        """Reconcile objects."""
        for key in keys:
            self._wake(key)

    def run(self, *, core: Callable[[], bool] = lambda: False) -> None:
        """Run reconciles and lists until nothing was written for a while.

        Args:
            core: lets Cluster API's managers act; returns whether they did.

        Raises:
            OperatorError: a read failed, or the writes do not end.
        """
        for _ in range(MAX_RECONCILES):
            self._sync()
            self._check()
            if core() or self._list() or self._reconcile():
                continue
            next_s = min(
                [*self._due.values(), *(each.next_due_s() for each in self.clouds.pollers)], default=float("inf")
            )
            if next_s > self._written_s + QUIET_S:
                return
            self.clock.now_s = max(self.clock.now_s, next_s)
            if self.clock.now_s > self.clock.start_s + MAX_S:
                break
        raise OperatorError("the plan does not come to an end: the controllers keep writing")

    def _check(self) -> None:
        """Raise the failure of a read, if there was one."""
        failure = self.recorder.failure
        if failure is not None:
            raise failure

    def _list(self) -> bool:
        due = [(poller, kind) for poller in self.clouds.pollers for kind in poller.due()]
        for poller, kind in due:
            poller.run(kind)
        return bool(due)

    def _reconcile(self) -> bool:
        due = {key: at_s for key, at_s in self._due.items() if at_s <= self.clock.now()}
        if not due:
            return False
        key = min(due, key=lambda key: (due[key], key.kind.kind, key.namespace, key.name))
        del self._due[key]
        self.recorder.actor, self.recorder.step = key, ""
        since = len(self.recorder.changes)
        result = self._result(key)
        if key.kind == OPENSTACK_CLUSTER and (why := _replacement(self.kube.objects.get(key) or {})):
            self.recorder.explain(since, bastion_plan.CONDITION, why)
        self.recorder.actor, self.recorder.step = None, ""
        if result.requeue_after_s is not None:
            self._later(key, result.requeue_after_s)
        return True

    def _result(self, key: Key) -> Result:
        try:
            result = self.controllers[key.kind].reconcile(key)
        except (Conflict, KubeError):
            self._check()
            return Result(requeue_after_s=CONFLICT_S)
        if isinstance(result.error, CapoError):
            return Result(requeue_after_s=CONFLICT_S)
        if result.error is not None:
            raise result.error
        return result

    def _later(self, key: Key, seconds: float) -> None:
        at_s = self.clock.now() + max(seconds, 0.001)
        self._due[key] = min(self._due.get(key, at_s), at_s)

    def _wake(self, key: Any) -> None:
        if key.kind in self.controllers and self._belongs(key):
            self._due[key] = self.clock.now()

    def _belongs(self, key: Key) -> bool:
        obj = self.kube.objects.get(key)
        return key.kind in _UNSCOPED or obj is None or self._is_planned(key.kind, obj)

    def _mark_written(self) -> None:
        self._written_s = self.clock.now()

    def _sync(self) -> None:
        """Update the store with what changed in the API server, as the watches do."""
        for key in self.kube.take_changed():
            obj, known = self.kube.objects.get(key), self.store.get(*key)
            if obj is not None:
                self.store.apply(key.kind, "MODIFIED", obj)
            elif known is not None:
                self.store.apply(key.kind, "DELETED", known)

    def _changed(self, change: StoreChange) -> None:
        if change.by != change.key:
            self._wake(change.key)
        for controller in self.controllers.values():
            for route in controller.routes:
                if route.kind == change.key.kind:
                    for namespace, name in route.map(dict(change.obj), self.store):
                        self._wake(Key(controller.kind, namespace, name))


class _Traced:
    """A controller that notes in the recorder which of its steps runs."""

    def __init__(self, controller: Any, recorder: Recorder) -> None:
        self._controller = controller
        self.plan = Plan(tuple(_traced(step, recorder, controller.plan) for step in controller.plan.steps))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._controller, name)


def _traced(step: Step[Any], recorder: Recorder, plan: Plan[Any]) -> Step[Any]:
    def noted(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def run(scope: Any) -> Any:
            recorder.step = step.condition
            return function(scope)

        return run

    return replace(step, ensure=noted(step.ensure), remove=noted(step.remove), needs=plan.needs[step.condition])


def _replacement(obj: Object) -> str:
    """Return why the bastion of a cluster is being replaced; empty if it is not."""
    known = OpenStackCluster.model_validate(obj).status.bastion_replacement if obj else None
    return f"replaced: {bastion_plan.words(known)}" if known else ""


def _ignore(_key: object) -> None:
    """Wake nothing."""
