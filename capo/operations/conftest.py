"""Clouds of tests are on loopback, which operators' commands deny unless an argument permits it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.operations import access
from capo.settings import Settings


@pytest.fixture(scope="package", autouse=True)
def _permit_loopback() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "SETTINGS", Settings())
        yield
