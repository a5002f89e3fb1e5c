"""A manager on a real API server, and a Prometheus that scrapes it and evaluates the rules in shortened time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from capo.components.monitoring import alerts
from capo.crdgen import files
from capo.local.rig import Rig
from capo.local.testing import core_definitions
from e2e.monitoring.environment import (
    BlindManager,
    Manager,
    MonitoredEnvironment,
    running_blind_manager,
    running_manager,
)
from e2e.monitoring.prometheus import Prometheus, program, running
from environments.api_server import fresh_environment

SHRINK = 600.0
"""So many times shorter are the times of the rules: ten minutes are a second."""
EVERY_S = 2.0

Environments = Callable[[str], AbstractContextManager[MonitoredEnvironment]]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("monitoring")


@pytest.fixture(scope="package")
def manager(api_server: Rig, folder: Path) -> Iterator[Manager]:
    program("prometheus")
    api_server.install_crds([*files.load(), *core_definitions().values()], strip_conversion=True)
    with running_manager(api_server, folder) as made:
        yield made


@pytest.fixture(scope="package")
def blind(manager: Manager, api_server: Rig, folder: Path) -> Iterator[BlindManager]:
    with running_blind_manager(api_server, folder) as made:
        yield made


@pytest.fixture(scope="package")
def prometheus(manager: Manager, blind: BlindManager, folder: Path) -> Iterator[Prometheus]:
    rules = alerts.groups(SHRINK, shortest_window_s=15)
    with running(folder, {"capo": manager.metrics, "blind": blind.metrics}, rules, every_s=EVERY_S) as made:
        yield made


@pytest.fixture(scope="package")
def environments(api_server: Rig, manager: Manager) -> Environments:
    """Return what makes a namespace with a cloud, by a name."""
    return lambda name: fresh_environment(MonitoredEnvironment, name, api_server, manager.process)
