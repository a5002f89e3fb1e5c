import threading
import time

import pytest

from capo.errors import CloudUnavailableError, NotAuthorizedError, RateLimitedError
from capo.openstack.observer import Observer, ObserverPool
from capo.openstack.tests.builders import OTHER, OWNER, FakeClock, FakeCloud, port, server


@pytest.fixture
def cloud() -> FakeCloud:
    made = FakeCloud()
    made.observer.register(OWNER, "key")
    return made


def test_demands_that_come_together_share_one_list_and_all_are_woken(cloud: FakeCloud) -> None:
    cloud.observer.demand("port", "a")
    cloud.clock.advance(0.05)
    cloud.observer.demand("port", "b")

    listed = cloud.run()

    assert listed == ["port"]
    assert cloud.lists("port") == 1
    assert sorted(map(str, cloud.woken)) == ["a", "b"]


def test_a_list_waits_a_moment_for_others_to_join(cloud: FakeCloud) -> None:
    cloud.observer.demand("port", "a")

    assert cloud.observer.due() == []
    assert cloud.observer.next_due_s() == pytest.approx(cloud.clock.now() + 0.1)


def test_a_demand_is_not_met_by_a_list_that_begins_too_early(cloud: FakeCloud) -> None:
    cloud.observer.demand("port", "late", cloud.clock.now() + 10)
    cloud.observer.demand("port", "early")

    cloud.run()

    assert cloud.woken == ["early"]
    cloud.clock.advance(10)
    cloud.run()
    assert cloud.woken == ["early", "late"]


def test_nothing_is_listed_that_nobody_wants(cloud: FakeCloud) -> None:
    cloud.clock.advance(10_000)

    assert cloud.run() == []
    assert cloud.observer.next_due_s() == float("inf")


def test_only_the_projects_own_are_listed(cloud: FakeCloud) -> None:
    cloud.observer.demand("port", "a")
    cloud.observer.demand("server", "a")

    cloud.run()

    assert dict(cloud.asked) == {"port": {"project_id": cloud.project_id}, "server": {}}


def test_a_poll_goes_on_ever_slower_while_nothing_changes(cloud: FakeCloud) -> None:
    cloud.put("volume", {"id": "v", "status": "creating"})
    cloud.observer.poll("volume", "key", 60)
    pauses = []

    for _ in range(12):
        began_s = cloud.clock.now()
        cloud.clock.time_s = cloud.observer.next_due_s()
        pauses.append(cloud.clock.now() - began_s)
        cloud.observer.run(cloud.observer.due()[0])

    assert pauses[0] == pytest.approx(1.0)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(5.0)


def test_a_change_makes_looks_quicker_again(cloud: FakeCloud) -> None:
    cloud.put("server", server(status="BUILD"))
    cloud.observer.poll("server", "key", 600)
    for _ in range(12):
        cloud.clock.time_s = cloud.observer.next_due_s()
        cloud.observer.run(cloud.observer.due()[0])

    cloud.put("server", server(status="ACTIVE"))
    cloud.clock.time_s = cloud.observer.next_due_s()
    cloud.observer.run(cloud.observer.due()[0])

    assert cloud.observer.next_due_s() - cloud.clock.now() < 4.0


def test_a_poll_ends_in_time_and_wakes_who_waited(cloud: FakeCloud) -> None:
    cloud.observer.poll("volume", "key", 3)
    cloud.clock.advance(4)

    cloud.run()

    assert cloud.woken == ["key"]
    assert cloud.observer.next_due_s() == float("inf")


def test_a_pass_that_does_not_ask_again_ends_its_poll(cloud: FakeCloud) -> None:
    cloud.observer.poll("volume", "key", 600)

    cloud.observer.begin_pass("key")

    assert cloud.observer.next_due_s() == float("inf")


def test_passes_that_ask_again_do_not_put_off_the_next_look(cloud: FakeCloud) -> None:
    cloud.observer.poll("volume", "key", 600)
    due_s = cloud.observer.next_due_s()

    for _ in range(5):
        cloud.clock.advance(0.3)
        cloud.observer.begin_pass("key")
        cloud.observer.poll("volume", "key", 600)

    assert cloud.observer.next_due_s() == due_s


def test_a_newcomer_is_served_at_full_speed(cloud: FakeCloud) -> None:
    cloud.observer.poll("volume", "key", 600)
    for _ in range(12):
        cloud.clock.time_s = cloud.observer.next_due_s()
        cloud.observer.run(cloud.observer.due()[0])

    cloud.observer.poll("volume", "new", 600)

    assert cloud.observer.next_due_s() - cloud.clock.now() <= 1.0


def test_a_change_wakes_the_owner_and_nobody_else(cloud: FakeCloud) -> None:
    cloud.observer.register(OTHER, "other")
    cloud.put("server", server("mine", status="BUILD"), server("theirs", owner=OTHER))
    cloud.observer.demand("server", "someone")
    cloud.run()
    cloud.woken.clear()

    cloud.put("server", server("mine", status="ACTIVE"))
    cloud.observer.demand("server", "someone")
    cloud.run()

    assert sorted(map(str, cloud.woken)) == ["key", "someone"]


def test_what_nobody_cares_about_wakes_nobody(cloud: FakeCloud) -> None:
    cloud.put("server", server(progress=1))
    cloud.observer.demand("server", "someone")
    cloud.run()
    cloud.woken.clear()

    cloud.put("server", server(progress=2))
    cloud.observer.demand("server", "someone")
    cloud.run()

    assert cloud.woken == ["someone"]


def test_a_claimed_resource_without_stamp_wakes_who_claimed_it(cloud: FakeCloud) -> None:
    cloud.observer.claim("server", "s1", "key")
    cloud.put("server", server(role=None))
    cloud.observer.demand("server", "someone")

    cloud.run()

    assert "key" in cloud.woken


def test_a_vanished_resource_wakes_its_owner(cloud: FakeCloud) -> None:
    cloud.put("server", server())
    cloud.observer.demand("server", "someone")
    cloud.run()
    cloud.woken.clear()
    cloud.bodies["server"].clear()

    cloud.observer.demand("server", "someone")
    cloud.run()

    assert "key" in cloud.woken
    assert cloud.observer.item("server", "s1") is None


def test_tracked_servers_are_looked_at_once_a_minute(cloud: FakeCloud) -> None:
    cloud.observer.track("server", "key")
    cloud.run()

    due_in_s = cloud.observer.next_due_s() - cloud.clock.now()

    assert due_in_s == pytest.approx(60.0, abs=1)


@pytest.mark.parametrize("kind", ["port", "load_balancer"])
def test_other_kinds_are_not_looked_at_when_all_is_still(cloud: FakeCloud, kind: str) -> None:
    cloud.observer.track(kind, "key")

    assert cloud.observer.next_due_s() == float("inf")


def test_idle_looks_end_with_the_last_server(cloud: FakeCloud) -> None:
    cloud.observer.track("server", "key")
    cloud.observer.track("server", "other")
    cloud.observer.untrack("server", "key")

    cloud.observer.unregister(OWNER)
    assert cloud.observer.next_due_s() < float("inf")
    cloud.observer.untrack("server", "other")

    assert cloud.observer.next_due_s() == float("inf")


def test_after_a_full_list_changes_suffice_from_a_while_before_in_the_clouds_own_time(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.observer.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    assert [params for _, params in cloud.asked] == [{}, {"changes-since": "2023-11-14T22:13:10Z"}]


def test_without_a_date_the_newest_time_stamp_is_the_clouds_time(cloud: FakeCloud) -> None:
    cloud.put("server", server(updated="2023-11-14T22:13:20Z"), server("s2", updated="2023-11-14T22:00:00Z"))
    cloud.observer.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    assert cloud.asked[-1][1] == {"changes-since": "2023-11-14T22:13:10Z"}


def test_everything_is_listed_again_after_ten_minutes(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.observer.track("server", "key")
    cloud.run()
    cloud.clock.advance(601)

    cloud.run()

    assert cloud.asked[-1][1] == {}


def test_a_demand_is_met_by_a_list_of_everything_only(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.observer.track("server", "key")
    cloud.run()

    cloud.observer.demand("server", "key")
    cloud.run()

    assert cloud.asked[-1][1] == {}


def test_everything_is_listed_more_often_while_somebody_waits(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.observer.track("server", "key")
    cloud.run()
    cloud.observer.poll("server", "key", 600)

    for pause_s, params in ((29, {"changes-since": "2023-11-14T22:13:10Z"}), (2, {})):
        cloud.clock.advance(pause_s)
        cloud.run()
        assert cloud.asked[-1][1] == params


def test_a_list_of_changes_leaves_the_rest_alone_and_confirms_it(cloud: FakeCloud) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, [server("s2", status="SHUTOFF")]
    cloud.put("server", server("s1"), server("s2"))
    cloud.observer.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    unchanged, changed = cloud.observer.item("server", "s1"), cloud.observer.item("server", "s2")
    assert unchanged is not None
    assert unchanged.as_of_s == cloud.clock.now()
    assert changed is not None
    assert changed.body["status"] == "SHUTOFF"


def test_a_deleted_server_is_still_its_owners_although_it_shows_no_tags(cloud: FakeCloud) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, [{"id": "s1", "name": "x", "status": "DELETED", "tags": []}]
    cloud.put("server", server("s1"))
    cloud.observer.track("server", "key")
    cloud.run()
    cloud.woken.clear()
    cloud.clock.advance(60)

    cloud.run()

    (item,) = cloud.observer.of_owner("server", OWNER)
    assert item.is_deleted
    assert cloud.woken == ["key"]


def test_deleted_servers_that_nobody_knew_are_not_kept(cloud: FakeCloud) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, [server("old", status="DELETED", tags=[])]
    cloud.observer.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    assert cloud.observer.snapshot("server").items == {}


def test_a_server_of_a_cell_that_is_down_keeps_its_owner(cloud: FakeCloud) -> None:
    cloud.put("server", server("s1"))
    cloud.observer.demand("server", "a")
    cloud.run()
    cloud.bodies["server"]["s1"] = {"id": "s1", "status": "UNKNOWN"}

    cloud.observer.demand("server", "a")
    cloud.run()

    (item,) = cloud.observer.of_owner("server", OWNER)
    assert item.body["status"] == "UNKNOWN"
    assert cloud.observer.unreadable("server") == 0


def test_servers_that_cannot_be_told_apart_are_counted(cloud: FakeCloud) -> None:
    cloud.put("server", {"id": "s1", "status": "UNKNOWN"})

    cloud.observer.demand("server", "a")
    cloud.run()

    assert cloud.observer.unreadable("server") == 1


def test_the_answer_of_a_write_survives_a_list_that_began_before_it(cloud: FakeCloud) -> None:
    def made_meanwhile() -> None:
        cloud.clock.advance(0.5)
        cloud.observer.learn("port", port("new"))

    cloud.during_list = made_meanwhile
    cloud.observer.demand("port", "a")

    cloud.run()

    assert cloud.observer.item("port", "new") is not None


def test_an_older_body_in_such_a_list_does_not_undo_what_was_learnt(cloud: FakeCloud) -> None:
    def changed_meanwhile() -> None:
        cloud.clock.advance(0.5)
        cloud.observer.learn("port", port("p1", device_id="new"))

    cloud.put("port", port("p1", device_id="old"))
    cloud.during_list = changed_meanwhile
    cloud.observer.demand("port", "a")

    cloud.run()

    item = cloud.observer.item("port", "p1")
    assert item is not None
    assert item.body["device_id"] == "new"


def test_what_is_doubted_is_not_believed_from_a_list_that_began_before(cloud: FakeCloud) -> None:
    def doubted_meanwhile() -> None:
        cloud.clock.advance(0.5)
        cloud.observer.doubt("port", "p1")

    cloud.put("port", port("p1"))
    cloud.during_list = doubted_meanwhile
    cloud.observer.demand("port", "a")

    cloud.run()

    assert cloud.observer.item("port", "p1") is None
    assert not cloud.observer.is_gone("port", "p1")


def test_what_was_deleted_does_not_come_back_with_a_list_that_began_before(cloud: FakeCloud) -> None:
    def deleted_meanwhile() -> None:
        cloud.clock.advance(0.5)
        cloud.observer.forget("port", "p1")

    cloud.put("port", port("p1"))
    cloud.during_list = deleted_meanwhile
    cloud.observer.demand("port", "a")

    cloud.run()

    assert cloud.observer.item("port", "p1") is None
    assert cloud.observer.is_gone("port", "p1")


def test_what_a_later_list_shows_is_there_after_all(cloud: FakeCloud) -> None:
    cloud.put("port", port("p1"))
    cloud.observer.forget("port", "p1")

    cloud.observer.demand("port", "a")
    cloud.run()

    assert cloud.observer.item("port", "p1") is not None
    assert not cloud.observer.is_gone("port", "p1")


def test_a_failed_list_wakes_who_demanded_it_and_is_tried_again_ever_later(cloud: FakeCloud) -> None:
    cloud.error = CloudUnavailableError("down")
    pauses = []

    for _ in range(8):
        cloud.observer.demand("port", "a")
        cloud.clock.time_s = cloud.observer.next_due_s()
        cloud.observer.run(cloud.observer.due()[0])
        cloud.observer.demand("port", "a")
        pauses.append(cloud.observer.next_due_s() - cloud.clock.now())

    assert cloud.woken == ["a"] * 8
    assert [round(pause) for pause in pauses] == [2, 4, 8, 16, 32, 60, 60, 60]
    assert cloud.observer.error("port") is cloud.error


def test_a_list_that_comes_after_all_clears_the_failure(cloud: FakeCloud) -> None:
    cloud.error = CloudUnavailableError("down")
    cloud.observer.demand("port", "a")
    cloud.run()
    cloud.error = None

    cloud.clock.advance(60)
    cloud.observer.demand("port", "a")
    cloud.run()

    assert cloud.observer.error("port") is None


def test_those_who_wait_for_a_change_are_told_of_lists_that_go_on_failing(cloud: FakeCloud) -> None:
    cloud.observer.poll("server", "key", 600)
    cloud.error = CloudUnavailableError("down")
    cloud.clock.time_s = cloud.observer.next_due_s()
    cloud.run()
    assert (cloud.observer.trouble("server"), cloud.woken) == (None, [])

    cloud.clock.time_s = cloud.observer.next_due_s()
    cloud.run()

    assert (cloud.observer.trouble("server"), cloud.woken) == (cloud.error, ["key"])


def test_those_who_wait_for_a_change_are_told_at_once_that_the_credentials_are_refused(cloud: FakeCloud) -> None:
    cloud.observer.poll("server", "key", 600)
    cloud.error = NotAuthorizedError("no")
    cloud.clock.time_s = cloud.observer.next_due_s()

    cloud.run()

    assert (cloud.observer.trouble("server"), cloud.woken) == (cloud.error, ["key"])


def test_a_failure_of_long_ago_says_nothing(cloud: FakeCloud) -> None:
    cloud.error = CloudUnavailableError("down")
    cloud.observer.demand("port", "a")
    cloud.run()

    cloud.clock.advance(600)

    assert cloud.observer.error("port") is None


def test_the_cloud_may_ask_for_a_longer_pause(cloud: FakeCloud) -> None:
    cloud.error = RateLimitedError("slowly", retry_after_s=30)
    cloud.observer.demand("port", "a")
    cloud.run()

    cloud.observer.demand("port", "a")

    assert cloud.observer.next_due_s() == pytest.approx(cloud.clock.now() + 30)


def test_a_fault_of_the_program_does_not_end_the_observer(cloud: FakeCloud, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    cloud.during_list = broken
    cloud.observer.demand("port", "a")

    cloud.run()

    assert isinstance(cloud.observer.error("port"), CloudUnavailableError)
    assert cloud.woken == ["a"]
    assert "fault of the program" in caplog.text


def test_at_most_three_lists_of_a_cloud_run_at_once(cloud: FakeCloud) -> None:
    for kind in ("port", "network", "subnet", "router", "server"):
        cloud.observer.demand(kind, "a")
    cloud.clock.advance(1)

    begun = cloud.observer.due()

    assert len(begun) == 3
    assert cloud.observer.due() == []
    assert cloud.observer.next_due_s() == float("inf")


def test_a_kind_is_not_listed_twice_at_once(cloud: FakeCloud) -> None:
    cloud.observer.demand("port", "a")
    cloud.clock.advance(1)
    cloud.observer.due()

    cloud.observer.demand("port", "b")
    cloud.clock.advance(1)

    assert cloud.observer.due() == []


def test_an_object_that_makes_no_pass_any_more_is_forgotten(cloud: FakeCloud) -> None:
    cloud.observer.track("server", "key")
    cloud.clock.advance(1801)

    assert not cloud.observer.is_in_use()
    assert cloud.observer.next_due_s() == float("inf")


def test_closing_wakes_everybody_and_lists_nothing_more(cloud: FakeCloud) -> None:
    cloud.observer.demand("port", "key")

    cloud.observer.close()
    cloud.observer.demand("port", "late")

    assert cloud.woken == ["key", "late"]
    assert cloud.run() == []


def test_the_pool_lists_what_is_demanded() -> None:
    done = threading.Event()
    pool = ObserverPool(time.time)
    source = FakeCloud(FakeClock())
    observer = Observer(source, time.time, lambda _key: done.set())

    pool.add(observer)
    observer.demand("port", "a")

    assert done.wait(5)
    assert source.lists("port") == 1
    observer.close()
    pool.stop()
