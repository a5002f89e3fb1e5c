"""Which runs of a long test are played: all of them, those of the gate, or those of a search.

``SAMPLE`` says it. Without it all are played. ``SAMPLE=gate``: the same few each time, from the lists ``gate.txt``;
``SAMPLE=write`` brings those lists up to date first. Any other value is the seed of a search, which ``SAMPLE_SECONDS``
limits. Runs by their names, separated by commas (``SAMPLE=server/answer-lost/7``), are played as if they were the list.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

VARIABLE: Final = "SAMPLE"
LIMIT_VARIABLE: Final = "SAMPLE_SECONDS"
GATE: Final = "gate"
WRITE: Final = "write"
LIST: Final = "gate.txt"
"""Name of the list of the gate's runs in the folder of a test."""
LEFT_OUT: Final[dict[str, list[str]]] = {}


def chosen() -> str:
    """Return what is to be played; empty means everything."""
    return os.environ.get(VARIABLE) or ""


def limit_s() -> float:
    """Return the seconds after which no run begins; 0 means no limit."""
    return float(os.environ.get(LIMIT_VARIABLE) or "0")


def seed() -> str:
    """Return the seed of everything that is drawn: that of a search, else always the same."""
    return chosen() if is_search() else GATE


def is_search() -> bool:
    """Return whether a seed chooses the runs."""
    return bool(chosen()) and chosen() not in (GATE, WRITE) and "/" not in chosen()


def is_writing() -> bool:
    """Return whether the lists are brought up to date."""
    return chosen() == WRITE


def listed(folder: Path, of: Callable[[str], T], updated: Callable[[Iterable[T]], Sequence[T]]) -> list[T] | None:
    """Return the runs to play, of the list in a folder or as given; None where no list decides.

    Args:
        of: returns the run of a name.
        updated: returns what the list of these runs should be now; it is written where that is wanted.
    """
    if "/" in chosen():
        return [of(name) for name in chosen().split(",")]
    if is_writing():
        (folder / LIST).write_text("".join(f"{run}\n" for run in updated(map(of, read(folder)))), encoding="utf-8")
    return [of(name) for name in read(folder)] if chosen() in (GATE, WRITE) else None


def read(folder: Path) -> list[str]:
    """Return the names in the list of a folder."""
    path = folder / LIST
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def sample(items: Sequence[T], number: int, *, of: str, turn: int = 0) -> list[T]:
    """Return the items to play: all, or ``number`` of them; ``LEFT_OUT`` records the others.

    A search draws them, else they are at even distances.

    Args:
        of: name of the group.
        turn: number of this group among those that choose from the same items: each begins one item later, so that
            together they have all.
    """
    if not chosen() or not items:
        return list(items)
    if is_search():
        drawn = set(random.Random(f"{seed()} {of}").sample(range(len(items)), min(number, len(items))))
    else:
        drawn = {(turn + each * len(items) // number) % len(items) for each in range(number)}
    LEFT_OUT[of] = [str(item) for index, item in enumerate(items) if index not in drawn]
    return [item for index, item in enumerate(items) if index in drawn]
