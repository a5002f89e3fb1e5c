"""The list of the gate's crash runs."""

from __future__ import annotations

import collections
from typing import cast

import pytest

from e2e import sampling
from e2e.crash import fault_matrix, gate
from e2e.crash.fault_matrix import CLOUD_WAYS, WAYS, FaultMatrix, Outcome, Point, Undisturbed
from e2e.crash.scenarios import SCENARIOS
from e2e.crash.session import CrashSession
from environments.manager_process import NotReachedError

LISTED = [Point.of(name) for name in sampling.read(gate.FOLDER)]
THREE_WRITES = Undisturbed(collections.Counter(), ["POST", "PUT", "DELETE"], kubernetes_writes=20)


@pytest.mark.lint
def test_the_gate_runs_every_way_of_every_scenario() -> None:
    wanted = {(scenario.name, way) for scenario in SCENARIOS for way in WAYS}

    assert {(point.scenario, point.way) for point in LISTED} == wanted, fault_matrix.UPDATE


@pytest.mark.lint
def test_the_list_is_in_order_and_has_nothing_twice() -> None:
    assert sorted(set(LISTED)) == LISTED


def test_a_new_list_has_each_way_and_each_write_to_openstack() -> None:
    points = gate.updated([], {"new": THREE_WRITES})

    assert {point.way for point in points} == {*WAYS}
    assert {point.write for point in points if point.way in CLOUD_WAYS} == {1, 2, 3}


def test_of_a_list_stays_what_still_exists() -> None:
    kept, gone = Point("new", "answer-lost", 3), Point("new", "answer-lost", 4)

    points = gate.updated([kept, gone, Point("renamed", "answer-lost", 1)], {"new": THREE_WRITES})

    assert kept in points
    assert gone not in points
    assert {point.scenario for point in points} == {"new"}
    assert gate.updated(points, {"new": THREE_WRITES}) == points


def test_a_listed_write_that_does_not_exist_any_more_fails_and_says_what_to_do() -> None:
    gone = Point(SCENARIOS[0].name, "answer-lost", 4)
    matrix = FaultMatrix(cast(CrashSession, None), listed=lambda _: [gone])

    chosen = matrix._chosen([THREE_WRITES.points(gone.scenario, gone.way)])

    assert chosen == []
    with pytest.raises(AssertionError, match=f"{gone}: there is no such write any more.*SAMPLE=write make crash"):
        matrix.require_no_failures(SCENARIOS[0], gone.way)


@pytest.mark.parametrize(("second", "kind"), [(True, NotReachedError), (False, AssertionError)], ids=["late", "wrong"])
def test_runs_are_late_only_if_all_that_failed_are(second: bool, kind: type[AssertionError]) -> None:
    scenario = SCENARIOS[0]
    matrix = FaultMatrix(cast(CrashSession, None))
    for write, is_late in enumerate((True, second), start=1):
        matrix.outcomes[Point(scenario.name, "answer-lost", write)] = Outcome("not within 180 s", True, 1.0, is_late)

    with pytest.raises(AssertionError) as raised:
        matrix.require_no_failures(scenario, "answer-lost")

    assert raised.type is kind


BALANCER, GROUP, SERVER = (
    ("load-balancer/loadbalancers", ""),
    ("network/security_groups", ""),
    ("compute/servers", ""),
)


@pytest.mark.parametrize(
    ("found", "is_late"),
    [
        ([BALANCER], True),  # of what existed before, one was deleted by now
        ([BALANCER, GROUP, SERVER], True),
        ([SERVER, SERVER], False),
        ([BALANCER, GROUP, ("network/ports", "")], False),
    ],
    ids=["some are deleted", "one is created", "one is created twice", "one is a stranger"],
)
def test_a_run_whose_time_is_over_is_late_if_nothing_exists_that_should_not(
    found: list[tuple[str, str]], is_late: bool
) -> None:
    counts = collections.Counter
    undisturbed = Undisturbed(counts([SERVER]), [], 0, prepared=counts([BALANCER, GROUP]))

    assert undisturbed.includes(counts(found)) is is_late
