"""The sample of a long test to run: all of it, or as much as a time limit allows, chosen by the commit.

``CRASH_SECONDS`` is the limit, 0 or empty means none; ``CRASH_SEED`` chooses instead of the commit.
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
    """Return the seconds after which no run begins; 0 means no limit."""
    return float(os.environ.get(LIMIT_VARIABLE) or "0")


def seed() -> str:
    """Return the seed of the sample: the checked-out commit, so that another one runs other parts."""
    if given := os.environ.get(SEED_VARIABLE):
        return given
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "no commit"


def sample(items: Sequence[T], number: int, *, of: str) -> list[T]:
    """Return the items to run: all without a limit, else ``number``; ``LEFT_OUT`` records the others.

    Args:
        of: name of the group; together with the seed it determines the sample.
    """
    if not limit_s():
        return list(items)
    chosen = set(random.Random(f"{seed()} {of}").sample(range(len(items)), min(number, len(items))))
    LEFT_OUT[of] = [str(item) for index, item in enumerate(items) if index not in chosen]
    return [item for index, item in enumerate(items) if index in chosen]
