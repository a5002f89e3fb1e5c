"""Finds the Go provider's files, which exist beside the project only where it is developed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import capo

FOLDER = Path(capo.__file__).resolve().parents[2] / "shared" / "compat"


def require() -> Path:
    """Return the folder; skip if it is missing, but fail in CI, where the comparison must not be skipped silently."""
    if FOLDER.is_dir():
        return FOLDER
    if os.environ.get("CI") == "true":
        pytest.fail(f"{FOLDER} is missing, and CI=true asks for the comparison")
    pytest.skip(f"{FOLDER} is missing: it has the Go provider's files and is not part of the project")
