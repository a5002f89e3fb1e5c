"""Two managers that write different statuses of one object: both slow down, and no status is lost."""

from __future__ import annotations

from typing import Any

import pytest

from capo.engine.contention import CEILING_S, REMEMBERED, Contention
from capo.engine.tests.builders import FakeClock, key

KEY = key("a")
OURS = {"ready": True, "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "now"}]}
THEIRS = {"ready": False, "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "then"}]}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def contention(clock: FakeClock) -> Contention:
    """Return a contention in which this process wrote its status once."""
    contention = Contention(clock)
    assert write(contention, {}, OURS) == 0
    return contention


def write(contention: Contention, present: dict[str, Any], wanted: dict[str, Any]) -> float:
    """Write a final status if the contention allows it now."""
    pause_s = contention.pause_s(KEY, present, wanted)
    if not pause_s:
        contention.mark_written(KEY, wanted)
    return pause_s


def written_within(contention: Contention, clock: FakeClock, seconds: float) -> int:
    """Return how often the status is written while another client overwrites it at once each time."""
    ends_s, count = clock() + seconds, 0
    while clock() < ends_s:
        pause_s = write(contention, THEIRS, OURS)
        count += not pause_s
        clock.advance(pause_s or 0.01)
    return count


def test_what_is_overwritten_for_the_first_time_is_written_back_at_once(contention: Contention) -> None:
    assert write(contention, THEIRS, OURS) == 0


def test_what_is_overwritten_again_and_again_is_written_back_ever_more_rarely(
    contention: Contention, clock: FakeClock
) -> None:
    assert written_within(contention, clock, 60) <= 6
    assert 9 <= written_within(contention, clock, 600) <= 11


def test_what_is_new_is_written_at_once_whoever_wrote_before(contention: Contention, clock: FakeClock) -> None:
    written_within(contention, clock, 600)

    assert write(contention, THEIRS, {**OURS, "instanceState": "ERROR"}) == 0


def test_records_are_written_at_once(contention: Contention, clock: FakeClock) -> None:
    recorded = {**OURS, "resources": {"records": [{"id": "1"}]}}
    write(contention, OURS, recorded)
    for _ in range(4):
        write(contention, {**THEIRS, "resources": recorded["resources"]}, recorded)

    assert write(contention, THEIRS, recorded) == 0


def test_one_manager_alone_never_waits(contention: Contention) -> None:
    for number in range(20):
        assert write(contention, OURS if number % 2 == 0 else THEIRS, THEIRS if number % 2 == 0 else OURS) == 0


def test_a_contest_that_ended_is_forgotten(contention: Contention, clock: FakeClock) -> None:
    written_within(contention, clock, 600)
    clock.advance(CEILING_S + 601)

    assert write(contention, THEIRS, OURS) == 0
    clock.advance(2.1)
    assert write(contention, THEIRS, OURS) == 0


def test_the_time_of_a_transition_alone_makes_no_other_status(contention: Contention) -> None:
    later = {**OURS, "conditions": [{**OURS["conditions"][0], "lastTransitionTime": "later"}]}  # type: ignore[index]

    write(contention, THEIRS, later)

    assert write(contention, THEIRS, OURS) > 0


def test_a_status_that_was_written_long_ago_counts_as_new(contention: Contention) -> None:
    write(contention, THEIRS, OURS)
    assert write(contention, THEIRS, OURS) > 0

    for number in range(REMEMBERED):
        write(contention, THEIRS, {**OURS, "instanceState": str(number)})

    assert write(contention, THEIRS, OURS) == 0
