"""One version replaces the other during an operation: the result is that of an undisturbed run.

On a real kube-apiserver (conversion and webhooks stripped, simulated core managers) and the simulator, with real
``capo run`` processes of both versions under the ServiceAccount that ships.
"""

from __future__ import annotations

from typing import Final

import pytest

from e2e import sampling
from e2e.crash.scenarios import Scenario
from e2e.upgrade.matrix import ROUTES, Matrix
from e2e.upgrade.situations import SITUATIONS

pytestmark = [pytest.mark.integration, pytest.mark.crash, pytest.mark.independent, pytest.mark.timeout(4 * 3600)]

ENOUGH: Final = 5
"""From this number of runs on, at least half must reach their write: a situation does not always need its last ones."""


@pytest.mark.parametrize("situation", SITUATIONS, ids=str)
@pytest.mark.parametrize("route", ROUTES)
def test_another_version_completes_what_one_began(matrix: Matrix, route: str, situation: Scenario) -> None:
    runs = matrix.runs_of(route, situation.name)
    reached = sum(run.is_reached for run in runs)

    matrix.require_no_failures(route, situation.name)
    if not runs:
        pytest.skip(f"left out ({sampling.VARIABLE})")
    assert len(runs) < ENOUGH or 2 * reached >= len(runs), f"{reached} of {len(runs)} runs came to their write"
