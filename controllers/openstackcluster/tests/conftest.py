"""A management cluster and a cloud for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.controllers.openstackcluster.tests.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    with made:
        yield made
