"""Which resources an object owns, and which of them are deleted: the questions of a deletion."""

import pytest

from capo.errors import (
    NotYetObserved,
)
from capo.ledger import Ledger
from capo.openstack.tests.builders import OTHER, FakeCloud, cloud_view, find_after_list, port, server


def test_owned_is_what_is_recorded_and_what_carries_the_stamp(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.record("port", "port-9", "recorded")
    cloud.put("port", port("recorded", None), port("stamped", "port-1"), port("theirs", owner=OTHER))
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("port")
    cloud.run()

    owned = cloud_view(cloud, ledger).owned("port")

    assert sorted(body["id"] for body in owned) == ["recorded", "stamped"]


def test_a_record_whose_resource_is_gone_is_dropped(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.record("port", "port-0", "p1")
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("port")
    cloud.run()

    assert cloud_view(cloud, ledger).owned("port") == []
    assert not ledger.records


def test_a_deleted_server_is_not_owned_any_more(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("server", server("s1"))
    find_after_list(cloud, ledger, "server", "server")
    cloud.cloud_s, cloud.changes = 0.0, [server("s1", status="DELETED", tags=[])]
    cloud_view(cloud, ledger).upsert("server", server("s1", status="DELETED"))

    assert cloud_view(cloud, ledger).owned("server") == []


def test_after_a_deletion_call_the_server_is_looked_at_anew(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("server", server("s1"))
    find_after_list(cloud, ledger, "server", "server")
    cloud.clock.advance(1)
    cloud_view(cloud, ledger).mark_written("server")

    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("server")


def test_what_carries_the_stamp_alone_is_not_gone_because_it_is_in_doubt(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1"))
    find_after_list(cloud, ledger, "port", "port-0")
    ledger.drop("port-0")
    cloud.clock.advance(1)
    cloud_view(cloud, ledger).invalidate("port", "p1")

    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("port")
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).find("port", "port-0")
    cloud.run()
    assert [body["id"] for body in cloud_view(cloud, ledger).owned("port")] == ["p1"]


def test_a_list_of_the_moment_of_a_doubt_proves_nothing(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1"))
    find_after_list(cloud, ledger, "port", "port-0")
    ledger.drop("port-0")
    cloud_view(cloud, ledger).invalidate("port", "p1")

    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("port")
    cloud.clock.advance(1)
    cloud.run()

    assert [body["id"] for body in cloud_view(cloud, ledger).owned("port")] == ["p1"]


def test_what_was_deleted_needs_no_look(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1"))
    find_after_list(cloud, ledger, "port", "port-0")
    view = cloud_view(cloud, ledger)
    count = len(cloud.asked)

    view.forget("port", "p1")

    assert view.owned("port") == []
    assert not ledger.records
    assert len(cloud.asked) == count


def lose_an_answer(cloud: FakeCloud, ledger: Ledger) -> None:
    """Intend a port whose create was not answered; a list without it proves nothing yet."""
    ledger.intend("port", "port-0", cloud.clock.now())
    cloud.clock.advance(1)
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("port")
    cloud.run()
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("port")


def test_an_unanswered_create_holds_up_a_deletion_until_its_window_is_over(cloud: FakeCloud, ledger: Ledger) -> None:
    lose_an_answer(cloud, ledger)
    assert cloud_view(cloud, ledger).pending_until("port") is not None
    cloud.clock.advance(60)
    cloud.run()

    assert cloud_view(cloud, ledger).owned("port") == []
    assert not ledger.pending


def test_what_turns_up_late_is_owned(cloud: FakeCloud, ledger: Ledger) -> None:
    lose_an_answer(cloud, ledger)
    cloud.put("port", port("p1"))
    cloud.clock.advance(2)
    cloud.run()

    assert [body["id"] for body in cloud_view(cloud, ledger).owned("port")] == ["p1"]


def test_a_newborn_deletes_what_it_made_without_a_list(cloud: FakeCloud, ledger: Ledger) -> None:
    view = cloud_view(cloud, ledger, is_newborn=True)
    view.mark_written("port")
    ledger.record("port", "port-0", "p1")
    view.upsert("port", port("p1"))

    owned = cloud_view(cloud, ledger).owned("port")

    assert [body["id"] for body in owned] == ["p1"]
    assert cloud_view(cloud, ledger).owned("volume") == []
    assert cloud.asked == []


def gone_after_deletion(cloud: FakeCloud, ledger: Ledger, kind: str) -> list[str]:
    """Delete the only resource of a kind and let it vanish, then call owned; return the GETs of resources."""
    id_ = next(iter(cloud.bodies[kind]))
    ledger.record(kind, "it", id_)
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned(kind)
    cloud.run()
    cloud.clock.advance(1)
    cloud_view(cloud, ledger).end(kind, id_)
    cloud_view(cloud, ledger).mark_written(kind)
    del cloud.bodies[kind][id_]
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned(kind)
    cloud.run()
    assert cloud_view(cloud, ledger).owned(kind) == []
    return [asked for asked, _ in cloud.asked if asked.startswith(f"{kind}/")]


def test_one_list_after_the_deletions_proves_their_ends_and_nothing_is_asked_for_by_id(
    cloud: FakeCloud, ledger: Ledger
) -> None:
    cloud.put("server", server("s1", None))
    cloud.put("volume", {"id": "v1", "name": "v", "status": "available", "metadata": {}})

    assert gone_after_deletion(cloud, ledger, "server") == []
    assert gone_after_deletion(cloud, ledger, "volume") == []
    assert not ledger.records


def test_a_list_that_began_before_the_deletion_proves_no_end_and_the_next_one_does(
    cloud: FakeCloud, ledger: Ledger
) -> None:
    cloud.put("server", server("s1"))
    find_after_list(cloud, ledger, "server", "server")
    ledger.record("server", "server", "s1")

    def delete() -> None:
        cloud.clock.advance(1)
        cloud_view(cloud, ledger).end("server", "s1")
        cloud_view(cloud, ledger).mark_written("server")
        cloud.clock.advance(1)

    cloud.clock.advance(1)
    cloud.bodies["server"].clear()
    cloud.during_list = delete
    cloud.poller.demand("server", "key")
    cloud.run()
    cloud.during_list = lambda: None

    assert not cloud.poller.is_gone("server", "s1")
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).owned("server")
    cloud.clock.advance(1)
    cloud.run()
    assert cloud_view(cloud, ledger).owned("server") == []
    assert [asked for asked, _ in cloud.asked if asked.startswith("server/")] == []


def test_what_vanishes_from_lists_without_our_deletion_is_asked_for_by_id(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("server", server("s1"))
    find_after_list(cloud, ledger, "server", "server")
    cloud.clock.advance(1)
    cloud.bodies["server"].clear()
    cloud.poller.demand("server", "key")
    cloud.run()

    assert cloud_view(cloud, ledger).owned("server") == []
    assert cloud.asked[-1][0] == "server/s1"


def test_the_end_of_a_deletion_need_not_show_before_a_few_lists_at_their_pace(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("server", server("s1"))
    cloud.during_list = lambda: cloud.clock.advance(20)
    find_after_list(cloud, ledger, "server", "server")

    assert cloud_view(cloud, ledger).end_in_s("server", "s1") == 0
    cloud_view(cloud, ledger).end("server", "s1")
    assert cloud_view(cloud, ledger).end_in_s("server", "s1") == pytest.approx(120)
    cloud.clock.advance(121)
    assert cloud_view(cloud, ledger).end_in_s("server", "s1") == 0
