"""The work queue: each key at most once, one reconcile at a time, growing backoff, round-robin."""

from __future__ import annotations

import pytest

from capo.engine.queue import WorkQueue
from capo.engine.tests.builders import FakeClock, key
from capo.errors import CloudUnavailableError, ImageNotFoundError, RateLimitedError
from capo.kube.errors import Conflict, Denied, KubeError
from capo.kube.kinds import Key
from capo.shares import CLOUD, Lane, Path, Resource

FINE, HUNG, UNLOCATED = (Lane("default", name, name) for name in ("fine", "hung", "unlocated"))


def hangs(path: Path) -> Resource | None:
    """Report no room in one cloud."""
    return (CLOUD, "hung") if path == HUNG else None


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue:
    return WorkQueue(clock=clock, spread=lambda: 1.0)


def taken(queue: WorkQueue) -> str | None:
    found = queue.take()
    return found.key.name if found else None


def pause_of(queue: WorkQueue) -> float:
    pause_s = queue.next_due_s()
    assert pause_s is not None
    return pause_s


def test_a_key_added_many_times_is_taken_once(queue: WorkQueue) -> None:
    for _ in range(30):
        queue.add(key("a"))

    assert (taken(queue), taken(queue)) == ("a", None)


def test_a_taken_key_has_waited_since_it_was_due(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add(key("added"))
    queue.add_after(key("delayed"), 10)
    clock.advance(12)
    queue.add(key("added"))

    waited = {found.key.name: found.waited_s for found in (queue.take(), queue.take()) if found}

    assert waited == {"added": 12, "delayed": 2}


def test_a_key_in_a_pass_is_not_taken_again_before_the_pass_ends(queue: WorkQueue) -> None:
    queue.add(key("a"))
    taken(queue)

    queue.add(key("a"))

    assert taken(queue) is None
    queue.done(key("a"))
    assert taken(queue) == "a"


def test_thirty_changes_during_a_pass_give_one_more_pass(queue: WorkQueue) -> None:
    queue.add(key("a"))
    passes = 0
    while taken(queue):
        passes += 1
        if passes == 1:
            for version in range(30):
                queue.add(key("a"), version=str(version))
        queue.done(key("a"))

    assert passes == 2


def test_the_echo_of_an_own_write_gives_no_pass_whichever_comes_first(queue: WorkQueue) -> None:
    queue.add(key("a"))
    taken(queue)
    queue.add(key("a"), version="7")
    queue.mark_written(key("a"), "7")
    queue.mark_written(key("a"), "8")
    queue.add(key("a"), version="8")

    queue.done(key("a"))

    assert taken(queue) is None


def test_somebody_elses_change_between_own_writes_gives_a_pass(queue: WorkQueue) -> None:
    queue.add(key("a"))
    taken(queue)
    queue.mark_written(key("a"), "7")
    queue.add(key("a"), version="8")

    queue.done(key("a"))

    assert taken(queue) == "a"


def test_a_delayed_key_is_taken_when_it_is_due(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after(key("a"), 10)

    clock.advance(9.9)
    assert taken(queue) is None
    assert pause_of(queue) == pytest.approx(0.1)
    clock.advance(0.1)
    assert taken(queue) == "a"


def test_of_several_delays_the_earliest_wins(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after(key("a"), 600)
    queue.add_after(key("a"), 10)
    queue.add_after(key("a"), 300)

    clock.advance(10)
    assert taken(queue) == "a"
    queue.done(key("a"))
    clock.advance(1000)
    assert taken(queue) is None


def test_an_event_wakes_a_delayed_key_at_once_and_ends_the_delay(queue: WorkQueue, clock: FakeClock) -> None:
    queue.add_after(key("a"), 60)

    queue.add(key("a"))

    assert taken(queue) == "a"
    queue.done(key("a"))
    clock.advance(60)
    assert taken(queue) is None


def pauses_of(queue: WorkQueue, clock: FakeClock, error: Exception, times: int) -> list[float]:
    pauses = []
    for _ in range(times):
        queue.retry(key("a"), error)
        pauses.append(pause_of(queue))
        clock.advance(pauses[-1])
        taken(queue)
        queue.done(key("a"))
    return pauses


def test_cloud_errors_pause_two_seconds_once_and_then_fifteen_doubling_to_two_minutes_w_90(
    queue: WorkQueue, clock: FakeClock
) -> None:
    assert pauses_of(queue, clock, CloudUnavailableError("down"), 7) == [2, 15, 30, 60, 120, 120, 120]


@pytest.mark.parametrize("status", [None, 401, 429, 503])
def test_an_api_server_that_is_away_is_asked_every_fifteen_seconds(
    queue: WorkQueue, clock: FakeClock, status: int | None
) -> None:
    assert pauses_of(queue, clock, KubeError("down", status=status), 7) == [2, 15, 15, 15, 15, 15, 15]


@pytest.mark.parametrize("error", [Denied("no", status=403), KubeError("a webhook failed", status=500), KeyError("x")])
def test_refusals_of_the_api_server_and_faults_of_the_program_pause_as_cloud_errors(
    queue: WorkQueue, clock: FakeClock, error: Exception
) -> None:
    assert pauses_of(queue, clock, error, 6) == [2, 15, 30, 60, 120, 120]


def test_a_conflict_pauses_a_fifth_of_a_second(queue: WorkQueue, clock: FakeClock) -> None:
    assert pauses_of(queue, clock, Conflict("changed"), 7) == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5, 5])


def test_a_rate_limit_is_obeyed(queue: WorkQueue, clock: FakeClock) -> None:
    assert pauses_of(queue, clock, RateLimitedError("slow down", retry_after_s=42), 1) == [42]
    assert pauses_of(queue, clock, RateLimitedError("slow down", retry_after_s=20), 4) == [20, 30, 60, 120]


def test_a_reference_that_leads_nowhere_is_not_looked_for_at_once_again(queue: WorkQueue, clock: FakeClock) -> None:
    assert pauses_of(queue, clock, ImageNotFoundError("no image"), 5) == [15, 30, 60, 120, 120]


def test_success_makes_the_next_failure_a_first_one(queue: WorkQueue, clock: FakeClock) -> None:
    pauses_of(queue, clock, CloudUnavailableError("down"), 3)

    queue.forget(key("a"))

    assert pauses_of(queue, clock, CloudUnavailableError("down"), 1) == [2]


def test_pauses_are_jittered_w_90(clock: FakeClock) -> None:
    queue = WorkQueue(clock=clock)
    pauses = set()
    for number in range(20):
        queue.retry(key(str(number)), CloudUnavailableError("down"))
        pauses.add(queue._due[key(str(number))].due_s - clock())

    assert len(pauses) == 20
    assert min(pauses) >= 1.6
    assert max(pauses) <= 2.4


def test_clusters_take_turns(clock: FakeClock) -> None:
    queue = WorkQueue(clock=clock, group=lambda k: k.name[0])
    for name in ("a1", "a2", "a3", "b1", "c1", "c2"):
        queue.add(key(name))

    assert [taken(queue) for _ in range(6)] == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_a_cloud_without_room_does_not_stand_in_the_way(clock: FakeClock) -> None:
    def cloud_of(of: Key) -> Lane:
        return HUNG if of.name.startswith("h") else FINE

    queue = WorkQueue(clock=clock, lane=cloud_of)
    for name in ("h1", "h2", "f1"):
        queue.add(key(name))

    found = queue.take(hangs)

    assert found is not None
    assert (found.key.name, found.lane) == ("f1", FINE)
    assert queue.take(hangs) is None
    assert queue.depth() == 2


def test_a_key_whose_cloud_became_known_while_it_waited_waits_for_room_there(clock: FakeClock) -> None:
    lanes = {"a": UNLOCATED, "b": UNLOCATED}
    queue = WorkQueue(clock=clock, lane=lambda of: lanes[of.name])
    queue.add(key("a"))
    queue.add(key("b"))
    lanes["a"] = HUNG

    found = queue.take(hangs)

    assert found is not None
    assert (found.key.name, found.lane) == ("b", UNLOCATED)
    assert queue.take(hangs) is None
    queue.freed(HUNG)
    moved = queue.take()
    assert moved is not None
    assert (moved.key.name, moved.lane) == ("a", HUNG)
