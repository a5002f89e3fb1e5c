"""A cluster and a cloud for each test of control plane machines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controllers.openstackmachine.controller import MachineController
from controllers.openstackmachine.tests.site import Site
from controllers.openstackserver.controller import ServerController
from controllers.tests.stage import Stage


@pytest.fixture
def site() -> Iterator[Site]:
    with Stage(MachineController, ServerController) as stage:
        yield Site(stage)
