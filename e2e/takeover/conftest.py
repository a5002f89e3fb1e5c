"""Runs each test on both clouds: on the simulator, and with the marker ``lab`` on the real services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.contract.targets import LAB, SIMULATOR
from e2e.takeover.cloud import CloudUnderTest, running
from e2e.takeover.world import COSTS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have each test that works with a cloud run on both."""
    if "cloud" in metafunc.fixturenames:
        clouds = [SIMULATOR, pytest.param(LAB, marks=[pytest.mark.lab, pytest.mark.timeout(3600)])]
        metafunc.parametrize("cloud", clouds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def cloud(request: pytest.FixtureRequest) -> Iterator[CloudUnderTest]:
    """Yield a cloud with nothing in it; nothing is left of what the tests of a file make."""
    with running(request.param) as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    if COSTS:
        terminalreporter.section("takeover and moves")
        for line in COSTS:
            terminalreporter.line(line)
