"""Pytest fixtures: a simulator per test. Use them with `from capo.simulator.testing import simulator`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.simulator.simulator import Simulator


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """A fresh simulator that serves until the test ends."""
    with Simulator.start() as running:
        yield running
