"""Tests that mostly wait, run in parallel: the first one starts all of them in threads, then each waits for its own."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from capo.local.rig import Rig
from e2e.faults.environment import FaultEnvironment, fault_environment
from environments.manager_process import ManagerProcess

Scenario = Callable[[FaultEnvironment], None]
_SCENARIO: Final = "scenario"


class RunningScenarios:
    """Started scenarios."""

    def __init__(self, started: Mapping[Scenario, Future[None]]) -> None:
        self._started = started

    def wait_for(self, scenario: Scenario) -> None:
        """Wait for the end of a scenario and raise its exception."""
        self._started[scenario].result()


def run_in_parallel(scenario: Scenario) -> Callable[[RunningScenarios], None]:
    """Turn a scenario into a test, which runs in parallel with all other selected ones."""

    @functools.wraps(scenario)
    def test(scenarios: RunningScenarios) -> None:
        scenarios.wait_for(scenario)

    del test.__wrapped__  # pytest would request the scenario's own arguments as fixtures
    setattr(test, _SCENARIO, scenario)
    return test


def scenarios_of(tests: Iterable[Any]) -> list[Scenario]:
    """Return the scenarios behind test functions."""
    return [getattr(test, _SCENARIO) for test in tests if hasattr(test, _SCENARIO)]


def start(pool: ThreadPoolExecutor, wanted: Iterable[Scenario], rig: Rig, manager: ManagerProcess) -> RunningScenarios:
    """Start scenarios."""

    def play(scenario: Scenario) -> None:
        began_s = time.monotonic()
        with fault_environment(rig, manager) as made:
            scenario(made)
        print(f"{scenario.__name__}: {time.monotonic() - began_s:.0f} s")

    return RunningScenarios({scenario: pool.submit(play, scenario) for scenario in wanted})
