"""When a failed step is retried."""

from __future__ import annotations

import pytest

from capo.engine.backoff import Backoff
from capo.engine.steps import Blocked, Done, Failed, NotObserved, Result, Wait
from capo.engine.tests.builders import an_object, key
from capo.engine.tests.fake_kube import FakeClock
from capo.errors import ConflictError

OBJECT = an_object("thing", uid="u")


def due_s(backoff: Backoff, result: Result) -> float | None:
    guard = backoff.guard_of(key("thing"), OBJECT)
    return backoff.note(key("thing"), OBJECT, {"ThingReady": result}, guard)


@pytest.mark.parametrize(
    "between",
    [NotObserved(), Blocked("OtherReady"), Wait("Building", "another one is being made")],
    ids=["looked", "did-not-run", "waits for the next attempt"],
)
def test_a_pass_without_a_try_between_two_failures_does_not_make_the_second_a_first_one(between: Result) -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    due_s(backoff, Failed(ConflictError("busy")))
    clock.advance(3)

    while_looking_s = due_s(backoff, between)
    second_s = due_s(backoff, Failed(ConflictError("busy")))

    assert while_looking_s is None
    assert second_s == pytest.approx(15, rel=0.11)


def test_what_went_well_makes_the_next_failure_a_first_one() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    due_s(backoff, Failed(ConflictError("busy")))
    clock.advance(3)

    due_s(backoff, Done())

    assert due_s(backoff, Failed(ConflictError("busy"))) == pytest.approx(2, rel=0.11)


def test_a_step_whose_rest_ends_while_a_pass_goes_on_is_due_at_once() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    due_s(backoff, Failed(ConflictError("busy")))
    guard = backoff.guard_of(key("thing"), OBJECT)
    assert "ThingReady" in guard.resting

    clock.advance(3)
    next_s = backoff.note(key("thing"), OBJECT, {"ThingReady": guard.resting["ThingReady"]}, guard)

    assert next_s == 0.0
