"""Holds: who waits, who is let through, what is asked; in the time of a fake clock."""

from __future__ import annotations

import gc
from collections.abc import Hashable, Mapping

import pytest

from capo.engine.tests.fake_kube import FakeClock
from capo.errors import (
    AmbiguousAnswerError,
    CapoError,
    ForbiddenError,
    InvalidSpecError,
    NotYetObserved,
    QuotaExceededError,
)
from capo.openstack import quota_state
from capo.openstack.quota import Left
from capo.openstack.quota_holds import WAITING, Hold, QuotaHolds, Request
from capo.openstack.quota_places import KEPT_S
from capo.openstack.quota_state import BURST, BURST_S


class Project:
    """A project with a quota of cores, and the holds of its objects."""

    def __init__(self, cores: int, *, told: Left | CapoError | None = None) -> None:
        self.clock = FakeClock()
        self.cores, self.used, self.told = cores, 0, told
        self.reads = self.posts = self.refusals = 0
        self.woken: list[Hashable] = []
        self.holds = QuotaHolds(self._read, self.clock.now, self.woken.append)

    def _read(self, service: str) -> Left:
        assert service == "compute"
        self.reads += 1
        if isinstance(self.told, CapoError):
            raise self.told
        return {"cores": self.cores - self.used} if self.told is None else self.told

    def request(self, owner: str, cores: int = 4, *, was_held: bool = False) -> Request:
        def needs() -> Mapping[str, Mapping[str, int]]:
            return {"compute": {"instances": 1, "cores": cores}}

        return Request(owner, owner, "server", 1, needs, was_held)

    def create(self, owner: str, cores: int = 4, *, was_held: bool = False) -> Hold | CapoError | None:
        """Create a server as the engine does: return the hold, the refusal, or None for a success."""
        request = self.request(owner, cores, was_held=was_held)
        if hold := self.holds.hold(request):
            return hold
        self.posts += 1
        if self.used + cores > self.cores:
            self.refusals += 1
            error = QuotaExceededError("Quota exceeded for cores: Requested ...", status=403, request_id="req-1")
            self.holds.settle(request, error)
            return error
        self.used += cores
        self.holds.settle(request, None)
        return None


def words(held: object) -> str:
    assert isinstance(held, Hold), held
    return held.words


def test_servers_that_start_one_after_another_cost_nothing() -> None:
    project = Project(1000)

    for number in range(2 * BURST):
        assert project.create(f"a{number}") is None
        project.clock.now_s += BURST_S

    assert project.reads == 0


def test_the_second_server_of_a_minute_is_checked_and_one_read_serves_all_of_it() -> None:
    project = Project(10)

    results = [project.create(f"a{number}") for number in range(8)]

    assert results[:2] == [None, None]
    assert {words(each) for each in results[2:]} == {"quota of cores exhausted: needs 4, 2 left"}
    assert (project.reads, project.refusals) == (1, 0)


def test_many_servers_in_ten_minutes_cost_ten_reads() -> None:
    project = Project(10_000)

    for number in range(1200):
        project.create(f"a{number}")
        project.clock.now_s += 0.5

    assert project.reads == 10


def test_repeated_creates_of_one_server_are_no_burst() -> None:
    project = Project(100)

    for _ in range(BURST - 1):
        assert project.create("a") is None

    assert project.reads == 0


def test_few_creates_of_other_kinds_ask_nothing() -> None:
    project = Project(100)

    for number in range(BURST - 1):
        request = Request(f"a{number}", f"a{number}", "floating_ip", 1)
        assert project.holds.hold(request) is None
        project.holds.settle(request, None)

    assert project.reads == 0


def test_one_refusal_holds_all_others_and_one_read_serves_them() -> None:
    project = Project(10)
    project.create("a0", 8)
    project.clock.now_s += BURST_S

    results = [project.create(f"a{number}") for number in range(1, 8)]

    assert isinstance(results[0], QuotaExceededError)
    assert {words(each) for each in results[1:]} == {"quota of cores exhausted: needs 4, 2 left"}
    assert (project.reads, project.refusals) == (1, 1)


def test_a_burst_meets_no_refusal() -> None:
    project = Project(4 * 30)

    for number in range(100):
        project.create(f"a{number}")

    assert project.used == 120
    assert (project.reads, project.refusals) == (1, 0)


def test_what_others_have_reserved_is_not_left() -> None:
    project = Project(8)
    first, second, third = (project.request(owner, was_held=True) for owner in "abc")

    assert project.holds.hold(first) is None
    assert project.holds.hold(second) is None

    assert words(project.holds.hold(third)) == "quota of cores exhausted: needs 4, 0 left"


def test_a_create_that_was_refused_for_another_reason_gives_back_what_it_reserved() -> None:
    project = Project(4)
    first, second = (project.request(owner, was_held=True) for owner in "ab")
    assert project.holds.hold(first) is None

    project.holds.settle(first, InvalidSpecError("no"))

    assert project.holds.hold(second) is None


def test_a_create_whose_answer_was_lost_keeps_its_reservation_until_the_next_read() -> None:
    project = Project(4)
    first, second = (project.request(owner, was_held=True) for owner in "ab")
    assert project.holds.hold(first) is None
    project.holds.settle(first, AmbiguousAnswerError("lost"))
    assert words(project.holds.hold(second))

    project.clock.now_s += 61

    assert project.holds.hold(second) is None


def test_a_small_one_passes_a_big_one() -> None:
    project = Project(7)
    project.create("big", 8)
    assert words(project.create("big", 8)) == "quota of cores exhausted: needs 8, 7 left"

    assert project.create("small", 2) is None
    assert words(project.create("other", 8)) == "quota of cores exhausted: needs 8, 5 left"


def test_the_words_of_a_waiting_object_stay_and_tell_of_a_small_quota() -> None:
    project = Project(8)
    project.create("a", 9)
    first = words(project.create("a", 9))
    project.create("b", 2)
    project.clock.now_s += 61

    assert words(project.create("a", 9)) == first == "quota of cores exhausted: needs 9, 8 left"


def test_a_read_wakes_those_that_fit_in_their_order() -> None:
    project = Project(4)
    for owner in "abcd":
        project.create(owner, was_held=True)
    assert project.used == 4
    project.clock.now_s += 61
    project.cores = 12
    project.woken.clear()

    project.create("b")

    assert project.woken[:2] == ["b", "c"]
    assert "d" not in project.woken
    assert project.create("c") is None
    assert words(project.create("d"))


def test_after_a_refusal_the_limits_let_through_one_then_two_more_for_each_success() -> None:
    project = Project(4)
    project.create("a0")
    project.clock.now_s += BURST_S
    for number in range(1, 20):
        project.create(f"a{number}")
    assert (project.used, project.refusals) == (4, 1)
    project.cores = 80
    project.clock.now_s += 61

    left = [f"a{number}" for number in range(2, 20)]  # a1 is the one that was refused
    for _ in range(20):
        to_create = [owner for owner in left if owner == "a2" or owner in project.woken]
        left = [owner for owner in left if owner not in to_create or project.create(owner) is not None]

    assert left == []
    assert project.used == 76
    assert project.refusals == 1


@pytest.mark.parametrize(
    "told", [pytest.param(ForbiddenError("no"), id="forbidden"), pytest.param({}, id="nothing"), {"cores": 99}]
)
def test_limits_that_are_hidden_or_untrue_cost_one_refusal_a_minute(told: Left | CapoError) -> None:
    project = Project(4, told=told)
    for number in range(20):
        project.create(f"a{number}")
    assert project.refusals == 1

    for _ in range(5):
        project.clock.now_s += 61
        for number in range(1, 20):
            project.create(f"a{number}")
    assert project.refusals == 6

    project.cores = 80
    for _ in range(20):
        project.clock.now_s += 10
        for number in range(1, 20):
            project.create(f"a{number}")
        project.used = min(project.used, 80)
    assert project.used == 80


def test_limits_that_never_have_room_do_not_block_for_ever() -> None:
    project = Project(80, told={"cores": 0})
    held = project.create("a", was_held=True)
    assert words(held) == "quota of cores exhausted: needs 4, 0 left"
    for _ in range(5):
        project.clock.now_s += 100
        for owner in "abcde":
            project.create(owner)
    assert project.posts == 0

    project.clock.now_s += 100
    left = list("abcde")
    for _ in range(3):
        left = [owner for owner in left if project.create(owner) is not None]

    assert left == []
    assert (project.used, project.refusals) == (20, 0)


def test_a_probe_against_the_limits_is_sent_every_ten_minutes() -> None:
    project = Project(4, told={"cores": 0})
    project.used = 4

    for _ in range(36):
        project.clock.now_s += 100
        for owner in "abcde":
            project.create(owner, was_held=True)

    assert 5 <= project.refusals <= 6


def test_a_long_hold_reads_four_times_in_ten_minutes() -> None:
    project = Project(4)
    project.create("a")
    project.create("b")
    for _ in range(600):
        project.clock.now_s += 1
        project.create("b")
    assert project.reads <= 11
    project.reads = 0

    for _ in range(590):
        project.clock.now_s += 1
        project.create("b")

    assert project.reads <= 4


def test_the_first_in_the_queue_asks_for_all() -> None:
    project = Project(0)
    project.create("a")

    first, second = project.create("b"), project.create("c")

    assert isinstance(first, Hold)
    assert isinstance(second, Hold)
    assert first.after_s <= 60 < second.after_s


def test_a_hold_ends_when_nothing_waits() -> None:
    project = Project(4)
    project.create("a")
    project.create("b")
    project.cores = 100
    project.clock.now_s += 61
    assert project.create("b") is None
    project.clock.now_s += 61
    project.reads = 0

    assert project.create("c") is None

    assert project.reads == 0


def test_an_object_that_comes_no_longer_is_not_counted() -> None:
    project = Project(0)
    project.create("a")
    project.create("b")
    assert project.holds.waiting()["", "cores"] == 1

    project.clock.now_s += quota_state.FORGOTTEN_S

    assert project.holds.waiting()["", "cores"] == 0
    project.create("c", 0)
    assert len(project.holds) == 0


def test_the_metric_counts_all_clouds() -> None:
    gc.collect()  # the clouds of other tests
    before = exported("cores")
    projects = [Project(0), Project(0)]
    for project in projects:
        for owner in "abc":
            project.create(owner)

    assert exported("cores") == before + 4


def exported(resource: str) -> float:
    (metric,) = WAITING.collect()
    return sum(sample.value for sample in metric.samples if sample.labels["resource"] == resource)


def test_while_one_reads_others_do_not_wait_in_their_thread_and_are_woken() -> None:
    project = Project(0)
    project.create("a")
    inner: list[object] = []

    def read(service: str) -> Left:
        with pytest.raises(NotYetObserved):
            project.holds.hold(project.request("c"))
        inner.append(service)
        return {"cores": 0}

    project.holds._read = read

    assert words(project.create("b"))
    assert inner == ["compute"]
    assert project.woken == ["c"]


def test_a_refusal_that_names_no_quota_of_the_create_holds_nothing() -> None:
    project = Project(100)
    request = project.request("a")
    project.holds.hold(request)
    project.holds.settle(request, QuotaExceededError("Quota exceeded, too many servers in group", status=403))

    project.clock.now_s += BURST_S
    assert project.create("b") is None
    assert project.reads == 0


def test_a_read_that_ends_by_a_fault_of_the_program_wakes_those_that_asked() -> None:
    project = Project(0)
    project.create("a")

    def read(_service: str) -> Left:
        with pytest.raises(NotYetObserved):
            project.holds.hold(project.request("c"))
        raise ZeroDivisionError

    project.holds._read = read

    with pytest.raises(ZeroDivisionError):
        project.create("b")
    assert project.woken == ["c"]


def test_a_create_that_ends_while_the_limits_are_read_may_not_be_counted_in_them() -> None:
    project = Project(4)
    first, second = (project.request(owner, was_held=True) for owner in "ab")
    assert project.holds.hold(first) is None
    project.clock.now_s += 61

    def read(_service: str) -> Left:
        project.holds.settle(first, None)
        return {"cores": 4}

    project.holds._read = read

    assert words(project.holds.hold(second)) == "quota of cores exhausted: needs 4, 0 left"


def test_a_create_right_before_a_read_may_not_be_counted_in_it() -> None:
    project = Project(8)
    assert project.create("a", was_held=True) is None
    project.clock.now_s += 55
    assert project.create("b", was_held=True) is None
    project.clock.now_s += 6
    project.told = {"cores": 4}  # all is used

    assert words(project.create("c", was_held=True)) == "quota of cores exhausted: needs 4, 0 left"


# -- places of replacements -----------------------------------------------------------------------------------------


def full_project(**told: Left) -> Project:
    """Return a project of 4 cores, all used by a server that is about to be replaced, for which another one waits."""
    project = Project(4, **told)
    project.create("mine")
    project.create("other")
    project.clock.now_s += 61
    assert words(project.create("other"))
    project.holds.places.keep("mine", "server", {"compute": {"instances": 1, "cores": 4}})
    project.used = 0
    return project


def test_what_a_replacement_frees_goes_to_its_owner_alone() -> None:
    project = full_project()
    project.clock.now_s += 61

    assert words(project.create("other")).startswith("quota of cores exhausted: needs 4, 0 left")
    assert words(project.create("third")) == (
        "quota of cores exhausted: needs 4, 4 left, 4 kept for what is being replaced"
    )
    assert project.create("mine") is None
    assert project.used == 4


def test_a_create_with_other_credentials_of_the_project_does_not_take_it_either() -> None:
    project, other = full_project(), Project(4)
    other.holds = QuotaHolds(project._read, project.clock.now, other.woken.append, project.holds.places)

    assert words(other.create("third")).endswith("4 kept for what is being replaced")


def test_neither_a_probe_nor_a_create_against_unreadable_limits_takes_it() -> None:
    project = full_project()
    project.told = ForbiddenError("no")

    for _ in range(10):
        project.clock.now_s += 80
        assert words(project.create("other"))

    assert project.used == 0


def test_a_place_is_kept_while_its_owner_asks_for_it_and_not_long_after() -> None:
    project = full_project()
    for _ in range(5):
        project.clock.now_s += KEPT_S - 1
        project.holds.places.renew("mine", "server", {})
        assert words(project.create("third", was_held=True))

    project.clock.now_s += KEPT_S + 1

    assert project.create("third", was_held=True) is None


def test_a_place_that_its_owner_took_is_not_kept_again_by_what_its_object_still_shows() -> None:
    project = full_project()
    assert project.create("mine") is None
    project.cores = 8
    project.clock.now_s += 61

    project.holds.places.renew("mine", "server", {"compute": {"cores": 4}})

    assert project.create("other", was_held=True) is None


def test_a_larger_replacement_needs_room_for_the_difference() -> None:
    project = full_project()
    project.clock.now_s += 61

    assert words(project.create("mine", 6)) == "quota of cores exhausted: needs 6, 4 left"


def test_an_owner_whose_place_was_taken_from_outside_says_so_in_the_words_of_the_cloud() -> None:
    project = full_project()
    project.used = 2  # by somebody else

    assert isinstance(project.create("mine"), QuotaExceededError)
    told = words(project.create("mine"))

    assert told.startswith(
        "quota of cores exhausted: needs 4, 2 left; what the deletion of the former one freed is not"
    )
    assert told.endswith("Quota exceeded for cores: Requested (request req-1)")


def test_an_owner_whose_create_failed_for_another_reason_keeps_its_place() -> None:
    project = full_project()
    request = project.request("mine")
    assert project.holds.hold(request) is None
    project.holds.settle(request, InvalidSpecError("no"))

    assert words(project.create("third"))
    assert project.create("mine") is None
