"""The list of the gate's upgrade runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from e2e import sampling
from e2e.upgrade import gate, matrix
from e2e.upgrade.environment import Facts
from e2e.upgrade.matrix import KILLED_AT_KUBERNETES, ROUTES, VERSIONS, Point, Undisturbed
from e2e.upgrade.situations import SITUATIONS

LISTED = [Point.of(name) for name in sampling.read(gate.FOLDER)]
UNDISTURBED = {
    (situation.name, version): Undisturbed(Facts(Counter(), {}, Counter(), Counter()), writes=9, kubernetes_writes=20)
    for situation in SITUATIONS
    for version in VERSIONS
}


@pytest.mark.lint
def test_the_gate_runs_every_situation_on_every_route_and_ends_managers_in_every_way() -> None:
    situations = {(route, situation.name) for route in ROUTES for situation in SITUATIONS}
    ways = {(route, way) for route in ROUTES for way in gate.WAYS}

    assert {(point.route, point.situation) for point in LISTED} == situations, matrix.UPDATE
    assert {(point.route, point.way) for point in LISTED} == ways, matrix.UPDATE


@pytest.mark.lint
def test_the_list_is_in_order_and_has_nothing_twice() -> None:
    assert sorted(set(LISTED)) == LISTED


def test_a_new_list_has_each_situation_and_each_way_on_each_route() -> None:
    points = gate.updated([], UNDISTURBED)

    assert {(point.route, point.situation) for point in points} == {(r, s.name) for r in ROUTES for s in SITUATIONS}
    assert {(point.route, point.way) for point in points} == {(route, way) for route in ROUTES for way in gate.WAYS}
    assert gate.updated(points, UNDISTURBED) == points


def test_a_situation_without_writes_to_openstack_ends_at_writes_to_kubernetes() -> None:
    without = {
        key: replace(known, writes=0 if key[0] == SITUATIONS[0].name else known.writes)
        for key, known in UNDISTURBED.items()
    }

    points = gate.updated([], without)

    assert all(point.way in KILLED_AT_KUBERNETES for point in points if point.situation == SITUATIONS[0].name)
    assert {(point.route, point.way) for point in points} == {(route, way) for route in ROUTES for way in gate.WAYS}


def test_a_listed_write_that_does_not_exist_any_more_leaves_the_list() -> None:
    gone = Point("upgrade", "creation", matrix.STOPPED, 10)

    assert not matrix.exists(gone, UNDISTURBED)
    assert gone not in gate.updated([gone], UNDISTURBED)
