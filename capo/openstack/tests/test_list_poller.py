"""When the poller lists what, and which keys that wakes."""

from typing import Any

import pytest

from capo.openstack.tests.builders import OTHER, OWNER, FakeCloud, server


@pytest.fixture
def cloud() -> FakeCloud:
    made = FakeCloud()
    made.poller.owners.register(OWNER, "key")
    return made


def test_demands_that_come_together_share_one_list_and_all_are_woken(cloud: FakeCloud) -> None:
    cloud.poller.demand("port", "a")
    cloud.clock.advance(0.05)
    cloud.poller.demand("port", "b")

    listed = cloud.run()

    assert listed == ["port"]
    assert cloud.lists("port") == 1
    assert sorted(map(str, cloud.woken)) == ["a", "b"]


def test_a_list_waits_a_moment_for_others_to_join(cloud: FakeCloud) -> None:
    cloud.poller.demand("port", "a")

    assert cloud.poller.due() == []
    assert cloud.poller.next_due_s() == pytest.approx(cloud.clock.now() + 0.1)


def test_a_demand_is_not_met_by_a_list_that_begins_too_early(cloud: FakeCloud) -> None:
    cloud.poller.demand("port", "late", cloud.clock.now() + 10)
    cloud.poller.demand("port", "early")

    cloud.run()

    assert cloud.woken == ["early"]
    cloud.clock.advance(10)
    cloud.run()
    assert cloud.woken == ["early", "late"]


def test_nothing_is_listed_that_nobody_wants(cloud: FakeCloud) -> None:
    cloud.clock.advance(10_000)

    assert cloud.run() == []
    assert cloud.poller.next_due_s() == float("inf")


def test_only_the_projects_own_are_listed(cloud: FakeCloud) -> None:
    cloud.poller.demand("port", "a")
    cloud.poller.demand("server", "a")

    cloud.run()

    assert dict(cloud.asked) == {"port": {"project_id": cloud.project_id}, "server": {}}


def test_a_poll_goes_on_ever_slower_while_nothing_changes(cloud: FakeCloud) -> None:
    cloud.put("volume", {"id": "v", "status": "creating"})
    cloud.poller.upsert("volume", {"id": "v", "status": "creating"})
    cloud.poller.poll("volume", "key", 60)
    pauses = []

    for _ in range(12):
        began_s = cloud.clock.now()
        cloud.clock.time_s = cloud.poller.next_due_s()
        pauses.append(cloud.clock.now() - began_s)
        cloud.poller.run(cloud.poller.due()[0])

    assert pauses[0] == pytest.approx(1.0)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(5.0)


def pauses_while(cloud: FakeCloud, *changes: str) -> list[float]:
    """Return the pause before each list; the servers named by one element become active before its list.

    Keys that a list wakes are reconciled at once, and wait again.
    """
    pauses = []
    for ids in changes:
        cloud.put("server", *(server(id_, None) for id_ in ids))
        began_s = cloud.clock.now()
        cloud.clock.time_s = cloud.poller.next_due_s()
        pauses.append(round(cloud.clock.now() - began_s, 3))
        cloud.woken.clear()
        cloud.poller.run(cloud.poller.due()[0])
        for key in cloud.woken:
            cloud.poller.poll("server", key, 600)
    return pauses


def test_what_was_begun_together_is_looked_for_soon_after_the_first_of_it(cloud: FakeCloud) -> None:
    for key in ("a", "b"):
        cloud.put("server", server(key, None, status="BUILD"))
        cloud.poller.upsert("server", server(key, None, status="BUILD"))
        cloud.poller.claim("server", key, key)
        cloud.poller.poll("server", key, 600)

    assert pauses_while(cloud, "", "a", "b", "") == [1.0, 1.3, 0.3, 1.0]


def test_news_of_what_goes_on_does_not_count_as_the_first_end(cloud: FakeCloud) -> None:
    for key in ("a", "b"):
        cloud.put("server", server(key, None, status="BUILD", addresses={"net": []}))
        cloud.poller.upsert("server", server(key, None, status="BUILD"))
        cloud.poller.claim("server", key, key)
        cloud.poller.poll("server", key, 600)

    assert pauses_while(cloud, "", "a", "b") == [1.0, 1.0, 0.3]


def test_changes_one_after_the_other_are_looked_for_at_an_even_pace(cloud: FakeCloud) -> None:
    for key in "abcdefg":
        cloud.put("server", server(key, None, status="BUILD"))
        cloud.poller.upsert("server", server(key, None, status="BUILD"))
        cloud.poller.claim("server", key, key)
        cloud.poller.poll("server", key, 600)

    assert pauses_while(cloud, "a", "", "b", "c", "d", "e") == [1.0, 0.3, 1.0, 1.0, 1.0, 1.0]


def test_the_last_one_that_was_waited_for_is_not_looked_for_again(cloud: FakeCloud) -> None:
    cloud.put("server", server("a", None, status="BUILD"))
    cloud.poller.upsert("server", server("a", None, status="BUILD"))
    cloud.poller.claim("server", "a", "key")
    cloud.poller.poll("server", "key", 600)

    assert pauses_while(cloud, "", "a", "") == [1.0, 1.3, 1.0]


def test_a_change_makes_looks_quicker_again(cloud: FakeCloud) -> None:
    cloud.poller.upsert("server", server(status="BUILD"))
    cloud.put("server", server(status="BUILD"))
    cloud.poller.poll("server", "key", 600)
    pauses_while(cloud, *[""] * 12)

    cloud.put("server", server(status="ACTIVE"))
    pauses_while(cloud, "")

    assert cloud.poller.next_due_s() - cloud.clock.now() < 4.0


def looks_in(cloud: FakeCloud, seconds: float) -> int:
    """Advance the clock while a key polls in each reconcile; return the number of lists."""
    ends_s, count = cloud.clock.now() + seconds, 0
    while (due_s := cloud.poller.next_due_s()) < ends_s:
        cloud.clock.time_s = due_s
        for kind in cloud.poller.due():
            cloud.poller.run(kind)
            count += 1
        for key in cloud.woken:
            cloud.poller.begin_pass(key)
            cloud.poller.poll("volume", key, 900)
        cloud.woken.clear()
    cloud.clock.time_s = ends_s
    return count


def test_what_is_waited_for_in_vain_is_looked_at_rarely_after_ten_minutes_for_newcomers_often(cloud: FakeCloud) -> None:
    cloud.poller.poll("volume", "key", 900)
    assert looks_in(cloud, 600) > 100

    assert looks_in(cloud, 3000) <= 101

    cloud.poller.poll("volume", "new", 900)
    assert looks_in(cloud, 60) >= 12


def test_a_poll_ends_in_time_and_wakes_who_waited(cloud: FakeCloud) -> None:
    cloud.poller.poll("volume", "key", 3)
    cloud.clock.advance(4)

    cloud.run()

    assert cloud.woken == ["key"]
    assert cloud.poller.next_due_s() == float("inf")


def look_at_a_server_in_build(cloud: FakeCloud, *keys: str, **found: Any) -> None:
    """List servers once for keys that wait for one in BUILD, which the list shows with these fields."""
    cloud.poller.upsert("server", server(status="BUILD"))
    cloud.put("server", server(**found))
    for key in keys:
        cloud.poller.poll("server", key, 600)
    cloud.clock.advance(1)
    cloud.run()


def test_what_woke_a_key_is_not_looked_for_before_its_next_pass(cloud: FakeCloud) -> None:
    look_at_a_server_in_build(cloud, "key", status="ACTIVE")

    assert cloud.woken == ["key"]
    assert cloud.poller.next_due_s() == float("inf")


def test_news_of_what_goes_on_do_not_end_the_looks_for_its_end(cloud: FakeCloud) -> None:
    look_at_a_server_in_build(cloud, "key", status="BUILD", addresses={"net": []})

    assert cloud.woken == ["key"]
    assert cloud.poller.next_due_s() <= cloud.clock.now() + 5


def test_those_who_still_wait_are_looked_for_although_another_was_woken(cloud: FakeCloud) -> None:
    look_at_a_server_in_build(cloud, "key", "other", status="ACTIVE")

    assert cloud.woken == ["key"]
    assert cloud.poller.next_due_s() <= cloud.clock.now() + 5


def test_a_pass_that_does_not_ask_again_ends_its_poll(cloud: FakeCloud) -> None:
    cloud.poller.poll("volume", "key", 600)

    cloud.poller.begin_pass("key")

    assert cloud.poller.next_due_s() == float("inf")


def test_passes_that_ask_again_do_not_put_off_the_next_look(cloud: FakeCloud) -> None:
    cloud.poller.poll("volume", "key", 600)
    due_s = cloud.poller.next_due_s()

    for _ in range(5):
        cloud.clock.advance(0.3)
        cloud.poller.begin_pass("key")
        cloud.poller.poll("volume", "key", 600)

    assert cloud.poller.next_due_s() == due_s


def test_a_newcomer_is_served_at_full_speed(cloud: FakeCloud) -> None:
    cloud.poller.poll("volume", "key", 600)
    for _ in range(12):
        cloud.clock.time_s = cloud.poller.next_due_s()
        cloud.poller.run(cloud.poller.due()[0])

    cloud.poller.poll("volume", "new", 600)

    assert cloud.poller.next_due_s() - cloud.clock.now() <= 1.0


def test_a_change_wakes_the_owner_and_nobody_else(cloud: FakeCloud) -> None:
    cloud.poller.owners.register(OTHER, "other")
    cloud.put("server", server("mine", status="BUILD"), server("theirs", owner=OTHER))
    cloud.poller.demand("server", "someone")
    cloud.run()
    cloud.woken.clear()

    cloud.put("server", server("mine", status="ACTIVE"))
    cloud.poller.demand("server", "someone")
    cloud.run()

    assert sorted(map(str, cloud.woken)) == ["key", "someone"]


def test_what_nobody_cares_about_wakes_nobody(cloud: FakeCloud) -> None:
    cloud.put("server", server(progress=1))
    cloud.poller.demand("server", "someone")
    cloud.run()
    cloud.woken.clear()

    cloud.put("server", server(progress=2))
    cloud.poller.demand("server", "someone")
    cloud.run()

    assert cloud.woken == ["someone"]


def test_a_claimed_resource_without_stamp_wakes_who_claimed_it(cloud: FakeCloud) -> None:
    cloud.poller.claim("server", "s1", "key")
    cloud.put("server", server(role=None))
    cloud.poller.demand("server", "someone")

    cloud.run()

    assert "key" in cloud.woken


def test_a_vanished_resource_wakes_its_owner(cloud: FakeCloud) -> None:
    cloud.put("server", server())
    cloud.poller.demand("server", "someone")
    cloud.run()
    cloud.woken.clear()
    cloud.bodies["server"].clear()

    cloud.poller.demand("server", "someone")
    cloud.run()

    assert "key" in cloud.woken
    assert cloud.poller.item("server", "s1") is None


def test_tracked_servers_are_looked_at_once_a_minute(cloud: FakeCloud) -> None:
    cloud.poller.track("server", "key")
    cloud.run()

    due_in_s = cloud.poller.next_due_s() - cloud.clock.now()

    assert due_in_s == pytest.approx(60.0, abs=1)


@pytest.mark.parametrize("kind", ["port", "load_balancer"])
def test_other_kinds_are_not_looked_at_when_all_is_still(cloud: FakeCloud, kind: str) -> None:
    cloud.poller.track(kind, "key")

    assert cloud.poller.next_due_s() == float("inf")


def test_idle_looks_end_with_the_last_server(cloud: FakeCloud) -> None:
    cloud.poller.track("server", "key")
    cloud.poller.track("server", "other")
    cloud.poller.untrack("server", "key")

    cloud.poller.unregister(OWNER)
    assert cloud.poller.next_due_s() < float("inf")
    cloud.poller.untrack("server", "other")

    assert cloud.poller.next_due_s() == float("inf")


def test_at_most_three_lists_of_a_cloud_run_at_once(cloud: FakeCloud) -> None:
    for kind in ("port", "network", "subnet", "router", "server"):
        cloud.poller.demand(kind, "a")
    cloud.clock.advance(1)

    begun = cloud.poller.due()

    assert len(begun) == 3
    assert cloud.poller.due() == []
    assert cloud.poller.next_due_s() == float("inf")


def test_a_kind_is_not_listed_twice_at_once(cloud: FakeCloud) -> None:
    cloud.poller.demand("port", "a")
    cloud.clock.advance(1)
    cloud.poller.due()

    cloud.poller.demand("port", "b")
    cloud.clock.advance(1)

    assert cloud.poller.due() == []


def test_an_object_that_makes_no_pass_any_more_is_forgotten(cloud: FakeCloud) -> None:
    cloud.poller.track("server", "key")
    cloud.clock.advance(1801)

    assert not cloud.poller.is_in_use(cloud.fingerprint)
    assert cloud.poller.next_due_s() == float("inf")


def test_a_former_object_of_the_same_name_that_is_forgotten_ends_nothing_of_the_new_one(cloud: FakeCloud) -> None:
    cloud.poller.owners.register(OTHER, "key")
    cloud.poller.poll("server", "key", 900)
    cloud.poller.track("server", "key")

    cloud.poller.unregister(OWNER)

    cloud.clock.advance(61)
    assert cloud.run() == ["server"]


def test_closing_wakes_everybody_and_lists_nothing_more(cloud: FakeCloud) -> None:
    cloud.poller.demand("port", "key")

    cloud.poller.close()
    cloud.poller.demand("port", "late")

    assert cloud.woken == ["key", "late"]
    assert cloud.run() == []
