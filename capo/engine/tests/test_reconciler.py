"""Reconciles of the toy controller: writes, requeues, conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from capo.engine.conditions import Condition
from capo.engine.context import Report, Skip
from capo.engine.reconciler import Reconciler
from capo.engine.steps import Done, Outcome, Plan, Results, Step, Wait
from capo.engine.tests.toy import KEY, ToyController, ToyEnvironment, ToyScope, ensure, remove
from capo.errors import IdentityError, InvalidSpecError, NotAuthorizedError, NotYetObserved, QuotaExceededError
from capo.kube.errors import Denied, Invalid, KubeError
from capo.kube.kinds import Key
from capo.shares import CloudKey


def test_a_resource_is_made_recorded_and_shown_in_four_writes(world: ToyEnvironment) -> None:
    world.reconcile()

    assert len(world.cloud.things) == 1
    assert world.obj["status"]["resources"] == {
        "pending": [],
        "records": [{"kind": "thing", "role": "thing", "id": "id-1"}],
    }
    assert world.condition("ThingReady")["status"] == "True"
    assert world.condition("Ready")["status"] == "True"
    assert [verb for verb, *_ in world.kube.writes] == ["patch", "patch/status", "patch", "patch/status"]


def test_a_second_pass_over_a_settled_object_writes_nothing(world: ToyEnvironment) -> None:
    world.reconcile()
    world.kube.writes.clear()

    world.reconcile()

    assert world.kube.writes == []


def test_a_pass_that_made_nothing_and_still_looks_writes_nothing_more_than_the_stamp(world: ToyEnvironment) -> None:
    def pinning(scope: ToyScope) -> Outcome:
        scope.context.pinned["resolved"] = {"flavor": "m1"}
        return Done()

    unknown = [NotYetObserved("thing")]

    def looking(scope: ToyScope) -> Outcome:
        if unknown:
            raise unknown.pop()
        return ensure(scope)

    world.controller.plan = Plan((Step("Resolved", pinning, remove), Step("ThingReady", looking, remove)))

    world.reconcile()

    assert [verb for verb, *_ in world.kube.writes] == ["patch"]
    world.reconcile()
    assert world.obj["status"]["resolved"] == {"flavor": "m1"}
    assert world.condition("Ready")["status"] == "True"


def test_what_a_pass_made_and_what_fails_in_it_is_written_while_another_step_looks(world: ToyEnvironment) -> None:
    def looking(_: ToyScope) -> Outcome:
        raise NotYetObserved("other")

    world.controller.plan = Plan((Step("ThingReady", ensure, remove), Step("Other", looking, remove)))

    world.reconcile()

    assert [record["id"] for record in world.obj["status"]["resources"]["records"]] == ["id-1"]
    assert world.condition("ThingReady")["status"] == "True"

    world.cloud.things.clear()
    world.cloud.fault = QuotaExceededError("none left")
    world.reconcile()
    assert world.condition("ThingReady")["reason"] == "QuotaExceeded"


def test_the_spec_is_written_before_the_status_that_speaks_of_it(world: ToyEnvironment) -> None:
    world.reconcile()

    verbs = [verb for verb, *_ in world.kube.writes]
    assert verbs.index("patch/status") < len(verbs) - 1
    assert verbs[-2:] == ["patch", "patch/status"]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Invalid("spec.size: cannot change", status=422), id="a rule"),
        pytest.param(Denied("admission webhook denied the request", status=403), id="a policy"),
        pytest.param(KubeError("failed calling webhook", status=500), id="a webhook that is down"),
    ],
)
def test_a_spec_that_the_api_server_refuses_is_told_and_tried_again(world: ToyEnvironment, error: KubeError) -> None:
    is_refused = True

    def refuse(_verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        if is_refused and "spec" in body:
            raise error

    world.kube.before_write = refuse
    result = world.reconcile()

    assert result.error is None
    assert result.requeue_after_s is not None
    assert world.condition("ThingReady")["reason"] == "WriteRefused"
    assert f'spec {{"size": 1}}: {error}' in world.condition("Ready")["message"]
    assert world.obj["status"]["ready"] is False
    is_refused = False
    world.clock.advance(result.requeue_after_s)
    world.reconcile()

    assert world.condition("Ready")["status"] == "True"
    assert world.obj["spec"]["size"] == 1
    assert world.cloud.calls == 1


@pytest.mark.parametrize("status", [None, 401, 404, 410, 429, 503])
def test_a_spec_that_is_not_refused_but_not_written_ends_the_pass(world: ToyEnvironment, status: int | None) -> None:
    def fail(_verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        if "spec" in body:
            raise KubeError("not now", status=status)

    world.kube.before_write = fail

    with pytest.raises(KubeError):
        world.reconcile()
    assert "WriteRefused" not in str(world.obj["status"])


def test_a_spec_that_somebody_edits_during_a_pass_is_left_to_the_next_one(world: ToyEnvironment) -> None:
    def edit(_verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        if "spec" in body and "size" not in (world.obj.get("spec") or {}):
            world.kube.edit(*KEY, {"spec": {"size": 7}})

    world.kube.before_write = edit
    result = world.reconcile()

    assert result.requeue_after_s == 0
    assert world.obj["spec"]["size"] == 7
    assert world.obj["status"].get("ready") is not True


def test_a_status_that_the_api_server_refuses_is_told_in_a_condition(world: ToyEnvironment) -> None:
    def refuse(_verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        if "resources" in body.get("status", {}):
            raise Invalid("status.resources: unknown field", status=422)

    world.kube.before_write = refuse
    with pytest.raises(Invalid):
        world.reconcile()

    assert world.condition("Ready")["reason"] == "WriteRefused"
    assert "status.resources: unknown field" in world.condition("Ready")["message"]
    assert world.cloud.calls == 0


def test_what_was_ready_stays_so_when_a_write_is_refused(world: ToyEnvironment) -> None:
    world.reconcile()
    world.cloud.things.clear()

    def refuse(*_: object) -> None:
        raise Denied("a policy is broken", status=403)

    world.kube.before_write = refuse
    with pytest.raises(Denied):
        world.reconcile()

    assert world.condition("Ready")["status"] == "True"
    assert "WriteRefused" in world.events.reasons()


def test_an_object_whose_credentials_never_worked_carries_no_finalizer(world: ToyEnvironment) -> None:
    world.controller.credentials.fault = IdentityError("Secret default/x does not exist")

    result = world.reconcile()

    assert not world.obj["metadata"].get("finalizers")
    assert world.condition("OpenStackAuthenticationSucceeded")["reason"] == "OpenStackAuthenticationFailed"
    assert "Secret default/x does not exist" in world.condition("Ready")["message"]
    assert result.requeue_after_s == pytest.approx(10)
    assert world.controller.credentials.forgotten == 1


def test_credentials_that_are_refused_later_are_read_anew(world: ToyEnvironment) -> None:
    world.cloud.fault = NotAuthorizedError("The request you have made requires authentication.", status=401)

    result = world.reconcile()

    assert world.condition("OpenStackAuthenticationSucceeded")["status"] == "False"
    assert "[Secret default/x, cloud 'toy']" in world.condition("Ready")["message"]
    assert world.cloud.fault.resource is None
    assert world.controller.credentials.forgotten == 1
    assert result.requeue_after_s == pytest.approx(10, rel=0.11)


def test_a_stopped_object_shows_why_and_does_nothing_else(world: ToyEnvironment) -> None:
    world.controller.stop = Skip([Condition("Paused", "True", "Paused", "the annotation is set")])

    world.reconcile()

    assert world.cloud.calls == 0
    assert [c["type"] for c in world.obj["status"]["conditions"]] == ["Paused"]
    assert not world.obj["metadata"].get("finalizers")


def test_a_stop_without_conditions_writes_nothing_at_all(world: ToyEnvironment) -> None:
    world.controller.stop = Skip()

    world.reconcile()

    assert world.kube.writes == []


def test_a_failing_object_recovers_when_the_cause_is_mended(world: ToyEnvironment) -> None:
    world.cloud.fault = QuotaExceededError("Quota exceeded for instances", status=403)
    world.reconcile()
    world.cloud.fault = None

    world.clock.advance(3)
    world.reconcile()

    assert world.condition("Ready")["status"] == "True"


def test_an_edit_of_the_spec_ends_the_rest_of_a_terminal_failure(world: ToyEnvironment) -> None:
    world.cloud.fault = InvalidSpecError("bad flavor")
    world.reconcile()
    world.reconcile()
    assert world.cloud.calls == 1
    world.cloud.fault = None

    world.kube.edit(*KEY, {"spec": {"flavor": "good"}})
    world.reconcile()

    assert len(world.cloud.things) == 1


def test_events_tell_of_creates_and_failures_once(world: ToyEnvironment) -> None:
    world.cloud.fault = QuotaExceededError("Quota exceeded", status=403)
    for _ in range(5):
        world.reconcile()

    assert world.events.reasons() == ["FailedCreateThing", "QuotaExceeded"]


def test_an_object_that_vanished_during_a_pass_ends_it_quietly(world: ToyEnvironment) -> None:
    def vanish(_verb: str, key: Key, _body: Mapping[str, Any]) -> None:
        world.kube.objects.pop(key, None)

    world.kube.before_write = vanish

    assert world.reconcile().error is None


def test_waits_ask_for_the_earliest_look(world: ToyEnvironment) -> None:
    world.controller.plan = Plan(
        (
            Step("A", lambda _: Wait("X", "x", after_s=30), remove),
            Step("B", lambda _: Wait("Y", "y", after_s=5), remove, needs=()),
        )
    )

    class Reporting(ToyController):
        def report(self, scope: ToyScope, results: Results) -> Report:
            return Report(after_s=60)

    world.controller.__class__ = Reporting

    assert world.reconcile().requeue_after_s == 5


def test_a_deletion_that_only_looks_writes_nothing(world: ToyEnvironment) -> None:
    world.reconcile()
    world.kube.writes.clear()

    def looking(_scope: ToyScope) -> Outcome:
        raise NotYetObserved("thing")

    world.controller.plan = Plan((Step("ThingReady", ensure, looking),))
    world.delete()
    world.kube.writes.clear()

    result = world.reconcile()

    assert world.kube.writes == []
    assert result.requeue_after_s is None


JANITOR = "example.org/janitor"


def with_janitor() -> ToyEnvironment:
    world = ToyEnvironment()
    world.kube.edit(*KEY, {"metadata": {"finalizers": [JANITOR]}})
    world.reconcile()
    assert world.obj["status"]["resources"]["records"]
    return world


def test_the_last_status_of_an_object_that_finalizers_of_others_keep_says_that_nothing_is_left() -> None:
    world = with_janitor()

    world.delete()
    world.reconcile()

    assert world.cloud.things == {}
    assert world.obj["metadata"]["finalizers"] == [JANITOR]
    assert world.obj["status"]["resources"]["records"] == world.obj["status"]["resources"]["pending"] == []
    assert "ThingReady" not in {condition["type"] for condition in world.obj["status"]["conditions"]}
    assert world.condition("Ready")["reason"] == "Deleting"
    assert JANITOR in world.condition("Ready")["message"]


def test_an_object_that_nobody_else_keeps_goes_in_one_write() -> None:
    world = ToyEnvironment()
    world.reconcile()
    world.delete()
    world.kube.writes.clear()

    world.reconcile()

    assert len(world.kube.writes) == 1
    assert world.kube.get(*KEY) is None


def test_a_last_status_that_cannot_be_stored_keeps_no_object() -> None:
    world = with_janitor()
    world.delete()

    def refuse(verb: str, key: Any, body: Any) -> None:
        if "status" in verb:
            raise Invalid("status.something: not like this")

    world.kube.before_write = refuse
    world.reconcile()

    assert world.obj["metadata"]["finalizers"] == [JANITOR]


def test_a_controller_without_credentials_is_reconciled_and_uses_no_clouds_budget() -> None:
    world = ToyEnvironment()
    world.controller.credentials = None  # type: ignore[assignment]
    world.manager = Reconciler(world.controller, world.manager.deps)

    world.reconcile()

    assert world.condition("ThingReady")["status"] == "True"
    assert world.manager.resolve_cloud(KEY)
    assert world.manager.cloud_key(KEY) == CloudKey()
