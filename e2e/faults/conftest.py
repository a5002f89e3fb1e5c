"""The rig, one manager and all scenarios of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from capo.local.rig import Rig
from e2e import sampling
from e2e.faults import scenarios as parallel
from e2e.faults.environment import READ_TIMEOUT_S, WATCH_FILTER
from e2e.faults.scenarios import RunningScenarios
from environments.manager_process import ManagerProcess, shipped


@pytest.fixture(scope="package")
def manager(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagerProcess]:
    """Yield a manager as it ships, under its own account."""
    log = tmp_path_factory.mktemp("faults") / "manager.log"
    with shipped(rig, log, f"--watch-filter={WATCH_FILTER}", f"--openstack-read-timeout={READ_TIMEOUT_S}s") as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the routes that were omitted for time."""
    for test, routes in sorted(sampling.LEFT_OUT.items()):
        if routes:
            terminalreporter.line(f"left out: {test}: {', '.join(routes)}")


@pytest.fixture(scope="package")
def scenarios(request: pytest.FixtureRequest, rig: Rig, manager: ManagerProcess) -> Iterator[RunningScenarios]:
    """Start all scenarios of the selected tests in parallel."""
    wanted = parallel.scenarios_of(getattr(item, "function", None) for item in request.session.items)
    with ThreadPoolExecutor(len(wanted), thread_name_prefix="scenario") as pool:
        yield parallel.start(pool, wanted, rig, manager)
