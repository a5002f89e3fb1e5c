"""Reconciles one object: precondition, credentials, owner id, steps, one status write.

The specifics of a kind are in its :class:`capo.engine.context.Controller`; this is what all kinds share. It is run by
``worker.py`` in a thread, one reconcile per object at a time.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from capo import caches, names
from capo.engine import abandoning, conditions, create_events, overall, refused_writes
from capo.engine.backoff import Backoff, Guard, pause_s
from capo.engine.beginnings import Beginnings, finalizers
from capo.engine.conditions import Condition
from capo.engine.contention import Contention
from capo.engine.context import (
    Continue,
    Controller,
    Dependencies,
    ReconcileContext,
    RemoveFinalizer,
    Report,
    Scope,
    Skip,
)
from capo.engine.create import CreateProtocol, deletion_window_left_s
from capo.engine.seen import Seen
from capo.engine.steps import (
    Create,
    Failed,
    NotObserved,
    Results,
    Wait,
    all_done,
    describe,
    walk_backward,
    walk_forward,
)
from capo.engine.worker import Result
from capo.engine.writer import ObjectReplaced, Writer, difference
from capo.errors import CapoError, IdentityError, NotAuthorizedError, NotYetObserved
from capo.kube.errors import Denied, Invalid, KubeError
from capo.kube.kinds import Key
from capo.ledger import Ledger
from capo.shares import CloudKey

log = logging.getLogger(__name__)
S = TypeVar("S", bound=Scope)


class Reconciler(Generic[S]):
    """Reconciles the objects of one controller; the engine's workers call :meth:`reconcile`."""

    def __init__(self, controller: Controller[S], deps: Dependencies) -> None:
        self.controller = controller
        self.deps = deps
        self.name = controller.name
        self.kind = controller.kind
        self.routes = controller.routes
        self.concurrency = controller.concurrency
        self._credentials = controller.credentials
        self._backoff = Backoff(deps.clock)
        self._contention = Contention()
        self._seen = Seen()
        deps.store.on_reset(self._seen.distrust)
        self._auth_failures: dict[Key, int] = {}
        self._beginnings = Beginnings(self.kind, controller.plan.needs, self._credentials, deps, self._seen)
        caches.register(
            "passes",
            self,
            lambda self: max(len(self._backoff), len(self._contention), len(self._seen), len(self._auth_failures)),
        )

    def cloud_key(self, key: Key) -> CloudKey | None:
        """Return the budgets of the cloud that a key's reconcile uses; None: not resolved yet."""
        obj = self.deps.store.get(*key)
        return self._credentials.cloud_key(obj, self.deps) if obj and self._credentials else CloudKey()

    def resolve_cloud(self, key: Key) -> bool:
        """Resolve the cloud of a key; return whether that succeeded. If not, the reconcile reports why."""
        obj = self.deps.store.get(*key)
        if obj is None:
            return False
        try:
            if self._credentials:
                self._credentials.resolve_cloud(obj, self.deps)
        except CapoError:
            return False
        return self.cloud_key(key) is not None

    def reconcile(self, key: Key) -> Result:
        """Reconcile one object; errors that may heal without a change of the program are reported, not raised."""
        obj = self.deps.store.get(*key)
        if obj is None or _is_moved(obj) or not self.deps.is_selected(obj):
            self._forget(key)  # a relabelled object may still be queued here: it is another manager's now
            return Result()
        if obj["metadata"].get("deletionTimestamp") and names.finalizer(key.kind.kind) not in finalizers(obj):
            return Result()
        writer = Writer(self.deps, key, obj, self._contention)
        try:
            result = self._pass(key, writer)
        except ObjectReplaced as gone:
            log.info("Reconcile ended: its object is gone", extra={"key": str(key), "why": str(gone)})
            return Result()
        except KubeError as error:
            self._show_refusal(writer, error)
            raise
        if writer.is_released:
            self._forget(key)  # no event follows a write of ours that completes the deletion
            return Result()
        # The watch event of an edit that our own answer already contained queues nothing.
        return replace(result, requeue_after_s=0.0) if writer.is_outdated or writer.has_new_metadata else result

    def _forget(self, key: Key) -> None:
        self._backoff.forget(key)
        self._contention.forget(key)
        self._seen.forget(key)
        self._auth_failures.pop(key, None)

    def _pass(self, key: Key, writer: Writer) -> Result:
        precondition = self.controller.precondition(writer.obj, self.deps)
        match precondition:
            case Skip():
                self._show(writer, precondition.conditions)
                return Result(requeue_after_s=precondition.after_s)
            case RemoveFinalizer():
                writer.remove_finalizer()
                return Result()
            case Continue():
                pass
        if abandoning.is_asked_for(writer.obj):
            return self._abandon(writer)
        try:
            context = self._beginnings.begin(key, writer, precondition)
            if context is None:
                return Result()
            scope = self.controller.open(context)
        except (CapoError, NotYetObserved) as error:
            # NotYetObserved: the poller requeues the object when it has listed.
            shown = precondition.conditions
            return self._refused(key, writer, error, shown) if isinstance(error, CapoError) else Result()
        self._auth_failures.pop(key, None)
        try:
            return self._delete(context, scope, writer) if context.is_deleting else self._ensure(context, scope, writer)
        finally:
            self._seen.keep(key, context.obj, context.ledger)

    def _abandon(self, writer: Writer) -> Result:
        """Remove the finalizer although resources may be left in the cloud: an admin asked for it."""
        farewell = abandoning.farewell(writer.obj)
        writer.remove_finalizer()
        log.warning("Abandoned the resources of an object", extra={"key": str(writer.key), "left": farewell})
        self.deps.events.emit(writer.obj, "Warning", "ResourcesAbandoned", farewell)
        return Result()

    def _emit_way_out(self, writer: Writer) -> None:
        now_s = self.deps.clock.now()
        waited_s = now_s - self._seen.deletion_s(writer.key, writer.obj, now_s)
        if told := abandoning.way_out(writer.obj, waited_s=waited_s):
            self.deps.events.emit(writer.obj, "Warning", "DeletionBlocked", told)

    def _refused(self, key: Key, writer: Writer, error: CapoError, before: Sequence[Condition]) -> Result:
        """Write why the reconcile could not begin, beside the conditions of the precondition."""
        error = self._named(writer.obj, error)
        if self._credentials and self._credentials.forget(writer.obj) and _is_of_credentials(error):
            return Result(requeue_after_s=0.0)
        failures = self._auth_failures[key] = self._auth_failures.get(key, 0) + 1
        shown = overall.from_refusal(error)
        if self._show(writer, [*before, *shown]):
            self.deps.events.emit(writer.obj, "Warning", error.reason, error.sentence)
        self._emit_way_out(writer)
        return Result(requeue_after_s=pause_s(error, failures))

    def _ensure(self, context: ReconcileContext, scope: S, writer: Writer) -> Result:
        protocol = self._protocol(context, scope, writer)
        guard = self._backoff.guard_of(context.key, writer.obj)
        walked = walk_forward(self.controller.plan, scope, create=protocol.carry_out, guard=guard)
        context.ledger.ahead.clear()  # they were not sent
        results = self._all_named(writer.obj, walked)
        report = self.controller.report(scope, results)
        held_s = None
        self._note_waiting(context)
        is_outdated = self._forget_refused(writer, results, guard)
        is_expected = report.silent_s > 0 and not _has_failed(results)
        is_silent = _only_looks(context, writer, results) or (
            (is_outdated or is_expected) and _is_saved(context, writer)
        )
        if not is_silent and (undone := _spec_not_written(writer, report)):
            results = {**results, report.spec_step: undone}
            report = self.controller.report(scope, results)
        due_s = self._backoff.note(context.key, writer.as_seen(), results, guard)
        if not is_silent:
            held_s = self._write(context, writer, results, report)
        if context.is_taken_over and self.controller.is_recorded(scope, results):
            self._settle_takeover(context, writer)
        if is_outdated:
            self._backoff.forget(context.key)
            return Result(requeue_after_s=0.0)
        self._after_failures(writer, results, guard)
        speaks_s = report.silent_s if is_silent and is_expected else None
        after_s = _soonest(report.after_s, held_s, speaks_s, self._waiting_due_s(context))
        return Result(requeue_after_s=_soonest(due_s, after_s, *_waits(results)))

    def _delete(self, context: ReconcileContext, scope: S, writer: Writer) -> Result:
        _keep_location(context, writer)
        guard = self._backoff.guard_of(context.key, writer.obj)
        results = self._all_named(writer.obj, walk_backward(self.controller.plan, scope, guard=guard))
        if context.is_taken_over and self.controller.is_recorded(scope, results):
            self._settle_takeover(context, writer)
        due_s = self._backoff.note(context.key, writer.as_seen(), results, guard)
        left_s = deletion_window_left_s(
            context.ledger, now_s=self.deps.clock.now(), window_s=self.deps.ambiguous_window_s
        )
        if all_done(results) and left_s <= 0:
            self._show_end(context, writer)
            writer.remove_finalizer()
            return Result()
        report = self.controller.report(scope, results)
        has_failed = _has_failed(results)
        if self._forget_refused(writer, results, guard):
            self._backoff.forget(context.key)
            due_s = 0.0
        is_silent = (report.silent_s > 0 and not has_failed) or _only_looks(context, writer, results)
        has_waited = self._note_waiting(context)
        held_s = None
        if has_waited or not is_silent:
            held_s = self._write(context, writer, results, report, is_trifling=not has_waited)
        self._after_failures(writer, results, guard)
        if has_failed:
            self._emit_way_out(writer)
        speaks_s = report.silent_s if is_silent and report.silent_s > 0 else None
        # An expired window does not requeue: the step itself waits for what is left.
        window_s = left_s if left_s > 0 else None
        noted_s = self._waiting_due_s(context)
        after_s = _soonest(report.after_s, window_s, noted_s, speaks_s, held_s)
        return Result(requeue_after_s=_soonest(due_s, after_s, *_waits(results)))

    def _show_end(self, context: ReconcileContext, writer: Writer) -> None:
        """Record that nothing is left in the cloud, if finalizers of other controllers keep the object."""
        others = [name for name in finalizers(writer.obj) if name != names.finalizer(context.key.kind.kind)]
        if not others:
            return
        text = f"all cloud resources are deleted; waiting for other finalizers: {', '.join(sorted(others))}"
        ready = Condition(conditions.READY, "False", "Deleting", text)

        def wanted(status: Mapping[str, Any]) -> Mapping[str, Any]:
            merged = self._merged(writer, status, [ready], dropped=self.controller.plan.needs)
            nothing = {**dict.fromkeys(status.get("resources") or {}), **Ledger().to_status()}
            return {"conditions": merged, **({"resources": nothing} if "resources" in status else {})}

        with contextlib.suppress(Invalid, Denied):  # a status that cannot be stored does not keep the object
            writer.status(wanted)

    def _note_waiting(self, context: ReconcileContext) -> bool:
        now_s, window_s = self.deps.clock.now(), self.deps.ambiguous_window_s
        return context.ledger.note_waiting(now_s, window_s=window_s)

    def _waiting_due_s(self, context: ReconcileContext) -> float | None:
        now_s, window_s = self.deps.clock.now(), self.deps.ambiguous_window_s
        return context.ledger.waiting_due_s(now_s, window_s=window_s)

    def _settle_takeover(self, context: ReconcileContext, writer: Writer) -> None:
        """Store the records and mark the takeover complete: from now on records and stamps decide."""
        writer.ledger(context.ledger, context.pinned)
        writer.settle_takeover()

    def _all_named(self, obj: Mapping[str, Any], results: Results) -> Results:
        return {
            step: Failed(self._named(obj, result.error)) if isinstance(result, Failed) else result
            for step, result in results.items()
        }

    def _named(self, obj: Mapping[str, Any], error: CapoError) -> CapoError:
        """Return an error as the object shows it; with the place of the credentials, which may be others', too."""
        if self._credentials is None:
            return error
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        error = overall.for_user(error, key, is_shared=self._credentials.is_shared(obj, self.deps))
        is_theirs = isinstance(error, IdentityError | NotAuthorizedError) and error.resource is None
        return error.about(self._credentials.describe(obj, self.deps)) if is_theirs else error

    def _protocol(self, context: ReconcileContext, scope: S, writer: Writer) -> CreateProtocol:
        def made(create: Create, outcome: Mapping[str, Mapping[str, Any]] | CapoError) -> None:
            self._announce(writer.obj, create, outcome)

        saved: dict[str, Any] = {}

        def save() -> None:
            writer.ledger(context.ledger, context.pinned)
            saved.update(context.pinned)

        return CreateProtocol(
            context.ledger,
            scope.cache_writer,
            save,
            self.deps.clock,
            context.started_s,
            self.deps.ambiguous_window_s,
            made,
            lambda: context.pinned == saved,
        )

    def _write(
        self, context: ReconcileContext, writer: Writer, results: Results, report: Report, *, is_trifling: bool = False
    ) -> float | None:
        """Write the outcome of a reconcile.

        Args:
            is_trifling: a change of the records alone is not worth a write.
        """
        plan, deleting = self.controller.plan, context.is_deleting
        ready = overall.deleting(plan, results) if deleting else conditions.summary(plan, results)
        steps = conditions.from_removal(plan, results) if deleting else conditions.from_results(plan, results)
        shown = [*overall.authentication(results), *steps, *([ready] if ready else []), *report.conditions]

        def wanted(status: Mapping[str, Any]) -> Mapping[str, Any]:
            merged = self._merged(writer, status, shown, dropped=report.dropped)
            own = {**context.pinned, **report.status, "conditions": merged}
            resources = {**own.pop("resources", {}), **context.ledger.to_status()}
            is_blank = not any(resources.values()) and "resources" not in status
            # A removed record is not worth a write: that the resource is gone is found again.
            is_known = context.ledger.records.keys() <= Ledger.read(status).records.keys()
            is_trifle = is_trifling and is_known and not difference(status, own)
            return own if is_blank or is_trifle else {**own, "resources": resources}

        held_s = writer.report(wanted)
        log.debug("Pass ended", extra={"key": str(context.key), "steps": {n: describe(r) for n, r in results.items()}})
        return held_s

    def _after_failures(self, writer: Writer, results: Results, guard: Guard) -> None:
        for step, result in results.items():
            if isinstance(result, Failed) and step not in guard.resting:
                self.deps.events.emit(writer.obj, "Warning", result.error.reason, result.error.sentence)

    def _forget_refused(self, writer: Writer, results: Results, guard: Guard) -> bool:
        """Invalidate credentials that a step's request refuted; return whether newer ones may exist."""
        is_refused = any(
            isinstance(result, Failed) and step not in guard.resting and _is_of_credentials(result.error)
            for step, result in results.items()
        )
        return is_refused and self._credentials is not None and self._credentials.forget(writer.obj)

    def _announce(
        self, obj: Mapping[str, Any], create: Create, outcome: Mapping[str, Mapping[str, Any]] | CapoError
    ) -> None:
        if isinstance(outcome, CapoError):
            self.deps.events.emit(obj, "Warning", *create_events.failed(create.kind, outcome))
            return
        for role, body in outcome.items():
            self.deps.events.emit(obj, "Normal", *create_events.succeeded(create.kind, role, body))

    def _show_refusal(self, writer: Writer, error: KubeError) -> None:
        """Write why a reconcile ends early. A True Ready stays: nothing proved otherwise."""
        if not refused_writes.is_one(error):
            return
        shown = refused_writes.condition(error)
        self.deps.events.emit(writer.obj, "Warning", shown.reason, shown.message)
        if not conditions.is_true((writer.obj.get("status") or {}).get("conditions") or (), conditions.READY):
            with contextlib.suppress(KubeError, ObjectReplaced):
                self._show(writer, [shown])

    def _show(self, writer: Writer, shown: Any) -> bool:
        """Write conditions alone; return whether anything changed."""
        if not shown:
            return False
        before = writer.obj
        writer.status(lambda status: {"conditions": self._merged(writer, status, shown)})
        return writer.obj is not before

    def _merged(
        self, writer: Writer, status: Mapping[str, Any], shown: Iterable[Condition], *, dropped: Iterable[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the conditions of a status merged with the shown ones."""
        now_s, generation = self.deps.clock.wall(), writer.generation
        return conditions.merged(
            status.get("conditions") or (), shown, dropped=dropped, now_s=now_s, generation=generation
        )


def _is_moved(obj: Mapping[str, Any]) -> bool:
    return names.DELETE_FOR_MOVE_ANNOTATION in (obj["metadata"].get("annotations") or {})


def _keep_location(context: ReconcileContext, writer: Writer) -> None:
    """Store the cloud location before the deletion removes the objects that prove it."""
    location = context.ledger.location
    if location is None or not (context.ledger.has_entries or context.is_taken_over):
        return
    if location != Ledger.read(writer.obj.get("status")).location:
        writer.status(lambda _: {"resources": {"location": location.to_status()}})


def _spec_not_written(writer: Writer, report: Report) -> Failed | NotObserved | None:
    """Write the fields of spec; return the result of the step they belong to if they were not written."""
    if not report.spec:
        return None
    try:
        return None if writer.spec(report.spec) else NotObserved()
    except KubeError as error:
        if not refused_writes.is_one(error):
            raise
        return refused_writes.failure(error, f"spec {json.dumps(report.spec)}")


def _only_looks(context: ReconcileContext, writer: Writer, results: Results) -> bool:
    """Return whether a reconcile created nothing and only requested lists; the next one has the answer.

    The next one works out what it pinned again: nothing was created from it. A list that fails or takes too long counts
    as a failure.
    """
    is_looking = any(isinstance(result, NotObserved) for result in results.values())
    is_telling = any(isinstance(result, Wait | Failed) for result in results.values())
    return is_looking and not is_telling and _is_saved(context, writer)


def _has_failed(results: Results) -> bool:
    return any(isinstance(result, Failed) for result in results.values())


def _is_saved(context: ReconcileContext, writer: Writer) -> bool:
    """Return whether the object's status has everything that a reconcile recorded."""
    saved = Ledger.read(writer.obj.get("status"))
    saved.location = context.ledger.location  # proven again in the next reconcile, without a request
    return bool(context.ledger == saved)


def _is_of_credentials(error: CapoError) -> bool:
    return isinstance(error, IdentityError | NotAuthorizedError)


def _waits(results: Results) -> list[float | None]:
    return [result.after_s for result in results.values() if isinstance(result, Wait)]


def _soonest(*seconds: float | None) -> float | None:
    return min((s for s in seconds if s is not None), default=None)
