"""Fixtures of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controllers.openstackserver.controller import ServerController
from environments.in_memory import InMemoryEnvironment


@pytest.fixture
def stage() -> Iterator[InMemoryEnvironment]:
    with InMemoryEnvironment(ServerController) as made:
        made.apply_secret()
        yield made
