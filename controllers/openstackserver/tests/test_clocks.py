"""The clocks of manager, cloud and API server may all be wrong, and may be set at any time."""

from __future__ import annotations

import datetime

import pytest

from controllers.openstackserver.tests.environment import KIND, place, status
from environments.in_memory import InMemoryEnvironment

HOUR_S = 3600.0


def set_cloud(stage: InMemoryEnvironment, by_s: float) -> None:
    """Set the clocks of all services of the cloud."""
    stage.cloud._started_wall += datetime.timedelta(seconds=by_s)


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S], ids=["behind", "ahead"])
def test_a_server_is_given_its_time_to_build_by_the_clock_of_nova(stage: InMemoryEnvironment, by_s: float) -> None:
    set_cloud(stage, by_s)
    place(stage, serverMetadata=[{"key": "lab-spawn-seconds", "value": "400"}])

    stage.settle(for_s=280)
    early = stage.condition(KIND, "s", "InstanceReady")
    stage.settle(for_s=50)
    late = stage.condition(KIND, "s", "InstanceReady")

    assert early["reason"] == "InstanceNotReady"
    assert "BUILD for more than 300 s" in late["message"]


@pytest.mark.parametrize("by_s", [-HOUR_S, HOUR_S], ids=["set back", "set forward"])
def test_a_clock_that_is_set_while_a_server_is_built_changes_nothing_but_what_people_read(
    stage: InMemoryEnvironment, by_s: float
) -> None:
    place(stage, serverMetadata=[{"key": "lab-spawn-seconds", "value": "100"}])
    stage.settle(for_s=30)
    before = len(stage.requests())

    stage.clock.set_by_s = by_s
    stage.settle(for_s=80)

    assert status(stage)["ready"] is True
    assert len(stage.requests()) - before < 40
    shown = datetime.datetime.fromisoformat(stage.condition(KIND, "s", "InstanceReady")["lastTransitionTime"])
    assert abs(shown.timestamp() - stage.clock.wall()) < 80


@pytest.mark.parametrize("by_s", [-24 * HOUR_S, 24 * HOUR_S], ids=["behind", "ahead"])
def test_a_token_is_used_for_its_lifetime_whatever_the_clocks_show(stage: InMemoryEnvironment, by_s: float) -> None:
    set_cloud(stage, by_s)
    place(stage)

    stage.settle(for_s=60)

    assert status(stage)["ready"] is True
    assert sum("tokens" in request for request in stage.requests()) == 1
