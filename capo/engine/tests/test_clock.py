from __future__ import annotations

import time

import pytest

from capo.clock import SystemClock


@pytest.mark.parametrize("by_s", [-3600.0, 3600.0], ids=["set back", "set forward"])
def test_a_clock_that_is_set_changes_no_duration_and_shows_in_what_people_read(
    monkeypatch: pytest.MonkeyPatch, by_s: float
) -> None:
    moment = {"wall": 1_800_000_000.0, "steady": 50.0}
    monkeypatch.setattr(time, "time", lambda: moment["wall"])
    monkeypatch.setattr(time, "monotonic", lambda: moment["steady"])
    clock = SystemClock()
    began_s = clock.now()

    moment["steady"] += 7.0
    moment["wall"] += 7.0 + by_s

    assert began_s == 1_800_000_000.0
    assert clock.now() - began_s == 7.0
    assert clock.wall() == 1_800_000_007.0 + by_s
