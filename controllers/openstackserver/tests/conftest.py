"""Fixtures of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from controllers.openstackserver.controller import ServerController
from controllers.tests.stage import Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage(ServerController) as made:
        made.put_secret()
        yield made
