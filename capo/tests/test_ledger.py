from __future__ import annotations

from typing import Any

import pytest

from capo.ledger import Ledger

WINDOW_S = 60.0
PENDING = {"kind": "port", "role": "port-0", "since": "2027-01-15T08:00:00Z"}


def left_s(ledger: Ledger, now_s: float) -> float:
    return ledger.pending["port-0"].since_s + WINDOW_S - now_s


def read(pending: dict[str, Any], now_s: float, **known: Any) -> Ledger:
    return Ledger.read({"resources": {"pending": [pending]}}, now_s=now_s, window_s=WINDOW_S, **known)


def test_a_ledger_survives_the_way_through_the_status_with_dates_rounded_up() -> None:
    ledger = Ledger()
    ledger.intend("port", "port-0", 5.0, 1_800_000_000.4)
    ledger.record("server", "server", "id")

    status = ledger.to_status()

    assert status["pending"] == [{**PENDING, "since": "2027-01-15T08:00:01Z"}]
    assert Ledger.read({"resources": status}) == ledger


@pytest.mark.parametrize("since", ["1970-01-01T00:00:00Z", "2027-01-15T08:00:00Z", "2999-01-01T00:00:00Z"])
def test_the_window_of_a_create_that_died_with_its_process_begins_when_the_next_one_sees_it_whatever_its_date(
    since: str,
) -> None:
    ledger = read({**PENDING, "since": since}, now_s=1000.0)

    assert left_s(ledger, now_s=1010.0) == WINDOW_S - 10.0


def test_what_earlier_processes_waited_for_counts() -> None:
    ledger = read({**PENDING, "waitedSeconds": 40}, now_s=1000.0)

    assert left_s(ledger, now_s=1005.0) == WINDOW_S - 45.0


@pytest.mark.parametrize("waited", [10**9, -(10**9), 0, None])
def test_a_time_that_somebody_made_up_ends_no_window_before_this_process_saw_it(waited: int | None) -> None:
    ledger = read({**PENDING, "waitedSeconds": waited}, now_s=1000.0)

    assert 1000.0 <= ledger.pending["port-0"].since_s + WINDOW_S <= 1000.0 + WINDOW_S


def test_a_create_that_is_sent_again_was_not_waited_for() -> None:
    ledger = read({**PENDING, "waitedSeconds": 60}, now_s=1000.0)

    ledger.intend("port", "port-0", 1001.0, 1_800_000_100.0)

    assert ledger.to_status()["pending"] == [{**PENDING, "since": "2027-01-15T08:01:40Z"}]
    assert left_s(ledger, now_s=1001.0) == WINDOW_S


def test_an_older_version_that_sends_a_create_again_leaves_nothing_that_was_waited_for() -> None:
    theirs = {**PENDING, "since": "2027-01-15T08:01:00Z"}  # it writes whole entries and does not have the field
    before = read({**PENDING, "waitedSeconds": 60}, now_s=1000.0)

    again = read(theirs, now_s=1100.0, known=before.pending)

    assert left_s(again, now_s=1100.0) == WINDOW_S


def test_what_this_process_sent_itself_nobody_else_waited_for() -> None:
    mine = Ledger()
    mine.intend("port", "port-0", 1000.0, 1_800_000_100.0)

    stale = read({**PENDING, "waitedSeconds": 60}, now_s=1005.0, known=mine.pending)

    assert left_s(stale, now_s=1005.0) == WINDOW_S - 5.0


def test_the_time_since_an_answer_was_lost_is_not_counted_anew_by_each_pass() -> None:
    first = read(PENDING, now_s=1000.0)

    second = read(PENDING, now_s=1030.0, known=first.pending)

    assert left_s(second, now_s=1030.0) == WINDOW_S - 30.0


def test_what_was_waited_for_is_noted_every_ten_seconds_up_to_the_window() -> None:
    ledger = read(PENDING, now_s=1000.0)

    noted = []
    for second in range(1000, 1100):
        if ledger.note_waiting(float(second), window_s=WINDOW_S):
            noted.append(ledger.to_status()["pending"][0]["waitedSeconds"])

    assert noted == [10, 20, 30, 40, 50, 60]


def test_a_pass_is_due_when_there_is_something_to_note_and_none_after_the_window() -> None:
    ledger = read(PENDING, now_s=1000.0)

    assert ledger.waiting_due_s(1004.0, window_s=WINDOW_S) == pytest.approx(6.0, abs=0.1)
    ledger.note_waiting(1055.0, window_s=WINDOW_S)
    assert ledger.waiting_due_s(1055.0, window_s=WINDOW_S) is None
    assert Ledger().waiting_due_s(1055.0, window_s=WINDOW_S) is None


def cluster(*more: tuple[str, str]) -> Ledger:
    ledger = Ledger()
    parts = [("network", "network"), ("subnet", "subnet"), ("router", "router"), ("port", "router-interface")]
    balancer = [("load_balancer", "lb-api"), ("listener", "listener-1"), ("pool", "pool-1"), ("pool", "pool-2")]
    monitors = [("health_monitor", "monitor-1"), ("health_monitor", "monitor-2")]
    for kind, role in [*parts, *balancer, *monitors, *more]:
        ledger.record(kind, role, f"id of {role}")
    return ledger


@pytest.mark.parametrize(
    ("role", "left_out"),
    [
        ("lb-api", {"lb-api", "listener-1", "pool-1", "pool-2", "monitor-1", "monitor-2"}),
        ("listener-1", {"listener-1"}),
        ("pool-1", {"pool-1"}),  # which of the monitors is in the other pool is not recorded
        ("network", {"network", "subnet", "router-interface"}),
        ("router", {"router", "router-interface"}),
    ],
)
def test_with_a_resource_that_is_gone_its_parts_are_forgotten(role: str, left_out: set[str]) -> None:
    ledger = cluster()

    ledger.drop(role)

    assert cluster().records.keys() - ledger.records.keys() == left_out


def test_ports_and_volumes_are_not_forgotten_with_their_server() -> None:
    ledger = Ledger()
    for kind, role in [("server", "server"), ("port", "port-0"), ("trunk", "trunk-0"), ("volume", "volume-root")]:
        ledger.record(kind, role, role)

    ledger.drop("server")

    assert ledger.records.keys() == {"port-0", "trunk-0", "volume-root"}


def test_unanswered_create_of_a_part_is_not_waited_for_when_its_whole_is_gone() -> None:
    ledger = cluster()
    ledger.intend("listener", "listener-2", 1000.0)
    ledger.intend("security_group", "group-worker", 1000.0)

    ledger.drop("lb-api")

    assert ledger.pending.keys() == {"group-worker"}


def test_parts_of_what_is_another_objects_are_kept() -> None:
    ledger = cluster()

    ledger.remove("network")

    assert ledger.id_of("subnet")


def test_intent_that_is_dropped_proves_nothing_about_recorded_parts() -> None:
    ledger = Ledger()
    ledger.record("listener", "listener-1", "id")
    ledger.intend("load_balancer", "lb-api", 1000.0)

    ledger.drop("lb-api")

    assert ledger.id_of("listener-1")
