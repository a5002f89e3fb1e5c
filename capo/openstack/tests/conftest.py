from __future__ import annotations

import pytest

from capo.ledger import Ledger
from capo.openstack.tests.builders import FakeCloud


@pytest.fixture
def cloud() -> FakeCloud:
    return FakeCloud()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()
