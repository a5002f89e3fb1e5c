"""Results of a list: of everything, of changes, of one that began before a write."""

from collections.abc import Callable

import pytest

from capo.openstack.resource_cache import everything
from capo.openstack.tests.builders import OWNER, FakeCloud, port, server


@pytest.fixture
def cloud() -> FakeCloud:
    made = FakeCloud()
    made.poller.owners.register(OWNER, "key")
    return made


def test_after_a_full_list_changes_suffice_from_a_while_before_in_the_clouds_own_time(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.poller.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    assert [params for _, params in cloud.asked] == [{}, {"changes-since": "2023-11-14T22:13:10Z"}]


def test_without_a_date_the_newest_time_stamp_is_the_clouds_time(cloud: FakeCloud) -> None:
    cloud.put("server", server(updated="2023-11-14T22:13:20Z"), server("s2", updated="2023-11-14T22:00:00Z"))
    cloud.poller.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    assert cloud.asked[-1][1] == {"changes-since": "2023-11-14T22:13:10Z"}


def test_everything_is_listed_again_after_ten_minutes(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.poller.track("server", "key")
    cloud.run()
    cloud.clock.advance(601)

    cloud.run()

    assert cloud.asked[-1][1] == {}


def test_a_demand_is_met_by_a_list_of_everything_only(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.poller.track("server", "key")
    cloud.run()

    cloud.poller.demand("server", "key")
    cloud.run()

    assert cloud.asked[-1][1] == {}


def test_everything_is_listed_more_often_while_somebody_waits(cloud: FakeCloud) -> None:
    cloud.cloud_s = 1_700_000_000.0
    cloud.poller.track("server", "key")
    cloud.run()
    cloud.poller.poll("server", "key", 600)

    for pause_s, params in ((29, {"changes-since": "2023-11-14T22:13:10Z"}), (2, {})):
        cloud.clock.advance(pause_s)
        cloud.run()
        assert cloud.asked[-1][1] == params


def test_a_list_of_changes_leaves_the_rest_alone_and_confirms_it(cloud: FakeCloud) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, [server("s2", status="SHUTOFF")]
    cloud.put("server", server("s1"), server("s2"))
    cloud.poller.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    unchanged, changed = cloud.poller.item("server", "s1"), cloud.poller.item("server", "s2")
    assert unchanged is not None
    assert unchanged.as_of_s == cloud.clock.now()
    assert changed is not None
    assert changed.body["status"] == "SHUTOFF"


def test_a_deleted_server_is_still_its_owners_although_it_shows_no_tags(cloud: FakeCloud) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, [{"id": "s1", "name": "x", "status": "DELETED", "tags": []}]
    cloud.put("server", server("s1"))
    cloud.poller.track("server", "key")
    cloud.run()
    cloud.woken.clear()
    cloud.clock.advance(60)

    cloud.run()

    (item,) = cloud.poller.of_owner("server", OWNER)
    assert item.is_deleted
    assert cloud.woken == ["key"]


def test_deleted_servers_that_nobody_knew_are_not_kept(cloud: FakeCloud) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, [server("old", status="DELETED", tags=[])]
    cloud.poller.track("server", "key")
    cloud.run()
    cloud.clock.advance(60)

    cloud.run()

    assert cloud.poller.select("server", everything) == []


def test_a_server_of_a_cell_that_is_down_keeps_its_owner(cloud: FakeCloud) -> None:
    cloud.put("server", server("s1"))
    cloud.poller.demand("server", "a")
    cloud.run()
    cloud.bodies["server"]["s1"] = {"id": "s1", "status": "UNKNOWN"}

    cloud.poller.demand("server", "a")
    cloud.run()

    (item,) = cloud.poller.of_owner("server", OWNER)
    assert item.body["status"] == "UNKNOWN"
    assert cloud.poller.unreadable("server") == 0


def test_servers_that_cannot_be_told_apart_are_counted(cloud: FakeCloud) -> None:
    cloud.put("server", {"id": "s1", "status": "UNKNOWN"})

    cloud.poller.demand("server", "a")
    cloud.run()

    assert cloud.poller.unreadable("server") == 1


def list_ports_while(cloud: FakeCloud, action: Callable[[], None]) -> None:
    """List ports; the action happens after the list began and before it is answered."""

    def act() -> None:
        cloud.clock.advance(0.5)
        action()

    cloud.during_list = act
    cloud.poller.demand("port", "a")
    cloud.run()


def test_the_answer_of_a_write_survives_a_list_that_began_before_it(cloud: FakeCloud) -> None:
    list_ports_while(cloud, lambda: cloud.poller.upsert("port", port("new")))

    assert cloud.poller.item("port", "new") is not None


def test_an_older_body_in_such_a_list_does_not_undo_what_was_learnt(cloud: FakeCloud) -> None:
    cloud.put("port", port("p1", device_id="old"))

    list_ports_while(cloud, lambda: cloud.poller.upsert("port", port("p1", device_id="new")))

    item = cloud.poller.item("port", "p1")
    assert item is not None
    assert item.body["device_id"] == "new"


def test_what_is_doubted_is_not_believed_from_a_list_that_began_before(cloud: FakeCloud) -> None:
    cloud.put("port", port("p1"))

    list_ports_while(cloud, lambda: cloud.poller.invalidate("port", "p1"))

    assert cloud.poller.item("port", "p1") is None
    assert not cloud.poller.is_gone("port", "p1")


def test_what_was_deleted_does_not_come_back_with_a_list_that_began_before(cloud: FakeCloud) -> None:
    cloud.put("port", port("p1"))

    list_ports_while(cloud, lambda: cloud.poller.forget("port", "p1"))

    assert cloud.poller.item("port", "p1") is None
    assert cloud.poller.is_gone("port", "p1")


def test_what_a_later_list_shows_is_there_after_all(cloud: FakeCloud) -> None:
    cloud.put("port", port("p1"))
    cloud.poller.forget("port", "p1")

    cloud.poller.demand("port", "a")
    cloud.run()

    assert cloud.poller.item("port", "p1") is not None
    assert not cloud.poller.is_gone("port", "p1")
