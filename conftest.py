"""Fixtures and order of the whole project's tests."""

from __future__ import annotations

from typing import Final

import pytest

LEFT_BY_KOPF: Final = (
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",
    "ignore:Exception ignored in. <function _SelectorTransport.__del__:pytest.PytestUnraisableExceptionWarning",
)
"""kopf leaves a connection unclosed when an API server dies under it; any later integration test may find it."""

pytest_plugins = ("capo.local.testing",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run unit tests first: they say within seconds what is wrong."""
    for item in items:
        if item.get_closest_marker("integration"):
            for left in LEFT_BY_KOPF:
                item.add_marker(pytest.mark.filterwarnings(left))
    items.sort(key=lambda item: item.get_closest_marker("integration") is not None)
