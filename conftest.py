"""Fixtures and order of the whole project's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

pytest_plugins = ("capo.local.testing",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run unit tests first: they say within seconds what is wrong."""
    items.sort(key=lambda item: item.get_closest_marker("integration") is not None)
