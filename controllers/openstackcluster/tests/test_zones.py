"""Which availability zones are offered (G-14, W-67)."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.openstackcluster import zones


def zone(name: str, *, is_up: bool = True) -> dict[str, Any]:
    return {"zoneName": name, "zoneState": {"available": is_up}}


@pytest.mark.parametrize(
    ("listed", "known", "expected"),
    [
        pytest.param([zone("a"), zone("b")], (), ["a", "b"], id="all that are up"),
        pytest.param([zone("a"), zone("b", is_up=False)], (), ["a"], id="a new one that is down is not offered"),
        pytest.param([zone("a"), zone("b", is_up=False)], ("a", "b"), ["a", "b"], id="a known one that is down stays"),
        pytest.param([zone("a")], ("a", "b"), ["a"], id="one that is gone goes"),
        pytest.param([], ("a",), [], id="none"),
    ],
)
def test_zones_come_when_they_are_up_and_go_when_they_are_gone(
    listed: list[dict[str, Any]], known: tuple[str, ...], expected: list[str]
) -> None:
    assert zones.usable(listed, known) == expected


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param((), "", id="none is asked for"),
        pytest.param(("a", "b"), "", id="all are offered"),
        pytest.param(
            ("z", "a", "y"),
            "controlPlaneAvailabilityZones: no availability zone y, z in Nova",
            id="those that are not offered are named",
        ),
    ],
)
def test_a_zone_for_the_control_plane_that_is_not_offered_is_named(wanted: tuple[str, ...], message: str) -> None:
    assert zones.note(wanted, ["a", "b"]) == message
