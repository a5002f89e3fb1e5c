"""Both versions, the environment that all runs share, and the summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from capo.local.rig import Rig
from e2e import sampling
from e2e.crash.session import crash_session
from e2e.upgrade import gate, installation
from e2e.upgrade.installation import Installation, Version
from e2e.upgrade.matrix import ROLLING_UPDATES, Matrix, Setting
from environments.manager_launcher import ManagerLauncher

MATRIX: Final = pytest.StashKey[Matrix]()


@pytest.fixture(scope="package")
def installations() -> dict[Version, Installation]:
    """Return the present and the released version."""
    return {"present": installation.present(), "released": installation.released()}


@pytest.fixture(scope="package")
def setting(
    api_server: Rig, installations: dict[Version, Installation], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Setting]:
    """Yield the environment that all runs share."""
    folder = tmp_path_factory.mktemp("upgrade")
    with (
        crash_session(api_server, folder) as ground,
        ManagerLauncher(folder / "released.log", installations["released"].python) as released,
    ):
        yield Setting(ground, installations, {"present": ground.launcher, "released": released})


@pytest.fixture(scope="package")
def matrix(request: pytest.FixtureRequest, setting: Setting) -> Matrix:
    """Return the completed runs of all selected tests."""
    made = Matrix(setting, sampling.limit_s(), sampling.seed(), gate.listed)
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    wanted = [(each["route"], each["situation"]) for each in params if {"route", "situation"} <= each.keys()]
    request.config.stash[MATRIX] = made
    made.run(wanted)
    return made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the number of runs, the failures and the omitted runs."""
    matrix = config.stash.get(MATRIX, None)
    if matrix is None:
        return
    terminalreporter.section("upgrade runs")
    for run in matrix.runs:
        if run.fault:
            terminalreporter.line(f"failed after {run.seconds:.0f} s: {run.point}: {run.fault.splitlines()[0]}")
        elif not run.is_reached:
            terminalreporter.line(f"write not reached: {run.point}")
    failed = sum(bool(run.fault) for run in matrix.runs)
    terminalreporter.line(
        f"{len(matrix.runs)} runs in {matrix.seconds:.0f} s, {failed} of them failed; "
        f"{len(matrix.left_out)} left out for time; seed {matrix.seed}"
    )
    for line in matrix.summary():
        terminalreporter.line(f"left out: {line}")
    for case in sampling.LEFT_OUT.get(ROLLING_UPDATES, ()):
        terminalreporter.line(f"left out: {ROLLING_UPDATES}: {case}")
