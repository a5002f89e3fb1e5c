"""The earliest of many moments."""

from __future__ import annotations

import random

import pytest

from capo.due_times import DueTimes
from environments import operations


def test_keys_are_returned_in_the_order_of_their_moments_and_only_once() -> None:
    times: DueTimes[str] = DueTimes()
    for key, at_s in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        times.set(key, at_s)

    assert times.pop_until(2.0) == ["a", "b"]
    assert times.pop_until(2.0) == []
    assert times.first_s() == 3.0


def test_a_replaced_and_a_removed_moment_do_not_count() -> None:
    times: DueTimes[str] = DueTimes()
    times.set("later", 1.0)
    times.set("later", 9.0)
    times.set("gone", 2.0)
    times.discard("gone")
    times.set("sooner", 8.0)
    times.set("sooner", 3.0)

    assert times.first_s() == 3.0
    assert times.pop_until(10.0) == ["sooner", "later"]
    assert times.first_s() == float("inf")


def test_it_agrees_with_a_plain_dictionary() -> None:
    chosen = random.Random(7)
    times: DueTimes[int] = DueTimes()
    plain: dict[int, float] = {}
    for _ in range(2_000):
        key, at_s = chosen.randrange(50), float(chosen.randrange(100))
        match chosen.randrange(4):
            case 0:
                times.discard(key)
                plain.pop(key, None)
            case 1 if chosen.random() < 0.1:
                due = {each for each, moment in plain.items() if moment <= at_s}
                assert set(times.pop_until(at_s)) == due
                plain = {each: moment for each, moment in plain.items() if each not in due}
            case _:
                times.set(key, at_s)
                plain[key] = at_s
        assert times.first_s() == min(plain.values(), default=float("inf"))
        assert set(times) == plain.keys()


def test_moments_that_are_replaced_for_ever_take_no_more_memory() -> None:
    times: DueTimes[str] = DueTimes()
    times.set("first", 0.0)
    for number in range(10_000):
        times.set("other", 1.0 + number)

    assert len(times._heap) < 100


@pytest.mark.parametrize("act", [lambda t: t.first_s(), lambda t: (t.set(-1, 5.0), t.discard(-1), t.first_s())])
def test_a_thousand_keys_cost_little_more_than_ten(act: object) -> None:
    def cost(keys: int) -> int:
        times: DueTimes[int] = DueTimes()
        for number in range(keys):
            times.set(number, float(number))
        return operations.count(lambda: act(times))  # type: ignore[operator]

    assert cost(1_000) < 2 * cost(10)
