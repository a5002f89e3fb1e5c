"""The list of the gate's crash runs."""

from __future__ import annotations

import collections
from typing import cast

import pytest

from e2e import sampling
from e2e.crash import fault_matrix, gate
from e2e.crash.fault_matrix import CLOUD_WAYS, WAYS, FaultMatrix, Point, Undisturbed
from e2e.crash.scenarios import SCENARIOS
from e2e.crash.session import CrashSession

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
    (failure,) = matrix.failures(SCENARIOS[0], gone.way)
    assert f"{gone}: there is no such write any more" in failure
    assert "SAMPLE=write make crash" in failure
