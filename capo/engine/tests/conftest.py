"""Fixtures of this folder."""

from __future__ import annotations

import pytest

from capo.engine.tests.toy import ToyEnvironment


@pytest.fixture
def world() -> ToyEnvironment:
    return ToyEnvironment()
