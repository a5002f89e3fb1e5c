"""Measures what machines cost: `make bench`, or `python -m e2e.bench --help`.

On a real API server and a simulated cloud whose calls take as long as a real one's, with the real ``capo run`` as a
process. The table goes into ``docs/benchmarks``; how to read it is in ``docs/benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from capo.local.rig import Rig
from e2e.bench import site
from e2e.bench.floor import Latencies
from e2e.bench.player import VOLUMES
from e2e.bench.report import COLUMNS, Run, row
from e2e.bench.story import SLOTS, Story

DOCS: Final = Path("docs/benchmarks")
SIZES: Final = (1, 10, 100)
IDLE_S: Final = 600.0
WITH_VOLUMES: Final = "two volumes each"


def say(line: str) -> None:
    """Print a line of progress at once."""
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, nargs="+", default=SIZES, help="how many, one run for each number")
    parser.add_argument("--volumes", type=int, default=10, help="a run with so many machines that have two volumes")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds in which nothing happens, in real time")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for latest.json and latest.md")
    parser.add_argument("--logs", type=Path, help="folder that gets the logs of all processes")
    wanted = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    with site.api_server(wanted.logs) as rig:
        phases = _measured(rig, wanted)
    run = Run(datetime.datetime.now(datetime.UTC).date().isoformat(), os.cpu_count() or 1, Latencies(), SLOTS, phases)
    wanted.out.mkdir(parents=True, exist_ok=True)
    (wanted.out / "latest.json").write_text(json.dumps(run.document(), indent=2) + "\n", encoding="utf-8")
    (wanted.out / "latest.md").write_text(run.markdown(), encoding="utf-8")
    say(f"wrote {wanted.out}/latest.json and latest.md")
    return 0


def _measured(rig: Rig, wanted: Any) -> list[tuple[str, Any]]:
    kubeconfig = rig.install_provider_account()
    stories = [("", Story(rig, f"bench-{count}", count, kubeconfig)) for count in wanted.machines]
    if wanted.volumes:
        volumes = Story(rig, "bench-volumes", wanted.volumes, kubeconfig, shape=VOLUMES)
        stories.append((WITH_VOLUMES, volumes))
    say(" | ".join(COLUMNS))
    with ExitStack() as ends:
        for shape, story in stories:
            ends.callback(story.end)
            _told(shape, story, story.create)
        if wanted.idle:
            _idle(stories, wanted.idle)
        for shape, story in stories:
            _told(shape, story, story.delete)
    return [(shape, phase) for shape, story in stories for phase in story.phases]


def _idle(stories: Sequence[tuple[str, Story]], seconds: float) -> None:
    """Leave all sizes alone at once: each has a manager and a cloud of its own."""
    for _, story in stories:
        story.begin_idle()
    time.sleep(seconds)
    for shape, story in stories:
        _told(shape, story, story.end_idle)


def _told(shape: str, story: Story, part: Any) -> None:
    known = len(story.phases)
    part()
    for phase in story.phases[known:]:
        say(" | ".join(row(shape, phase)))


if __name__ == "__main__":
    sys.exit(main())
