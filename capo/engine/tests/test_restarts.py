"""A manager that restarts repeatedly resolves a create whose answer was lost, and creates nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from capo import names
from capo.engine.tests.toy import KEY, ToyEnvironment
from capo.errors import AmbiguousAnswerError
from capo.kube.kinds import Key

STARTING_S = 4.0


class Killed(BaseException):
    """Not an Exception, so that no code catches it."""


def die_over_the_create(world: ToyEnvironment) -> float:
    """Kill the process after the create is sent, before an answer; return when."""

    def die(verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        if "records" in str(body) and not body["status"]["resources"]["pending"]:
            raise Killed

    world.kube.before_write = die
    with pytest.raises(Killed):
        world.reconcile()
    world.kube.before_write = None
    world.cloud.things.clear()
    return world.clock.now()


def live(world: ToyEnvironment, life_s: float, until: Callable[[], bool]) -> None:
    """Restart a process and run its reconciles until its lifetime is over or the condition holds."""
    ends_s = world.clock.now() + life_s
    world.start()
    world.clock.advance(STARTING_S)
    while world.clock.now() < ends_s:
        after_s = world.reconcile().requeue_after_s
        if until():
            return
        world.clock.now_s = ends_s if after_s is None else min(ends_s, world.clock.now() + after_s)


def time_of(world: ToyEnvironment, until: Callable[[], bool], *, life_s: float) -> float:
    for _ in range(100):
        live(world, life_s, until)
        if until():
            return world.clock.now()
    raise AssertionError("it never came true")


@pytest.mark.parametrize("set_by_s", [-3600.0, 0.0, 3600.0], ids=["clock behind", "right", "ahead"])
@pytest.mark.parametrize("life_s", [15.0, 20.0, 45.0, 600.0])
def test_a_manager_that_is_restarted_over_and_over_gets_past_an_intent_and_makes_one(
    world: ToyEnvironment, life_s: float, set_by_s: float
) -> None:
    sent_s = die_over_the_create(world)
    world.clock.set_by_s = set_by_s

    made_s = time_of(world, lambda: bool(world.cloud.things), life_s=life_s)

    assert 60.0 <= made_s - sent_s <= 150.0
    assert len(world.cloud.things) == 1
    assert world.cloud.calls == 2


def test_what_takes_effect_at_the_windows_end_is_adopted_by_whichever_process_there_is(world: ToyEnvironment) -> None:
    sent_s = die_over_the_create(world)
    owner = world.obj["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]

    while world.clock.now() < sent_s + 58:
        live(world, min(20.0, sent_s + 58 - world.clock.now()), lambda: False)
    world.cloud.things["late"] = {"id": "late", "stamp": f"capo:{owner}:thing"}
    for _ in range(10):
        live(world, 20.0, lambda: False)

    assert list(world.cloud.things) == ["late"]
    assert world.obj["status"]["resources"]["records"][0]["id"] == "late"


def test_each_create_that_is_sent_again_is_waited_for_in_full(world: ToyEnvironment) -> None:
    sent_s = [die_over_the_create(world)]
    world.cloud.fault = AmbiguousAnswerError("cut")

    for number in (2, 3):
        time_of(world, lambda number=number: world.cloud.calls == number, life_s=20.0)  # type: ignore[misc]
        sent_s.append(world.clock.now())

    assert sent_s[1] - sent_s[0] >= 60.0
    assert sent_s[2] - sent_s[1] >= 60.0


def test_a_deletion_gets_past_an_intent_as_well_and_not_before_its_window_is_over(world: ToyEnvironment) -> None:
    sent_s = die_over_the_create(world)
    world.delete()

    gone_s = time_of(world, lambda: world.kube.get(*KEY) is None, life_s=20.0)

    assert 60.0 <= gone_s - sent_s <= 150.0


def test_an_intent_is_noted_with_six_writes_at_most(world: ToyEnvironment) -> None:
    world.cloud.fault = AmbiguousAnswerError("cut")
    world.reconcile()
    world.kube.writes.clear()

    ends_s = world.clock.now() + 59
    while world.clock.now() < ends_s:
        world.clock.now_s = min(ends_s, world.clock.now() + (world.reconcile().requeue_after_s or 60.0))

    assert len(world.kube.writes) <= 6
    assert world.cloud.calls == 1
