"""How much of a long test is run: all of it, or as much as a limit of time allows, chosen by the commit.

``CRASH_SECONDS`` is the limit, 0 or nothing means none; ``CRASH_SEED`` chooses instead of the commit.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

LIMIT_VARIABLE: Final = "CRASH_SECONDS"
SEED_VARIABLE: Final = "CRASH_SEED"
LEFT_OUT: Final[dict[str, list[str]]] = {}


def limit_s() -> float:
    """Return for how many seconds something may be begun; 0 means no limit."""
    return float(os.environ.get(LIMIT_VARIABLE) or "0")


def seed() -> str:
    """Return what chooses: the commit that is checked out, so that another one runs other parts."""
    if given := os.environ.get(SEED_VARIABLE):
        return given
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "no commit"


def sample(items: Sequence[T], number: int, *, of: str) -> list[T]:
    """Return what is run: all when there is no limit, else so many; what is left out is noted in ``LEFT_OUT``.

    Args:
        of: whose items these are; together with the seed it decides which ones are run.
    """
    if not limit_s():
        return list(items)
    chosen = set(random.Random(f"{seed()} {of}").sample(range(len(items)), min(number, len(items))))
    LEFT_OUT[of] = [str(item) for index, item in enumerate(items) if index not in chosen]
    return [item for index, item in enumerate(items) if index in chosen]
