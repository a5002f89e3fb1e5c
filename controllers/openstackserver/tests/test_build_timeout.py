"""For how long a server may be in BUILD is a setting, and an annotation for a single server."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from controllers.openstackserver.tests.environment import KIND, place, status
from environments.in_memory import InMemoryEnvironment


def place_slow(stage: InMemoryEnvironment, **annotations: Any) -> None:
    """Place an OpenStackServer that Nova builds for 400 s."""
    place(stage, serverMetadata=[{"key": "lab-spawn-seconds", "value": "400"}])
    annotate(stage, annotations.get("timeout"))


def annotate(stage: InMemoryEnvironment, timeout: str | None) -> None:
    stage.patch(KIND, "s", {"metadata": {"annotations": {names.BUILD_TIMEOUT_ANNOTATION: timeout}}})


def shown(stage: InMemoryEnvironment) -> dict[str, Any]:
    return stage.condition(KIND, "s", "InstanceReady")


def test_an_annotated_server_is_given_more_time_than_the_others(stage: InMemoryEnvironment) -> None:
    place_slow(stage, timeout="10m")

    stage.settle(for_s=390)
    building = shown(stage)
    stage.settle(for_s=60)

    assert (building["reason"], "for more than" in building["message"]) == ("InstanceNotReady", False)
    assert status(stage)["ready"] is True


def test_an_annotated_server_is_given_less_time_than_the_others(stage: InMemoryEnvironment) -> None:
    place_slow(stage, timeout="1m30s")

    stage.settle(for_s=120)

    assert shown(stage)["message"].startswith("ServerBuildTimeout [server ")
    assert "BUILD for more than 90 s" in shown(stage)["message"]


def test_a_server_that_is_late_is_building_again_once_it_is_given_more_time(stage: InMemoryEnvironment) -> None:
    place_slow(stage)
    stage.settle(for_s=330)
    late = shown(stage)

    annotate(stage, "1h")
    stage.settle(for_s=10)

    assert late["reason"] == "InstanceStateError"
    assert shown(stage)["reason"] == "InstanceNotReady"


def test_a_server_that_becomes_active_after_its_time_recovers_by_itself(stage: InMemoryEnvironment) -> None:
    place_slow(stage)
    stage.settle(for_s=330)
    late, was_ready = shown(stage), status(stage)["ready"]

    stage.settle(for_s=200)

    assert (late["reason"], was_ready) == ("InstanceStateError", False)
    assert (shown(stage)["status"], status(stage)["ready"]) == ("True", True)
    assert len(stage.inventory()["servers"]) == 1


@pytest.mark.parametrize("value", ["soon", "-5m", "0", "169h", "", "9" * 10_000 + "h"], ids=lambda value: value[:5])
def test_a_value_that_is_no_duration_is_named_and_the_setting_counts(stage: InMemoryEnvironment, value: str) -> None:
    place_slow(stage, timeout=value)

    stage.settle(for_s=30)
    building = shown(stage)
    stage.settle(for_s=300)

    assert f"{names.BUILD_TIMEOUT_ANNOTATION}: {value[:20]!r} is not a duration" in building["message"]
    assert "BUILD for more than 300 s" in shown(stage)["message"]
    assert len(shown(stage)["message"]) < 700
