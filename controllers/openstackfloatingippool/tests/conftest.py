from __future__ import annotations

from collections.abc import Iterator

import pytest

from controllers.openstackfloatingippool.tests.environment import PoolEnvironment


@pytest.fixture
def stage() -> Iterator[PoolEnvironment]:
    with PoolEnvironment() as made:
        yield made
