"""Whether the manager stays flat while a fleet changes all the time: `make soak`, or `python -m tools.soak --help`.

A real API server and a simulated cloud, with the real ``capo run`` as a process. The table, the samples and the plot
are stored in ``docs/benchmarks``; ``docs/benchmarks/README.md`` explains them.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import requests

from capo.local.rig import Rig
from capo.version import VERSION
from environments.manager_process import wait_until
from tools.bench import environment
from tools.bench.environment import BenchEnvironment
from tools.bench.floor import Latencies
from tools.soak import report, verdict
from tools.soak.churn import LIMIT_S, Churn, Pace, beats
from tools.soak.sampler import Sample, Sampler

DOCS: Final = Path("docs/benchmarks")
CLOUD: Final = Latencies(port=0.1, server=0.2, build=2.0, removal=2.0)
STEP_S: Final = 1.0
SAMPLES: Final = 240
"""About so many in a run, and one a minute in a long one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and write; return 1 if something grew or did not converge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=240.0, help="of churn, after the fleet was created")
    parser.add_argument("--machines", type=int, default=1000, help="that exist at any time")
    parser.add_argument("--clusters", type=int, default=100, help="over which they are spread")
    parser.add_argument("--hurry", type=float, default=1.0, help="divides the seconds between two actions of a kind")
    parser.add_argument("--seed", type=int, default=0, help="of what is chosen")
    parser.add_argument("--out", type=Path, default=DOCS, help="folder for soak.json, soak.md and soak.png")
    parser.add_argument("--logs", type=Path, help="folder that gets the logs of all processes")
    wanted = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no process is left running
    with environment.api_server(wanted.logs) as rig:
        churn, samples = _run(rig, wanted)
        wrong = churn.unexpected()
    found = verdict.findings(samples)
    _write(wanted, churn, samples, found)
    wrong += [f"{each.measure.name}: {each.early:.1f}, later {each.late:.1f}" for each in found if not each.is_flat]
    for line in wrong:
        say(line)
    return 1 if wrong else 0


def say(line: str) -> None:
    """Print a line of progress, flushed."""
    print(line, flush=True)


def _run(rig: Rig, wanted: Any) -> tuple[Churn, list[Sample]]:
    """Create the fleet, let it change, and wait until it has converged."""
    site = BenchEnvironment(rig, "soak", rig.install_provider_account())
    site.open(CLOUD)
    gauge = site.start()
    churn = Churn(rig, site, wanted.clusters, wanted.machines, Pace().quicker(wanted.hurry), seed=wanted.seed)
    churn.begin()
    say(f"{wanted.machines} machines are ready")
    sampler, samples = Sampler(gauge), list[Sample]()
    seconds = wanted.minutes * 60
    every_s = min(60.0, seconds / SAMPLES)
    due_s = every_s
    for passed_s in beats(seconds=seconds, every_s=STEP_S):
        churn.step()
        if passed_s >= due_s:
            due_s = passed_s + every_s
            with contextlib.suppress(requests.Timeout):  # the next sample has the work of both
                samples.append(sampler.sample(passed_s, churn.machines(), churn.ready_s()))
                _say_sometimes(samples)
    churn.end()
    wait_until("nothing is left over", lambda: not churn.unexpected(), limit_s=LIMIT_S)
    return churn, samples


def _say_sometimes(samples: Sequence[Sample]) -> None:
    if len(samples) % 10 == 0:
        last = samples[-1]
        say(
            f"{last.at_s / 60:.0f} min: {last.manager_mib:.0f} MiB, {last.threads} threads, {last.files} files, queue "
            f"{last.queue}, reconciles {last.reconcile_p99_s:g} s, {last.ready} of {last.machines} machines ready"
        )


def _write(wanted: Any, churn: Churn, samples: Sequence[Sample], found: Sequence[verdict.Finding]) -> None:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    done = churn.done
    introduction = (
        f"capo {VERSION}, {today}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} "
        f"processors for everything. {wanted.minutes:g} minutes at {wanted.machines:,} machines in "
        f"{wanted.clusters} clusters: {done.get('replace', 0) * churn.pace.at_once:,} machines replaced, "
        f"{done.get('edit', 0):,} bastions edited, {done.get('rotate', 0)} credentials rotated, "
        f"{done.get('fail', 0)} failures of the cloud."
    )
    wanted.out.mkdir(parents=True, exist_ok=True)
    document = {"measured": today, "version": VERSION, "done": done, "samples": [each.document() for each in samples]}
    (wanted.out / "soak.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    (wanted.out / "soak.md").write_text(report.markdown(introduction, found, samples), encoding="utf-8")
    report.plot(samples, found, wanted.out / "soak.png")
    say(f"wrote soak.json, soak.md and soak.png into {wanted.out}")


if __name__ == "__main__":
    sys.exit(main())
