"""Which key is next: namespaces take turns, no room stays unused, and a search does not cost more for more tenants."""

from __future__ import annotations

import random

import pytest

from capo.engine.lanes import Lacking, Lanes
from capo.engine.tests.builders import key
from capo.shares import Lane, Path, Resource, Shares


class Counted:
    """Counts how often room is asked for."""

    def __init__(self, lacking: Lacking) -> None:
        self.calls, self._lacking = 0, lacking

    def __call__(self, path: Path) -> Resource | None:
        self.calls += 1
        return self._lacking(path)


def fill(lanes: Lanes, shares: Shares) -> list[Lane]:
    """Start every key that has room."""
    began = []
    while found := lanes.pop(shares.lacking):
        shares.begin(found.lane)
        began.append(found.lane)
    return began


def end(lanes: Lanes, shares: Shares, lane: Lane) -> None:
    shares.end(lane)
    lanes.freed(lane)


def test_namespaces_take_turns_however_many_clouds_one_has() -> None:
    lanes = Lanes()
    for number in range(100):
        lanes.push(Lane("evil", f"a{number}", f"c{number}"), "", key(f"e{number}"))
    for number in range(3):
        lanes.push(Lane("good", "a", "c"), "", key(f"g{number}"))

    order = [found.key.name for found in iter(lambda: lanes.pop(lambda _path: None), None)][:6]

    assert order == ["e0", "g0", "e1", "g1", "e2", "g2"]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_waits_that_has_room_whatever_begins_and_ends(seed: int) -> None:
    chance = random.Random(seed)
    shares, lanes, running = Shares(chance.choice((4, 16, 40)), chance.choice((2, 5))), Lanes(), list[Lane]()
    waiting: list[Lane] = []
    all_lanes = [
        Lane(f"n{chance.randrange(5)}", f"a{chance.randrange(3)}", f"c{chance.randrange(9)}") for _ in range(40)
    ]
    for step in range(1500):
        if chance.random() < 0.5:
            lane = chance.choice(all_lanes)
            lanes.push(lane, "", key(str(step)))
            waiting.append(lane)
        elif running:
            end(lanes, shares, running.pop(chance.randrange(len(running))))
        for lane in fill(lanes, shares):
            waiting.remove(lane)
            running.append(lane)
        assert [lane for lane in waiting if not shares.lacks(lane)] == []
        assert len(lanes) == len(waiting)
    while running:
        end(lanes, shares, running.pop())
        running += fill(lanes, shares)
    assert len(lanes) == 0


@pytest.mark.parametrize(
    "lane",
    [
        pytest.param(lambda n: Lane(f"team-{n}", "a", "c"), id="a-thousand-namespaces-in-one-cloud"),
        pytest.param(lambda n: Lane("team", "a", f"c{n}"), id="a-thousand-regions-of-one-address"),
        pytest.param(lambda n: Lane("team", f"a{n}", f"c{n}"), id="a-thousand-clouds-of-one-namespace"),
        pytest.param(lambda n: Lane(f"team-{n % 30}", f"a{n % 7}", f"c{n}"), id="all-of-it"),
    ],
)
def test_what_a_search_costs_does_not_grow_with_what_waits(lane: object) -> None:
    def cost(many: int) -> float:
        shares, lanes = Shares(128, 10), Lanes()
        for number in range(many):
            for again in range(2):
                lanes.push(lane(number), "", key(f"{number}-{again}"))  # type: ignore[operator]
        running = fill(lanes, shares)
        counted = Counted(shares.lacking)
        for _ in range(100):
            end(lanes, shares, running.pop(0))
            while found := lanes.pop(counted):
                shares.begin(found.lane)
                running.append(found.lane)
        return counted.calls / 100

    assert cost(2000) <= max(40.0, 1.5 * cost(500))
