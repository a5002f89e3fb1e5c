"""Fixtures of this folder."""

from __future__ import annotations

import pytest

from capo.engine.tests.toy import World


@pytest.fixture
def world() -> World:
    return World()
