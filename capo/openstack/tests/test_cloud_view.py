import contextlib

import pytest

from capo.errors import (
    AmbiguousAnswerError,
    CapoError,
    CloudUnavailableError,
    InvalidSpecError,
    NotAuthorizedError,
    NotFoundError,
    NotYetObserved,
    RateLimitedError,
)
from capo.ledger import Ledger
from capo.openstack.tests.builders import OTHER, OWNER, FakeCloud, cloud_view, find_after_list, port, server


def test_what_was_never_listed_is_not_known_and_the_observer_wakes_the_object(cloud: FakeCloud) -> None:
    with pytest.raises(NotYetObserved):
        cloud_view(cloud).find("port", "port-0")

    cloud.run()

    assert cloud.woken == ["key"]


def test_a_complete_list_proves_an_absence(cloud: FakeCloud, ledger: Ledger) -> None:
    assert find_after_list(cloud, ledger, "port", "port-0") is None


def test_a_resource_that_carries_the_stamp_is_adopted(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1"), port("p2", "port-1"), port("p3", owner=OTHER))

    found = find_after_list(cloud, ledger, "port", "port-0")

    assert found is not None
    assert found["id"] == "p1"
    assert ledger.id_of("port-0") == "p1"


def test_an_answer_of_our_own_write_needs_no_list(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.record("port", "port-0", "p1")
    view = cloud_view(cloud, ledger)
    view.mark_written("port")
    view.upsert("port", port("p1"))

    found = view.find("port", "port-0")

    assert found is not None
    assert cloud.asked == []


def test_a_list_from_before_the_last_write_proves_nothing(cloud: FakeCloud, ledger: Ledger) -> None:
    assert find_after_list(cloud, ledger, "port", "port-0") is None
    cloud.clock.advance(1)
    view = cloud_view(cloud, ledger)

    view.mark_written("port")

    with pytest.raises(NotYetObserved):
        view.find("port", "port-0")


def test_a_write_of_another_object_does_not_count(cloud: FakeCloud, ledger: Ledger) -> None:
    assert find_after_list(cloud, ledger, "port", "port-0") is None
    cloud.clock.advance(1)

    cloud_view(cloud, Ledger(), owner_id=OTHER, key="other").mark_written("port")

    assert cloud_view(cloud, ledger).find("port", "port-0") is None


def test_a_list_that_is_too_old_is_repeated(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("trunk", port("t1", "trunk-0"))
    find_after_list(cloud, ledger, "trunk", "trunk-0")
    cloud.clock.advance(601)

    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).find("trunk", "trunk-0")


def test_ports_networks_subnets_and_routers_may_be_known_for_longer(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("network", port("n1", "network"))
    find_after_list(cloud, ledger, "network", "network")
    cloud.clock.advance(1500)

    assert cloud_view(cloud, ledger).find("network", "network") is not None


def test_a_newborn_owner_has_nothing_in_the_cloud(cloud: FakeCloud, ledger: Ledger) -> None:
    assert cloud_view(cloud, ledger, is_newborn=True).find("server", "server") is None
    assert cloud_view(cloud, ledger).find("volume", "volume-root") is None
    assert cloud.asked == []


def test_a_lost_answer_makes_a_newborn_look(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud_view(cloud, ledger, is_newborn=True)
    ledger.intend("server", "server", cloud.clock.now())

    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).find("server", "server")


def test_inside_the_window_a_look_is_taken_and_absence_told_for_the_engine_to_wait(
    cloud: FakeCloud, ledger: Ledger
) -> None:
    ledger.intend("port", "port-0", cloud.clock.now())
    cloud.clock.advance(1)

    assert find_after_list(cloud, ledger, "port", "port-0") is None
    assert ledger.pending


def test_inside_the_window_the_cloud_is_looked_at_again_and_again(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.intend("port", "port-0", cloud.clock.now())
    cloud.clock.advance(1)
    find_after_list(cloud, ledger, "port", "port-0")
    cloud.woken.clear()

    cloud.put("port", port("p1"))
    cloud.clock.advance(2)
    cloud.run()

    assert cloud.woken == ["key"]
    found = cloud_view(cloud, ledger).find("port", "port-0")
    assert found is not None
    assert not ledger.pending


def test_a_lost_answer_is_looked_for_a_few_times_only(cloud: FakeCloud, ledger: Ledger) -> None:
    began_s = cloud.clock.now()
    ledger.intend("port", "port-0", began_s)
    looks = []

    while cloud.clock.now() < began_s + 60:
        with contextlib.suppress(NotYetObserved):
            cloud_view(cloud, ledger).find("port", "port-0")
        cloud.clock.advance(1)
        looks += [round(cloud.clock.now() - began_s) for _ in cloud.run()]

    assert len(looks) == 4


def test_after_the_window_only_a_list_that_began_after_it_decides(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.intend("port", "port-0", cloud.clock.now())
    cloud.clock.advance(59)
    find_after_list(cloud, ledger, "port", "port-0")
    cloud.clock.advance(2)

    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).find("port", "port-0")


def test_what_comes_after_its_window_is_noticed_within_a_minute(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.intend("port", "port-0", cloud.clock.now())
    cloud.clock.advance(61)
    assert find_after_list(cloud, ledger, "port", "port-0") is None
    ledger.record("port", "port-0", "p2")
    cloud.put("port", port("p2"))
    cloud_view(cloud, ledger).upsert("port", port("p2"))
    cloud_view(cloud, ledger).mark_created("port")
    cloud.woken.clear()

    cloud.put("port", port("p1"))
    cloud.clock.advance(60)
    cloud.run()

    assert cloud.woken == ["key"]
    found = cloud_view(cloud, ledger).find("port", "port-0")
    assert found is not None
    assert (found["id"], cloud.deleted) == ("p2", ["/ports/p1"])


def test_what_a_list_leaves_out_is_asked_for_before_it_counts_as_gone(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.record("server", "server", "s1")
    cloud.put("server", server("s2", owner=OTHER))

    assert find_after_list(cloud, ledger, "server", "server") is None
    assert cloud.asked[-1][0] == "server/s1"
    assert ledger.id_of("server") is None


def test_a_server_that_lists_leave_out_but_that_is_there_is_not_gone(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.record("server", "server", "s1")
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).find("server", "server")
    cloud.run()
    cloud.put("server", server("s1"))

    found = cloud_view(cloud, ledger).find("server", "server")

    assert found is not None
    assert ledger.id_of("server") == "s1"


def test_a_failed_list_is_reported(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.error = CloudUnavailableError("down")
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).find("port", "port-0")
    cloud.run()

    with pytest.raises(CloudUnavailableError, match="down"):
        cloud_view(cloud, ledger).find("port", "port-0")


def test_servers_of_a_cell_that_is_down_forbid_to_conclude_an_absence(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("server", {"id": "x", "status": "UNKNOWN"})

    with pytest.raises(CloudUnavailableError, match="down"):
        find_after_list(cloud, ledger, "server", "server")


def test_servers_are_listed_again_after_a_cell_was_down_though_nobody_else_wants_them(
    cloud: FakeCloud, ledger: Ledger
) -> None:
    cloud.put("server", {"id": "x", "status": "UNKNOWN"})
    with pytest.raises(CloudUnavailableError, match="down"):
        find_after_list(cloud, ledger, "server", "server")

    cloud.bodies["server"].clear()
    cloud.clock.advance(61)
    cloud.run()

    assert cloud_view(cloud, ledger).find("server", "server") is None


def test_a_server_is_looked_at_once_a_minute_as_long_as_it_is_there(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("server", server())
    find_after_list(cloud, ledger, "server", "server")
    assert cloud.poller.next_due_s() < float("inf")

    cloud.bodies["server"].clear()
    cloud.clock.advance(60)
    cloud.run()
    cloud_view(cloud, ledger).find("server", "server")

    assert cloud.poller.next_due_s() == float("inf")


def test_matching_finds_what_others_own(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1", None, device_id="router"), port("p2"))
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).list_matching("port", lambda body: True)
    cloud.run()

    found = cloud_view(cloud, ledger).list_matching("port", lambda body: body["device_id"] == "router")

    assert [body["id"] for body in found] == ["p1"]


def test_matching_can_ask_for_a_younger_look(cloud: FakeCloud, ledger: Ledger) -> None:
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).list_matching("port", lambda body: True)
    cloud.run()
    cloud.clock.advance(30)

    assert cloud_view(cloud, ledger).list_matching("port", lambda body: True) == []
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).list_matching("port", lambda body: True, max_age_s=10)


def test_get_returns_what_must_exist(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("floating_ip", {"id": "f1", "description": ""})
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).get("floating_ip", "f1")
    cloud.run()

    assert cloud_view(cloud, ledger).get("floating_ip", "f1")["id"] == "f1"
    with pytest.raises(NotFoundError, match="f2 does not exist"):
        cloud_view(cloud, ledger).get("floating_ip", "f2")


def test_what_is_not_listed_is_not_kept(cloud: FakeCloud) -> None:
    cloud_view(cloud).upsert("member", {"id": "m"})
    cloud_view(cloud).mark_written("member")


def test_a_second_pass_that_waits_no_more_ends_the_poll(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud_view(cloud, ledger).poll("volume")
    assert cloud.poller.next_due_s() < float("inf")

    cloud_view(cloud, ledger)

    assert cloud.poller.next_due_s() == float("inf")


def test_an_owner_is_remembered_by_its_stamp(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud_view(cloud, ledger)
    cloud.put("port", port("p1", "port-7"))
    cloud.poller.demand("port", "someone")

    cloud.run()

    assert "key" in cloud.woken
    assert cloud.poller.of_owner("port", OWNER)


def test_what_is_doubted_is_asked_for(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1"))
    find_after_list(cloud, ledger, "port", "port-0")
    view = cloud_view(cloud, ledger)

    view.invalidate("port", "p1")

    assert view.find("port", "port-0") is not None
    assert cloud.asked[-1][0] == "port/p1"


def test_a_server_that_vanishes_without_a_trace_while_it_is_deleted_is_missed(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, []
    cloud.put("server", server("s1", status="BUILD"))
    find_after_list(cloud, ledger, "server", "server")
    view = cloud_view(cloud, ledger)
    cloud.clock.advance(1)
    view.mark_written("server")
    cloud.bodies["server"].clear()
    view.poll("server")
    cloud.woken.clear()

    cloud.clock.advance(1)
    cloud.run()

    assert cloud.woken == ["key"]
    assert cloud_view(cloud, ledger).owned("server") == []


def test_after_a_create_changes_suffice(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.cloud_s, cloud.changes = 1_700_000_000.0, []
    assert find_after_list(cloud, ledger, "server", "server") is None
    view = cloud_view(cloud, ledger)
    view.mark_written("server")
    ledger.record("server", "server", "s1")
    view.upsert("server", server("s1", status="BUILD"))

    view.poll("server")
    cloud.clock.advance(1)
    cloud.run()

    assert "changes-since" in cloud.asked[-1][1]


@pytest.mark.parametrize(
    ("error", "looks"),
    [
        pytest.param(InvalidSpecError("no"), 1, id="refused"),
        pytest.param(AmbiguousAnswerError("lost"), 1, id="no answer"),
        pytest.param(NotAuthorizedError("who are you"), 0, id="not looked at for want of a good token"),
        pytest.param(RateLimitedError("slower"), 0, id="not looked at because of too many"),
    ],
)
def test_what_could_not_be_changed_is_looked_at_again_if_it_may_have_changed(
    cloud: FakeCloud, ledger: Ledger, error: CapoError, looks: int
) -> None:
    ledger.record("port", "port-0", "p1")
    cloud.put("port", port("p1"))
    find_after_list(cloud, ledger, "port", "port-0")
    count = len(cloud.asked)

    view = cloud_view(cloud, ledger)
    view.failed("port", "p1", error)
    with contextlib.suppress(NotYetObserved):
        view.find("port", "port-0")

    assert len(cloud.asked) - count == looks


def end_list_after_look(cloud: FakeCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the demanded list in another thread, right after the stamped resources were read next."""
    look = cloud.poller.of_owner

    def raced(kind: str, owner_id: str) -> object:
        monkeypatch.undo()
        found = look(kind, owner_id)
        cloud.run()
        return found

    monkeypatch.setattr(cloud.poller, "of_owner", raced)


def test_a_list_that_ends_while_an_absence_is_proven_shows_what_exists(
    cloud: FakeCloud, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger).find("port", "port-0")
    cloud.put("port", port("p1"))
    view = cloud_view(cloud, ledger)
    end_list_after_look(cloud, monkeypatch)

    found = view.find("port", "port-0")

    assert found is not None
    assert ledger.id_of("port-0") == "p1"


def test_a_list_that_ends_while_nothing_is_left_to_delete_shows_what_came_late(
    cloud: FakeCloud, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"is_history_lost": True, "window_s": 60.0}
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger, **facts).owned("port")
    cloud.run()
    cloud.clock.advance(60)
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger, **facts).owned("port")
    cloud.put("port", port("p1"))
    view = cloud_view(cloud, ledger, **facts)
    end_list_after_look(cloud, monkeypatch)

    assert [body["id"] for body in view.owned("port")] == ["p1"]
