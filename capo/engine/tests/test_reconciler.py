"""Passes of a toy controller: one resource, `thing`, in a cloud that is a dict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from capo import names
from capo.engine.conditions import Condition
from capo.engine.reconciler import Reconciler
from capo.engine.steps import Create, Done, Outcome, Plan, Results, Step, Wait
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeClock, FakeKube
from capo.engine.turn import Gate, Proceed, Report, Stop, Tools, Turn
from capo.errors import (
    AmbiguousAnswerError,
    IdentityError,
    InvalidSpecError,
    NotAuthorizedError,
    NotYetObserved,
    QuotaExceededError,
)
from capo.kube.kinds import OPENSTACK_SERVER, Key
from capo.ledger import Ledger
from capo.names import Stamp

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
    turn: Turn
    cloud: ToyCloud

    @property
    def sight(self) -> ToyScope:
        return self

    def learn(self, kind: str, body: Mapping[str, Any]) -> None: ...

    def wrote(self, kind: str) -> None: ...

    def mine(self) -> list[Mapping[str, Any]]:
        return [body for body in self.cloud.things.values() if self.turn.owner in body["stamp"]]


def ensure(scope: ToyScope) -> Outcome:
    mine = scope.mine()
    if mine:
        scope.turn.ledger.record("thing", "thing", mine[0]["id"])
        return Done()
    return Create("thing", ("thing",), lambda: {"thing": scope.cloud.create(Stamp(scope.turn.owner, "thing"))})


def remove(scope: ToyScope) -> Outcome:
    for body in scope.mine():
        del scope.cloud.things[body["id"]]
    return Done()


class ToySubject:
    kind = KIND
    name = "toy"
    plan = Plan((Step("ThingReady", ensure, remove),))
    routes = ()
    concurrency = 1

    def __init__(self, cloud: ToyCloud) -> None:
        self.cloud = cloud
        self.auth_fault: Exception | None = None
        self.stop: Stop | None = None
        self.forgotten = 0

    def gate(self, obj: Mapping[str, Any], tools: Tools) -> Gate:
        return self.stop or Proceed()

    def recorded_owner(self, obj: Mapping[str, Any], ledger: Ledger) -> str | None:
        things = (self.cloud.things.get(record.id) for record in ledger.records.values())
        return next((str(thing["stamp"]).split(":")[1] for thing in things if thing), None)

    def authenticate(self, obj: Mapping[str, Any], tools: Tools) -> None:
        if self.auth_fault:
            raise self.auth_fault

    def open(self, turn: Turn) -> ToyScope:
        return ToyScope(turn, self.cloud)

    def report(self, scope: ToyScope, results: Results) -> Report:
        is_done = isinstance(results["ThingReady"], Done)
        return Report(status={"ready": is_done}, spec={"size": 1} if is_done and not scope.turn.is_deleting else {})

    def credentials(self, obj: Mapping[str, Any], tools: Tools) -> str:
        return "Secret default/x, cloud 'toy'"

    def forget_credentials(self, obj: Mapping[str, Any]) -> None:
        self.forgotten += 1

    def slot(self, obj: Mapping[str, Any], tools: Tools) -> str | None:
        return "toy"

    def locate(self, obj: Mapping[str, Any], tools: Tools) -> None:
        """It is known."""


class Events:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def emit(self, obj: Mapping[str, Any], type_: str, reason: str, message: str, action: str | None = None) -> None:
        self.seen.append(reason)


class World:
    """The API server, the cloud, and a manager that can be started anew."""

    def __init__(self) -> None:
        self.kube, self.clock, self.cloud, self.events = FakeKube(), FakeClock(), ToyCloud(), Events()
        self.kube.put(KIND, {"metadata": {"name": "a"}, "spec": {}})
        self.start()

    def start(self) -> None:
        self.store = Store()
        tools = Tools(self.kube, self.store, self.events, self.clock)  # type: ignore[arg-type]
        self.subject = ToySubject(self.cloud)
        self.manager: Reconciler[ToyScope] = Reconciler(self.subject, tools)

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


@pytest.fixture
def world() -> World:
    return World()


def test_finalizer_and_owner_id_come_in_one_patch_before_anything_is_made(world: World) -> None:
    world.cloud.fault = QuotaExceededError("none left")

    world.reconcile()

    metadata = world.obj["metadata"]
    assert metadata["finalizers"] == [FINALIZER]
    owner = names.owner_of(
        metadata["annotations"][names.OWNER_ID_ANNOTATION], kind=KIND.kind, namespace="default", name="a"
    )
    assert owner
    assert world.kube.writes[0] == ("patch", "OpenStackServer", "a")


def test_a_resource_is_made_recorded_and_shown_in_four_writes(world: World) -> None:
    world.reconcile()

    assert len(world.cloud.things) == 1
    assert world.obj["status"]["resources"] == {
        "pending": [],
        "records": [{"kind": "thing", "role": "thing", "id": "id-1"}],
    }
    assert world.condition("ThingReady")["status"] == "True"
    assert world.condition("Ready")["status"] == "True"
    assert [verb for verb, *_ in world.kube.writes] == ["patch", "patch/status", "patch", "patch/status"]


def test_a_second_pass_over_a_settled_object_writes_nothing(world: World) -> None:
    world.reconcile()
    world.kube.writes.clear()

    world.reconcile()

    assert world.kube.writes == []


def test_a_pass_that_made_nothing_and_still_looks_writes_nothing_more_than_the_stamp(world: World) -> None:
    def pinning(scope: ToyScope) -> Outcome:
        scope.turn.pinned["resolved"] = {"flavor": "m1"}
        return Done()

    unknown = [NotYetObserved("thing")]

    def looking(scope: ToyScope) -> Outcome:
        if unknown:
            raise unknown.pop()
        return ensure(scope)

    world.subject.plan = Plan((Step("Resolved", pinning, remove), Step("ThingReady", looking, remove)))

    world.reconcile()

    assert [verb for verb, *_ in world.kube.writes] == ["patch"]
    world.reconcile()
    assert world.obj["status"]["resolved"] == {"flavor": "m1"}
    assert world.condition("Ready")["status"] == "True"


def test_what_a_pass_made_and_what_fails_in_it_is_written_while_another_step_looks(world: World) -> None:
    def looking(_: ToyScope) -> Outcome:
        raise NotYetObserved("other")

    world.subject.plan = Plan((Step("ThingReady", ensure, remove), Step("Other", looking, remove)))

    world.reconcile()

    assert [record["id"] for record in world.obj["status"]["resources"]["records"]] == ["id-1"]
    assert world.condition("ThingReady")["status"] == "True"

    world.cloud.things.clear()
    world.cloud.fault = QuotaExceededError("none left")
    world.reconcile()
    assert world.condition("ThingReady")["reason"] == "QuotaExceeded"


def test_the_spec_is_written_before_the_status_that_speaks_of_it(world: World) -> None:
    world.reconcile()

    verbs = [verb for verb, *_ in world.kube.writes]
    assert verbs.index("patch/status") < len(verbs) - 1
    assert verbs[-2:] == ["patch", "patch/status"]


@pytest.mark.parametrize("dies_at", ["patch", "patch/status"])
def test_a_manager_that_dies_at_any_write_makes_nothing_twice(world: World, dies_at: str) -> None:
    class Killed(BaseException):
        """Not an Exception: nothing may catch it."""

    for number in range(1, 6):
        world.__init__()  # type: ignore[misc]
        count = 0

        def die(verb: str, _key: Key, _body: Mapping[str, Any], limit: int = number) -> None:
            nonlocal count
            count += verb == dies_at
            if count == limit:
                raise Killed

        world.kube.before_write = die
        try:
            world.reconcile()
        except Killed:
            world.kube.before_write = None
            world.start()
            world.reconcile()
            world.clock.advance(61)
            world.reconcile()

        assert len(world.cloud.things) == 1
        assert world.obj["status"]["resources"]["records"][0]["id"] in world.cloud.things


def test_a_create_whose_answer_was_lost_is_found_by_its_stamp(world: World) -> None:
    world.cloud.is_lost = True
    world.reconcile()
    world.cloud.is_lost = False
    assert world.obj["status"]["resources"]["pending"]

    world.clock.advance(3)
    world.reconcile()

    assert len(world.cloud.things) == 1
    assert world.obj["status"]["resources"]["pending"] == []


def test_a_create_that_never_took_effect_is_repeated_after_the_window_alone(world: World) -> None:
    world.cloud.fault = AmbiguousAnswerError("cut")
    world.reconcile()
    world.cloud.fault = None

    world.clock.advance(30)
    result = world.reconcile()
    assert world.cloud.things == {}
    assert result.requeue_after_s == pytest.approx(31, abs=2)

    world.clock.advance(31)
    world.reconcile()
    assert len(world.cloud.things) == 1


def test_a_record_survives_conflicts_with_other_writers(world: World) -> None:
    def meddle(verb: str, key: Key, _body: Mapping[str, Any]) -> None:
        if verb == "patch/status":
            world.kube.before_write = None
            world.kube.edit(*key, {"metadata": {"labels": {"by": "somebody"}}})
            world.kube.before_write = meddle if len(world.cloud.things) == 0 else None

    world.kube.before_write = meddle

    world.reconcile()

    assert world.obj["status"]["resources"]["records"]
    assert world.obj["metadata"]["labels"] == {"by": "somebody"}


def test_deletion_takes_everything_away_and_the_finalizer_last(world: World) -> None:
    world.reconcile()
    world.delete()

    world.reconcile()

    assert world.cloud.things == {}
    assert world.kube.get(*KEY) is None


def test_the_finalizer_stays_while_a_lost_create_may_take_effect(world: World) -> None:
    world.cloud.fault = AmbiguousAnswerError("cut")
    world.reconcile()
    world.delete()

    world.reconcile()
    assert world.kube.get(*KEY) is not None

    owner = world.obj["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    world.cloud.things["late"] = {"id": "late", "stamp": f"capo:{owner}:thing"}
    world.clock.advance(62)
    world.reconcile()

    assert world.cloud.things == {}
    assert world.kube.get(*KEY) is None


def test_an_object_whose_credentials_never_worked_carries_no_finalizer(world: World) -> None:
    world.subject.auth_fault = IdentityError("Secret default/x does not exist")

    result = world.reconcile()

    assert not world.obj["metadata"].get("finalizers")
    assert world.condition("OpenStackAuthenticationSucceeded")["reason"] == "OpenStackAuthenticationFailed"
    assert "Secret default/x does not exist" in world.condition("Ready")["message"]
    assert result.requeue_after_s == pytest.approx(10)
    assert world.subject.forgotten == 1


def test_credentials_that_are_refused_later_are_read_anew(world: World) -> None:
    world.cloud.fault = NotAuthorizedError("The request you have made requires authentication.", status=401)

    result = world.reconcile()

    assert world.condition("OpenStackAuthenticationSucceeded")["status"] == "False"
    assert "[Secret default/x, cloud 'toy']" in world.condition("Ready")["message"]
    assert world.cloud.fault.resource is None
    assert world.subject.forgotten == 1
    assert result.requeue_after_s == pytest.approx(10, rel=0.11)


@pytest.mark.parametrize("lost", [["annotations"], ["annotations", "finalizers"]])
def test_a_lost_owner_id_is_restored_from_what_is_recorded(world: World, lost: list[str]) -> None:
    world.reconcile()
    before = world.obj["metadata"]["annotations"][names.OWNER_ID_ANNOTATION]
    world.kube.edit(*KEY, {"metadata": dict.fromkeys(lost)})

    world.start()
    world.reconcile()

    assert world.obj["metadata"]["annotations"][names.OWNER_ID_ANNOTATION] == before
    assert len(world.cloud.things) == 1


def test_a_lost_owner_id_is_made_anew_when_nothing_recorded_is_left(world: World) -> None:
    world.reconcile()
    world.cloud.things.clear()
    world.kube.edit(*KEY, {"metadata": {"annotations": None}})

    world.start()
    world.reconcile()

    assert names.OWNER_ID_ANNOTATION in world.obj["metadata"]["annotations"]
    assert len(world.cloud.things) == 1


def test_a_copied_owner_id_touches_nothing(world: World) -> None:
    copied = names.new_owner_id(KIND.kind, "default", "another")
    world.kube.edit(*KEY, {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: copied}}})

    world.reconcile()

    assert world.cloud.calls == 0
    assert world.condition("Ready")["reason"] == "OwnerIdCopied"


def test_an_object_that_is_deleted_for_a_move_is_left_alone(world: World) -> None:
    world.reconcile()
    world.kube.edit(*KEY, {"metadata": {"annotations": {names.DELETE_FOR_MOVE_ANNOTATION: ""}}})
    world.delete()
    world.kube.writes.clear()

    world.reconcile()

    assert world.kube.writes == []
    assert len(world.cloud.things) == 1


def test_a_stopped_object_shows_why_and_does_nothing_else(world: World) -> None:
    world.subject.stop = Stop([Condition("Paused", "True", "Paused", "the annotation is set")])

    world.reconcile()

    assert world.cloud.calls == 0
    assert [c["type"] for c in world.obj["status"]["conditions"]] == ["Paused"]
    assert not world.obj["metadata"].get("finalizers")


def test_a_stop_without_conditions_writes_nothing_at_all(world: World) -> None:
    world.subject.stop = Stop()

    world.reconcile()

    assert world.kube.writes == []


def test_a_failing_create_is_tried_at_most_six_times_a_minute_whatever_wakes_the_object(world: World) -> None:
    world.cloud.fault = QuotaExceededError("Quota exceeded for instances", status=403)

    for _ in range(60):
        world.reconcile()
        world.clock.advance(1)

    assert 3 <= world.cloud.calls <= 6


def test_a_failing_object_recovers_when_the_cause_is_mended(world: World) -> None:
    world.cloud.fault = QuotaExceededError("Quota exceeded for instances", status=403)
    world.reconcile()
    world.cloud.fault = None

    world.clock.advance(3)
    world.reconcile()

    assert world.condition("Ready")["status"] == "True"


def test_an_edit_of_the_spec_ends_the_rest_of_a_terminal_failure(world: World) -> None:
    world.cloud.fault = InvalidSpecError("bad flavor")
    world.reconcile()
    world.reconcile()
    assert world.cloud.calls == 1
    world.cloud.fault = None

    world.kube.edit(*KEY, {"spec": {"flavor": "good"}})
    world.reconcile()

    assert len(world.cloud.things) == 1


def test_events_tell_of_creates_and_failures_once(world: World) -> None:
    world.cloud.fault = QuotaExceededError("Quota exceeded", status=403)
    for _ in range(5):
        world.reconcile()

    assert world.events.seen == ["FailedCreateThing", "QuotaExceeded"]


def test_an_object_that_vanished_during_a_pass_ends_it_quietly(world: World) -> None:
    def vanish(_verb: str, key: Key, _body: Mapping[str, Any]) -> None:
        world.kube.objects.pop(key, None)

    world.kube.before_write = vanish

    assert world.reconcile().error is None


def test_waits_ask_for_the_earliest_look(world: World) -> None:
    world.subject.plan = Plan(
        (
            Step("A", lambda _: Wait("X", "x", after_s=30), remove),
            Step("B", lambda _: Wait("Y", "y", after_s=5), remove, needs=()),
        )
    )

    class Reporting(ToySubject):
        def report(self, scope: ToyScope, results: Results) -> Report:
            return Report(after_s=60)

    world.subject.__class__ = Reporting

    assert world.reconcile().requeue_after_s == 5


def test_an_object_that_was_taken_over_stays_so_until_everything_of_it_is_recorded(world: World) -> None:
    world.kube.edit(*KEY, {"metadata": {"finalizers": [FINALIZER]}})
    seen: list[bool] = []

    def waiting(scope: ToyScope) -> Outcome:
        seen.append(scope.turn.is_taken_over)
        return Done() if len(seen) > 2 else Wait("Looking", "not seen yet", after_s=1)

    world.subject.plan = Plan((Step("ThingReady", waiting, remove),))

    for _ in range(4):
        world.reconcile()

    assert seen == [True, True, True, False]
