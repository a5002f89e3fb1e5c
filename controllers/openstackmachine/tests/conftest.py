"""A cluster and a cloud for each test of control plane machines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controllers.openstackmachine.controller import MachineController
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from controllers.openstackserver.controller import ServerController
from environments.in_memory import InMemoryEnvironment


@pytest.fixture
def site() -> Iterator[ControlPlaneEnvironment]:
    with InMemoryEnvironment(MachineController, ServerController) as stage:
        yield ControlPlaneEnvironment(stage)
