"""Shared fixtures of all runs, and the summary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from capo.local.rig import Rig
from e2e import sampling
from e2e.crash import gate
from e2e.crash.fault_matrix import FaultMatrix, summary
from e2e.crash.session import CrashSession, crash_session

CAMPAIGN: Final = pytest.StashKey[FaultMatrix]()
LONG: Final = tuple(Path(__file__).with_name(f"test_{name}.py") for name in ("api_server", "shards", "two_managers"))
"""Tests that take half a minute each, beside the matrix."""
FEW: Final = 2
"""Tests of each of these files in a sample."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most of the long tests where only a sample is wanted."""
    left_out: list[pytest.Item] = []
    for path in LONG:
        tests = {item.name: item for item in items if item.path == path}
        kept = sampling.sample(list(tests), FEW, of=path.name)
        left_out += [item for name, item in tests.items() if name not in kept]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="package")
def ground(api_server: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrashSession]:
    """Yield the environment that all runs share."""
    with crash_session(api_server, tmp_path_factory.mktemp("crash")) as made:
        yield made


@pytest.fixture(scope="package")
def campaign(request: pytest.FixtureRequest, ground: CrashSession) -> FaultMatrix:
    """Return the completed runs of all selected tests."""
    made = FaultMatrix(ground, sampling.limit_s(), sampling.seed(), gate.listed)
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = [(c.params["scenario"], c.params["way"]) for c in calls if c and {"scenario", "way"} <= c.params.keys()]
    request.config.stash[CAMPAIGN] = made
    made.run(wanted)
    return made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the number of runs and the omitted ones."""
    campaign = config.stash.get(CAMPAIGN, None)
    if campaign is None:
        return
    terminalreporter.section("crash runs")
    outcomes = campaign.outcomes.values()
    for point, outcome in sorted(campaign.outcomes.items()):
        if outcome.fault:
            terminalreporter.line(f"failed after {outcome.seconds:.0f} s: {point}: {outcome.fault.splitlines()[0]}")
    missed = [point for point, outcome in campaign.outcomes.items() if not outcome.struck]
    terminalreporter.line(
        f"{len(outcomes)} runs in {campaign.seconds:.0f} s, {sum(bool(o.fault) for o in outcomes)} of them failed; "
        f"{len(campaign.left_out)} left out for time; seed {campaign.seed}"
    )
    for title, points in (("left out", campaign.left_out), ("write not reached", missed)):
        for line in summary(points):
            terminalreporter.line(f"{title}: {line}")
