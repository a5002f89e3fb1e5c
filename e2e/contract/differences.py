"""The list of tests that do not run on both clouds.

A test says ``@pytest.mark.not_on("lab", "the heading")``; ``differences.md`` has the heading.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

LIST: Final = Path(__file__).parent / "differences.md"


def excludes(item: pytest.Item) -> bool:
    """Return whether a test does not run on the cloud that it is collected for."""
    marks = list(item.iter_markers("not_on"))
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(mark.args[0] == callspec.params.get("ground") for mark in marks)


def headings() -> dict[str, str]:
    """Return the text under each heading of the list."""
    parts = re.split(r"^## (.+)$", LIST.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
