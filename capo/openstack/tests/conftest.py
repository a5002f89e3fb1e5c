from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.ledger import Ledger
from capo.openstack.clouds import Clouds
from capo.openstack.tests.builders import FakeClock, FakeCloud
from capo.simulator.testing import simulator

__all__ = ["simulator"]


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def clouds() -> Iterator[Clouds]:
    made = Clouds(FakeClock(), lambda _key: None)
    yield made
    made.close()
