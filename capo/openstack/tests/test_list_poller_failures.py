"""Failing lists: which callers get the error, and when the lists are retried."""

import pytest

from capo.errors import CloudUnavailableError, NotAuthorizedError, RateLimitedError
from capo.openstack.tests.builders import OWNER, FakeCloud


@pytest.fixture
def cloud() -> FakeCloud:
    made = FakeCloud()
    made.poller.owners.register(OWNER, "key")
    return made


def test_a_failed_list_wakes_who_demanded_it_and_is_tried_again_ever_later(cloud: FakeCloud) -> None:
    cloud.error = CloudUnavailableError("down")
    pauses = []

    for _ in range(8):
        cloud.poller.demand("port", "a")
        cloud.clock.time_s = cloud.poller.next_due_s()
        cloud.poller.run(cloud.poller.due()[0])
        cloud.poller.demand("port", "a")
        pauses.append(cloud.poller.next_due_s() - cloud.clock.now())

    assert cloud.woken == ["a"] * 8
    assert [round(pause) for pause in pauses] == [2, 4, 8, 16, 32, 60, 60, 60]
    assert cloud.poller.error("port") is cloud.error


def test_a_list_that_comes_after_all_clears_the_failure(cloud: FakeCloud) -> None:
    cloud.error = CloudUnavailableError("down")
    cloud.poller.demand("port", "a")
    cloud.run()
    cloud.error = None

    cloud.clock.advance(60)
    cloud.poller.demand("port", "a")
    cloud.run()

    assert cloud.poller.error("port") is None


def test_those_who_wait_for_a_change_are_told_of_lists_that_go_on_failing(cloud: FakeCloud) -> None:
    cloud.poller.poll("server", "key", 600)
    cloud.error = CloudUnavailableError("down")
    cloud.clock.time_s = cloud.poller.next_due_s()
    cloud.run()
    assert (cloud.poller.trouble("server"), cloud.woken) == (None, [])

    cloud.clock.time_s = cloud.poller.next_due_s()
    cloud.run()

    assert (cloud.poller.trouble("server"), cloud.woken) == (cloud.error, ["key"])


def test_those_who_wait_for_a_change_are_told_at_once_that_the_credentials_are_refused(cloud: FakeCloud) -> None:
    cloud.poller.poll("server", "key", 600)
    cloud.error = NotAuthorizedError("no")
    cloud.clock.time_s = cloud.poller.next_due_s()

    cloud.run()

    assert (cloud.poller.trouble("server"), cloud.woken) == (cloud.error, ["key"])


def test_a_failure_of_long_ago_says_nothing(cloud: FakeCloud) -> None:
    cloud.error = CloudUnavailableError("down")
    cloud.poller.demand("port", "a")
    cloud.run()

    cloud.clock.advance(600)

    assert cloud.poller.error("port") is None


@pytest.mark.parametrize(("asked_s", "pause_s"), [(30, 30), (86_400, 300)])
def test_the_cloud_may_ask_for_a_longer_pause_of_five_minutes_at_most(
    cloud: FakeCloud, asked_s: float, pause_s: float
) -> None:
    cloud.error = RateLimitedError("slowly", retry_after_s=asked_s)
    cloud.poller.demand("port", "a")
    cloud.run()

    cloud.poller.demand("port", "a")

    assert cloud.poller.next_due_s() == pytest.approx(cloud.clock.now() + pause_s)


def test_a_fault_of_the_program_does_not_end_the_observer(cloud: FakeCloud, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    cloud.during_list = broken
    cloud.poller.demand("port", "a")

    cloud.run()

    assert isinstance(cloud.poller.error("port"), CloudUnavailableError)
    assert cloud.woken == ["a"]
    assert "fault of the program" in caplog.text


def test_refused_credentials_are_no_failure_of_the_cloud(cloud: FakeCloud) -> None:
    cloud.error = NotAuthorizedError("no")
    cloud.poller.demand("port", "a")
    cloud.run()
    assert cloud.poller.trouble("port") is cloud.error

    assert not cloud.poller.is_failing()


def test_a_list_that_cannot_be_applied_counts_as_failed(cloud: FakeCloud, caplog: pytest.LogCaptureFixture) -> None:
    cloud.bodies["port"] = {"p1": {"name": "without an id"}}
    cloud.poller.demand("port", "a")

    cloud.run()

    assert isinstance(cloud.poller.error("port"), CloudUnavailableError)
    assert cloud.woken == ["a"]
    assert "fault of the program" in caplog.text
