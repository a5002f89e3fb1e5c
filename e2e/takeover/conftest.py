"""Runs each test on both clouds: on the simulator, and with the marker ``lab`` on the real services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.takeover.cloud import CloudUnderTest, running
from e2e.takeover.environment import COSTS
from environments.targets import LAB, SIMULATOR


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that uses a cloud with both."""
    if "cloud" in metafunc.fixturenames:
        simulated = pytest.param(SIMULATOR, marks=pytest.mark.timeout(1800))
        clouds = [simulated, pytest.param(LAB, marks=[pytest.mark.lab, pytest.mark.timeout(3600)])]
        metafunc.parametrize("cloud", clouds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def cloud(request: pytest.FixtureRequest) -> Iterator[CloudUnderTest]:
    """Yield an empty cloud; delete the resources of a file's tests at the end."""
    with running(request.param) as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measurements."""
    if COSTS:
        terminalreporter.section("takeover and moves")
        for line in COSTS:
            terminalreporter.line(line)
