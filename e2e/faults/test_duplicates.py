"""A resource exists twice after all: one is kept, no used resource is lost, and nothing is left behind.

Two managers, or a proxy that repeats requests, may cause it: a create takes effect once more, or after the window of a
lost answer.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from e2e.faults.scenes import SCENES, Scene, delete_all
from e2e.faults.test_foreign import made
from environments.provider import ProviderEnvironment

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

GONE_S: Final = 400.0
WINDOW_S: Final = 60.0
MINUTE_S: Final = 60.0
AFTER_S: Final = 15.0
"""Seconds after the window at which an unanswered create takes effect."""


def creates(scene: Scene) -> tuple[list[int], dict[str, int]]:
    """Return which writes create resources, and the created resources."""
    with ProviderEnvironment() as stage:
        scene.place(stage)
        stage.cloud.counter.reset()
        assert made(scene, stage), stage.messages()
        calls = stage.cloud.counter.log()
        return [c["write_number"] for c in calls if c["method"] == "POST" and c["created"]], dict(stage.counts())


def wrong(scene: Scene, expected: dict[str, int], write: int, effect: dict[str, Any], *, waits_s: float) -> list[str]:
    """Create a write take effect twice; return the differences after a while, and after the deletion."""
    with ProviderEnvironment() as stage:
        scene.place(stage)
        stage.cloud.counter.reset()
        stage.add_fault(match={"write": write}, effect=effect)
        if not made(scene, stage):
            return [f"it does not come about: {stage.messages()}"]
        stage.play(for_s=waits_s)
        found = []
        if stage.counts() != expected:
            found.append(f"{dict(stage.counts())} instead of {expected}")
        delete_all(stage)
        if not stage.play(for_s=GONE_S, until=lambda: not stage.ours()):
            found.append(f"its deletion does not end: {stage.messages()}")
        return found + ([f"left behind: {dict(stage.counts())}"] if stage.counts() else [])


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_what_was_made_twice_is_there_once_within_a_minute(scene: Scene) -> None:
    writes, expected = creates(scene)

    found = {write: wrong(scene, expected, write, {"again": 1.0}, waits_s=MINUTE_S) for write in writes}

    assert not any(found.values()), found


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_what_came_after_its_window_is_gone_within_a_minute(scene: Scene) -> None:
    writes, expected = creates(scene)
    late = {"late": WINDOW_S + AFTER_S}

    found = {write: wrong(scene, expected, write, late, waits_s=AFTER_S + MINUTE_S) for write in writes}

    assert not any(found.values()), found
