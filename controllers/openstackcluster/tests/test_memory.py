"""A confirmed state is not read again for a while."""

from __future__ import annotations

from typing import Any

import pytest

from capo.openstack.tests.builders import FakeClock
from controllers.openstackcluster.memory import FORGOTTEN_S, Memory


@pytest.mark.parametrize(
    ("uid", "wanted", "now_s", "is_fresh"),
    [
        pytest.param("uid", "a", 599.0, True, id="lately"),
        pytest.param("uid", "a", 600.0, False, id="too long ago"),
        pytest.param("uid", "b", 1.0, False, id="something else is wanted now"),
        pytest.param("another", "a", 1.0, False, id="another object"),
    ],
)
def test_a_look_counts_for_a_while_and_for_what_was_wanted_then(
    uid: str, wanted: Any, now_s: float, is_fresh: bool
) -> None:
    memory = Memory(FakeClock(0.0))
    memory.note("uid", "a", now_s=0.0)

    assert memory.is_fresh(uid, wanted, now_s=now_s, max_age_s=600.0) is is_fresh


def test_objects_that_are_long_gone_are_forgotten() -> None:
    clock = FakeClock(0.0)
    memory = Memory(clock)
    memory.note("uid", "a", now_s=0.0)

    clock.advance(FORGOTTEN_S)
    memory.note("another", "a", now_s=FORGOTTEN_S)

    assert not memory.is_fresh("uid", "a", now_s=FORGOTTEN_S, max_age_s=float("inf"))
