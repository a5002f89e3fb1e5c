"""Searches for defects with fresh seeds, for a limited time; exits with 1 on a find.

Each part plays with one seed after the other until its share of the time is over. Every command is printed with its
seed before it runs, and those that found something once more at the end: a command plays the same again.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from e2e import sampling

SEEDS_AT_ONCE: Final = 50
"""Seeds that the simulation plays in one command."""
MOST: Final = 10**9
SAMPLED: Final = {sampling.VARIABLE: "{seed}", sampling.LIMIT_VARIABLE: "{seconds}"}


@dataclass(frozen=True)
class Part:
    """One kind of search.

    Args:
        share: of the time.
        arguments: of Python; ``{seed}`` and ``{seconds}`` stand for the seed and for what is left of the share.
        environment: variables, in the same way.
    """

    name: str
    share: float
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, seed: int, seconds: float) -> tuple[dict[str, str], list[str]]:
        """Return variables and command of one play."""
        values = {"seed": seed, "seconds": max(1, round(seconds))}  # 0 would mean no limit
        environment = {name: value.format(**values) for name, value in self.environment.items()}
        return environment, [sys.executable, *(each.format(**values) for each in self.arguments)]


def _pytest(*arguments: str) -> tuple[str, ...]:
    return ("-m", "pytest", "-q", *arguments)


PARTS: Final = (
    Part(
        "redaction",
        0.05,
        _pytest("capo/tests/test_redaction.py", "--hypothesis-seed={seed}"),
        {"REDACTION_EXAMPLES": "1000"},
    ),
    Part(
        "simulation",
        0.3,
        ("-m", "e2e.simulation", "--first", "{seed}", "--seeds", str(SEEDS_AT_ONCE), "--reduce"),
    ),
    Part("routes", 0.1, _pytest("-m", "crash", "e2e/faults/test_routes.py"), SAMPLED),
    Part("crash", 0.3, _pytest("-m", "crash", "e2e/crash/test_crashes.py"), SAMPLED),
    Part("upgrade", 0.25, _pytest("-m", "crash", "e2e/upgrade/test_upgrade.py"), SAMPLED),
)


@dataclass(frozen=True)
class Play:
    """One command of a part and how it ended."""

    part: str
    text: str
    seconds: float
    status: int


def search(parts: Sequence[Part], *, seconds: float, seed: int) -> Iterator[Play]:
    """Play all parts until the time is over; a part gets its share of what the ones before have left."""
    ends_s = time.monotonic() + seconds
    for number, part in enumerate(parts):
        left_s = ends_s - time.monotonic()
        until_s = time.monotonic() + left_s * part.share / sum(each.share for each in parts[number:])
        drawn = seed
        while (part_s := until_s - time.monotonic()) > 0:
            yield _played(part, drawn, part_s)
            drawn += SEEDS_AT_ONCE


def _played(part: Part, seed: int, seconds: float) -> Play:
    environment, command = part.command(seed, seconds)
    text = " ".join([*(f"{name}={value}" for name, value in environment.items()), shlex.join(command)])
    print(f"== {part.name}: {text}", flush=True)
    began_s = time.monotonic()
    # Sets have another order in each process here, in the gate always the same.
    ended = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "random", **environment}, check=False)
    return Play(part.name, text, time.monotonic() - began_s, ended.returncode)


def main(arguments: Sequence[str], parts: Sequence[Part] = PARTS) -> int:
    """Search; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.search", description=__doc__)
    parser.add_argument("--seconds", type=float, default=900, help="no command begins after them")
    parser.add_argument("--seed", type=int, help="the first one (default: a fresh one)")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(MOST) if options.seed is None else options.seed
    plays = list(search(parts, seconds=options.seconds, seed=seed))
    print(f"== searched from seed {seed} on")
    for part in parts:
        ours = [play for play in plays if play.part == part.name]
        finds = sum(bool(play.status) for play in ours)
        print(f"{part.name}: {len(ours)} commands, {sum(play.seconds for play in ours):.0f} s, {finds} with a find")
    for play in plays:
        if play.status:
            print(f"found by {play.text}")
    return 1 if any(play.status for play in plays) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
