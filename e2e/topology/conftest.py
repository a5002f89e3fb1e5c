"""Prints what the clusters of these tests cost the provider."""

from __future__ import annotations

import pytest

from e2e.takeover.environment import COSTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measurements."""
    if COSTS:
        terminalreporter.section("clusters with and without a topology")
        for line in COSTS:
            terminalreporter.line(line)
