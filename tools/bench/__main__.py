"""Measures what machines cost: `make bench`, or `python -m tools.bench --help`.

Runs a real API server and a simulated cloud with the latencies of a real one, with the real ``capo run`` as a process.
The table is stored in ``docs/benchmarks``; ``docs/benchmarks/README.md`` explains it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from capo.local.rig import Rig
from tools.bench import environment
from tools.bench.cluster_run import ClusterRun
from tools.bench.floor import Latencies
from tools.bench.growing_run import GrowingFleet
from tools.bench.measure import Phase, quickest
from tools.bench.player import VOLUMES
from tools.bench.report import COLUMNS, Run, row
from tools.bench.size_run import SLOTS, Clouds, FleetRun, SizeRun

DOCS: Final = Path("docs/benchmarks")
SIZES: Final = (1, 10, 100)
IDLE_S: Final = 600.0
AT_ONCE: Final = Latencies(port=0.0, server=0.0, build=0.0, removal=0.0)
"""Latencies for the fleet: its upkeep is measured, not its creation."""
WITH_VOLUMES: Final = "two volumes each"


def say(line: str) -> None:
    """Print a line of progress, flushed."""
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, nargs="+", default=SIZES, help="how many, one run for each number")
    parser.add_argument("--volumes", type=int, default=10, help="a run with so many machines that have two volumes")
    parser.add_argument("--fleet", type=int, nargs=2, metavar=("CLUSTERS", "MACHINES"), help="measure these alone")
    parser.add_argument(
        "--projects", type=int, help="with --fleet: spread the clusters over so many, and grow in pieces"
    )
    parser.add_argument("--clouds", type=int, help="measure so many clusters alone, each in a project of its own")
    parser.add_argument("--cluster", type=int, nargs="+", metavar="WORKERS", help="measure one cluster of each size")
    parser.add_argument("--program", type=Path, help="with --cluster: another provider's manager, measured after ours")
    parser.add_argument("--crds", type=Path, nargs="+", default=(), help="files of CRDs that it needs besides")
    parser.add_argument("--rounds", type=int, default=3, help="how often each size is made; the quickest counts")
    parser.add_argument("--idle", type=float, default=IDLE_S, help="seconds in which nothing happens, in real time")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for the .json and .md")
    parser.add_argument("--logs", type=Path, help="folder that gets the logs of all processes")
    wanted = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no process is left running
    with environment.api_server(wanted.logs, wanted.crds) as rig:
        name, phases = _measured(rig, wanted)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    latencies = Latencies() if name in ("latest", "large-cluster") else AT_ONCE
    run = Run(today, os.cpu_count() or 1, latencies, SLOTS, phases)
    wanted.out.mkdir(parents=True, exist_ok=True)
    (wanted.out / f"{name}.json").write_text(json.dumps(run.document(), indent=2) + "\n", encoding="utf-8")
    (wanted.out / f"{name}.md").write_text(run.markdown(), encoding="utf-8")
    say(f"wrote {wanted.out}/{name}.json and {name}.md")
    return 0


def _sizes(rig: Rig, wanted: Any) -> list[tuple[str, Phase]]:
    """Measure every size as often as requested; the idle time is measured in the last round."""
    rounds: list[list[tuple[str, Phase]]] = []
    for number in range(wanted.rounds):
        stories = [("", SizeRun(rig, f"bench-{number}-{count}", count)) for count in wanted.machines]
        if wanted.volumes:
            stories.append((WITH_VOLUMES, SizeRun(rig, f"bench-{number}-volumes", wanted.volumes, shape=VOLUMES)))
        is_last = number + 1 == wanted.rounds
        rounds.append(_told(stories, idle_s=wanted.idle if is_last else 0.0))
    return quickest(rounds)


def _measured(rig: Rig, wanted: Any) -> tuple[str, list[tuple[str, Phase]]]:
    """Measure what is wanted; return it with the name of its files."""
    if wanted.clouds:
        clouds = Clouds(rig, "bench-clouds", wanted.clouds, latencies=AT_ONCE)
        return "clouds", _told([("clouds", clouds)], idle_s=wanted.idle)
    if wanted.cluster:
        return "large-cluster", _clusters(rig, wanted)
    if wanted.fleet and wanted.projects:
        return "growing-fleet", _growing_fleet(rig, wanted)
    return ("fleet", _fleet(rig, wanted)) if wanted.fleet else ("latest", _sizes(rig, wanted))


def _clusters(rig: Rig, wanted: Any) -> list[tuple[str, Phase]]:
    """Measure one cluster after another, so that no manager takes time from another one."""
    phases: list[tuple[str, Phase]] = []
    for program in (None, wanted.program) if wanted.program else (None,):
        for count in wanted.cluster:
            shape, name = (f"3 + {count}, {program.name}", "theirs") if program else (f"3 + {count}", "ours")
            run = ClusterRun(rig, f"bench-{name}-{count}", count)
            run.site.program = program
            phases += _told([(shape, run)], idle_s=0.0)
    return phases


def _fleet(rig: Rig, wanted: Any) -> list[tuple[str, Phase]]:
    clusters, machines = wanted.fleet
    fleet = FleetRun(rig, "bench-fleet", machines, latencies=AT_ONCE, clusters=clusters)
    return _told([(f"{clusters} clusters", fleet)], idle_s=wanted.idle)


def _growing_fleet(rig: Rig, wanted: Any) -> list[tuple[str, Phase]]:
    clusters, machines = wanted.fleet
    fleet = GrowingFleet(rig, "bench-growing", machines, latencies=AT_ONCE, clusters=clusters, projects=wanted.projects)
    return _told([(f"{clusters} clusters in {wanted.projects} projects", fleet)], idle_s=wanted.idle)


def _told(stories: Sequence[tuple[str, SizeRun]], *, idle_s: float) -> list[tuple[str, Phase]]:
    """Run stories to their ends: one after the other, with a common idle time, each with its own manager and cloud."""
    say(" | ".join(COLUMNS))
    with ExitStack() as ends:
        for shape, story in stories:
            ends.callback(story.end)
            _say_what_is_new(shape, story, story.create)
        if idle_s:
            for _, story in stories:
                story.begin_idle()
            time.sleep(idle_s)
            for shape, story in stories:
                _say_what_is_new(shape, story, story.end_idle)
        for shape, story in stories:
            _say_what_is_new(shape, story, story.delete)
    return [(shape, phase) for shape, story in stories for phase in story.phases]


def _say_what_is_new(shape: str, story: SizeRun, part: Callable[[], None]) -> None:
    known = len(story.phases)
    part()
    for phase in story.phases[known:]:
        say(" | ".join(row(shape, phase)))


if __name__ == "__main__":
    sys.exit(main())
