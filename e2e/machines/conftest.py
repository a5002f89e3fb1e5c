"""The rig, one manager, and a namespace with a cloud for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.local.rig import Rig
from e2e.machines.environment import MachinesEnvironment, machines_environment
from e2e.machines.objects import WATCH_FILTER
from environments.manager_process import ManagerProcess, shipped


@pytest.fixture(scope="package")
def manager(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagerProcess]:
    """Yield a manager as it ships, under its own account, with a watch filter (C-58) and default periods but one."""
    log = tmp_path_factory.mktemp("machines") / "manager.log"
    # The simulator executes a request at once, so that a killed manager's creates need not be waited for a minute.
    with shipped(rig, log, f"--watch-filter={WATCH_FILTER}", "--ambiguous-create-window=10s") as made:
        yield made


@pytest.fixture
def world(rig: Rig, manager: ManagerProcess) -> Iterator[MachinesEnvironment]:
    with machines_environment(rig, manager) as made:
        yield made
