"""The floor of the benchmark."""

from __future__ import annotations

import pytest

from tools.bench.floor import Latencies, creation_s, deletion_s

CLOUD = Latencies(port=0.1, server=0.5, build=2.0, removal=2.0)


@pytest.mark.parametrize(
    ("count", "seconds"),
    [
        pytest.param(1, 2.6, id="one machine is its parts one after another"),
        pytest.param(10, 2.6, id="ten fill the slots once"),
        pytest.param(11, 3.2, id="the eleventh waits for a slot"),
        pytest.param(100, 8.0, id="a hundred fill the slots ten times"),
    ],
)
def test_the_floor_of_a_creation_is_what_the_latencies_leave(count: int, seconds: float) -> None:
    assert creation_s(CLOUD, count, slots=10) == pytest.approx(seconds)


@pytest.mark.parametrize(("count", "seconds"), [(1, 2.6), (10, 2.6), (100, 7.1)])
def test_the_floor_of_a_deletion_is_that_of_the_last_server(count: int, seconds: float) -> None:
    assert deletion_s(CLOUD, count, slots=10) == pytest.approx(seconds)


def test_a_server_that_is_gone_at_once_leaves_the_slots_as_the_floor() -> None:
    assert deletion_s(Latencies(port=1.0, server=0.5, removal=0.0), 20, slots=10) == pytest.approx(3.0)
