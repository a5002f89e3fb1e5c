"""The toy controller creates its thing once and deletes it, despite crashes, lost answers and other clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from capo import names
from capo.engine.steps import Plan, Step, Wait, nothing
from capo.engine.tests.toy import KEY, ToyEnvironment
from capo.errors import AmbiguousAnswerError, QuotaExceededError
from capo.kube.kinds import Key


@pytest.mark.parametrize("dies_at", ["patch", "patch/status"])
def test_a_manager_that_dies_at_any_write_makes_nothing_twice(world: ToyEnvironment, dies_at: str) -> None:
    class Killed(BaseException):
        """Not an Exception, so that no code catches it."""

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


def test_a_create_whose_answer_was_lost_is_found_by_its_stamp(world: ToyEnvironment) -> None:
    world.cloud.is_lost = True
    world.reconcile()
    world.cloud.is_lost = False
    assert world.obj["status"]["resources"]["pending"]

    world.clock.advance(3)
    world.reconcile()

    assert len(world.cloud.things) == 1
    assert world.obj["status"]["resources"]["pending"] == []


def test_a_create_that_never_took_effect_is_repeated_after_the_window_alone(world: ToyEnvironment) -> None:
    world.cloud.fault = AmbiguousAnswerError("cut")
    world.reconcile()
    world.cloud.fault = None

    world.clock.advance(55)
    result = world.reconcile()
    assert world.cloud.things == {}
    assert result.requeue_after_s == pytest.approx(6, abs=2)

    world.clock.advance(6)
    world.reconcile()
    assert len(world.cloud.things) == 1


def test_a_record_survives_conflicts_with_other_writers(world: ToyEnvironment) -> None:
    def meddle(verb: str, key: Key, _body: Mapping[str, Any]) -> None:
        if verb == "patch/status":
            world.kube.before_write = None
            world.kube.edit(*key, {"metadata": {"labels": {"by": "somebody"}}})
            world.kube.before_write = meddle if len(world.cloud.things) == 0 else None

    world.kube.before_write = meddle

    world.reconcile()

    assert world.obj["status"]["resources"]["records"]
    assert world.obj["metadata"]["labels"] == {"by": "somebody"}


def test_deletion_takes_everything_away_and_the_finalizer_last(world: ToyEnvironment) -> None:
    world.reconcile()
    world.delete()

    world.reconcile()

    assert world.cloud.things == {}
    assert world.kube.get(*KEY) is None


def test_the_finalizer_stays_while_a_lost_create_may_take_effect(world: ToyEnvironment) -> None:
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


def test_a_window_that_is_over_asks_for_no_pass_while_a_deletion_is_held_up(world: ToyEnvironment) -> None:
    world.cloud.fault = AmbiguousAnswerError("cut")
    world.reconcile()
    world.delete()
    world.controller.plan = Plan((Step("ThingReady", ensure=nothing, remove=lambda _: Wait("Deleting", "in use")),))
    world.clock.advance(3600)

    result = world.reconcile()

    assert world.kube.get(*KEY) is not None
    assert result.requeue_after_s is None


def test_a_failing_create_is_tried_at_most_six_times_a_minute_whatever_wakes_the_object(world: ToyEnvironment) -> None:
    world.cloud.fault = QuotaExceededError("Quota exceeded for instances", status=403)

    for _ in range(60):
        world.reconcile()
        world.clock.advance(1)

    assert 3 <= world.cloud.calls <= 6
