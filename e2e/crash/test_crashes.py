"""For every write and every failure: in the end each resource exists once, and after the deletion nothing is left.

On a real kube-apiserver (conversion and webhooks stripped, simulated core managers) and the simulator, with real
``capo run`` processes under the ServiceAccount that ships. One fresh run for each write and each way.
"""

from __future__ import annotations

from typing import Final

import pytest

from e2e import sampling
from e2e.crash.fault_matrix import WAYS, FaultMatrix
from e2e.crash.scenarios import SCENARIOS, Scenario

pytestmark = [pytest.mark.integration, pytest.mark.crash, pytest.mark.independent, pytest.mark.timeout(4 * 3600)]

ENOUGH: Final = 5
"""From this number of runs on, at least half must reach their write: a scenario does not always need its last ones."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_nothing_is_made_twice_and_nothing_stays_behind(campaign: FaultMatrix, scenario: Scenario, way: str) -> None:
    runs, reached = campaign.number(scenario, way)

    campaign.require_no_failures(scenario, way)
    if not runs:
        pytest.skip(f"left out ({sampling.VARIABLE})")
    assert runs < ENOUGH or 2 * reached >= runs, f"{runs - reached} of {runs} runs never came to their write"
