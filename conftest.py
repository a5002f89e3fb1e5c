"""Fixtures and order of the whole project's tests."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator
from typing import Final

import pytest

from capo.crdgen.tests import go_provider

LEFT_BY_KOPF: Final = (
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",
    "ignore:Exception ignored in. <function _SelectorTransport.__del__:pytest.PytestUnraisableExceptionWarning",
)
"""kopf leaves a connection unclosed when an API server dies under it; any later integration test may find it."""
RUN_KOPF: Final = ("capo/engine/tests/", "capo/cli/tests/test_run.py")
"""Unit tests that run it. What it left is collected at the end of each file, so that no other test finds it."""

LONGEST: Final = (
    "e2e/takeover/test_move.py",
    "e2e/upgrade/test_clusterctl.py",
    "e2e/install/test_tutorial.py",
    "e2e/machines/test_health.py",
    "e2e/takeover/test_takeover.py",
    "e2e/faults/",
    "e2e/clusterctl/",
    "e2e/servers/",
)
"""Integration tests that run before the others: at the end one process would wait minutes for the other."""

pytest_plugins = ("capo.local.testing", "tools.gate.plugin")


def pytest_collection_finish() -> None:
    """Keep the collected tests and all modules out of garbage collection, which else walks them again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run unit tests first: they say within seconds what is wrong. Deselect what reads files that are absent."""
    if not go_provider.FOLDER.is_dir():
        if os.environ.get(go_provider.VARIABLE):
            raise pytest.UsageError(f"{go_provider.VARIABLE}={go_provider.FOLDER} is not a folder")
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("compare")])
        items[:] = [item for item in items if not item.get_closest_marker("compare")]
    for item in items:
        if item.get_closest_marker("integration") or item.nodeid.startswith(RUN_KOPF):
            for left in LEFT_BY_KOPF:
                item.add_marker(pytest.mark.filterwarnings(left))
    items.sort(key=_turn)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Draw the same jitter in each run, but not the free ports of real processes, which others would draw as well."""
    if not item.get_closest_marker("integration"):
        random.seed(item.nodeid)


def _turn(item: pytest.Item) -> int:
    """Return 0 for a unit test, and for others a number that is lower the longer their group takes."""
    if not item.get_closest_marker("integration"):
        return 0
    return next((turn for turn, name in enumerate(LONGEST, 1) if item.nodeid.startswith(name)), len(LONGEST) + 1)


@pytest.fixture(scope="module", autouse=True)
def _collected(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if request.node.nodeid.startswith(RUN_KOPF):
        gc.collect()
