"""Plays seeds, each in a process of its own that begins in the same state, and reduces histories that break invariants.

The process that forks the others imports everything once, with hashes and addresses that are the same every time.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import gc
import json
import logging
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from e2e.simulation.plan import Plan, Shape

if TYPE_CHECKING:
    from e2e.simulation.known import Known

_NO_RANDOM_ADDRESSES: Final = 0x0040000
_MARK: Final = "E2E_SIMULATION"
LIMIT_S: Final = 120.0
"""Real time limit for one seed on a slow machine; a longer run hangs."""


_WARM_UP: Final = Plan(
    "warm-up",
    Shape(
        server={"rootVolume": {"sizeGiB": 1}},
        cluster={"apiServer": {"managedLoadBalancer": {"enabled": True}}},
        machines=1,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """How a plan ended.

    Args:
        invariant: the broken one; empty: all held.
        seconds: processor time, in seconds.
        simulated_s: simulated time, in seconds.
        costs: requests to OpenStack and writes to Kubernetes until everything was created, in ten idle minutes, and
            for the deletion.
    """

    plan: Plan
    invariant: str = ""
    text: str = ""
    history: tuple[str, ...] = ()
    trace: str = ""
    seconds: float = 0.0
    simulated_s: float = 0.0
    requests: int = 0
    costs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    lines: tuple[str, ...] = field(default=(), repr=False)


def settle_down() -> None:
    """Restart this program with fixed hashes and addresses, unless it has them already."""
    if os.environ.get(_MARK):
        return
    ctypes.CDLL(None).personality(_NO_RANDOM_ADDRESSES)  # refused in some containers: then traces may differ
    environment = {**os.environ, "PYTHONHASHSEED": "0", _MARK: "1"}
    os.execve(sys.executable, [sys.executable, "-m", "e2e.simulation", *sys.argv[1:]], environment)


def prepare() -> None:
    """Import everything, install the replacements, and play one plan, so that one-time work is done."""
    import aiohttp  # noqa: F401
    import keystoneauth1.session  # noqa: F401
    import kopf  # noqa: F401
    import openstack.connection  # noqa: F401
    import prometheus_client  # noqa: F401
    import requests  # noqa: F401

    handler = _Faults()
    from e2e.simulation import primitives

    primitives.install()
    from e2e.simulation import plan_run, replica  # noqa: F401

    replica.track_actors()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR)
    play(_WARM_UP)
    gc.collect()
    gc.freeze()
    gc.disable()


class _Faults(logging.Handler):
    """Records unhandled exceptions, which the engine logs and survives, as broken invariants."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None and record.name.startswith("capo"):
            from e2e.simulation import primitives

            error = record.exc_info[1]
            frame = error.__traceback__
            while frame is not None and frame.tb_next is not None:
                frame = frame.tb_next
            where = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else ""
            primitives.scheduler().faults.append(f"{record.getMessage()}: {error!r} at {where}")


def play(plan: Plan, *, is_verbose: bool = False) -> Outcome:
    """Play a plan in this process; a process plays one."""
    from e2e.simulation.plan_run import PlanRun
    from e2e.simulation.scheduler import HotLoopError

    began_s = time.process_time()
    story = PlanRun(plan)
    if is_verbose:
        story.scheduler.keep_lines()
    try:
        violation = story.play()
        invariant, text = (violation.invariant, violation.text) if violation else ("", "")
    except HotLoopError as error:
        invariant, text = "hot-loop", str(error)
    scheduler = story.scheduler
    return Outcome(
        plan,
        invariant,
        text,
        tuple(story.history),
        scheduler.trace(),
        time.process_time() - began_s,
        scheduler.now_s,
        story.network.requests,
        story.costs,
        tuple(scheduler.lines),
    )


def play_apart(plan: Plan, *, is_verbose: bool = False) -> Outcome:
    """Play a plan in a process of its own and return its outcome."""
    (outcome,) = play_all([plan], workers=1, is_verbose=is_verbose)
    return outcome


def play_all(plans: Sequence[Plan], *, workers: int, is_verbose: bool = False) -> Iterator[Outcome]:
    """Play plans, some in parallel; yield outcomes as they complete."""
    waiting = list(reversed(plans))
    running: dict[int, tuple[int, Plan, bytearray, float]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            plan = waiting.pop()
            reader, process_id = _begin(plan, is_verbose=is_verbose)
            running[reader] = (process_id, plan, bytearray(), _real_s() + LIMIT_S)
        ready, _, _ = select.select(list(running), [], [], 1.0)
        for reader in ready:
            process_id, plan, data, _ = running[reader]
            if piece := os.read(reader, 1 << 20):
                data += piece
                continue
            del running[reader]
            yield _ended(reader, process_id, plan, data)
        for process_id, _, _, ends_s in running.values():
            if _real_s() > ends_s:
                os.kill(process_id, 9)


def _real_s() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _begin(plan: Plan, *, is_verbose: bool) -> tuple[int, int]:
    reader, writer = os.pipe()
    process_id = os.fork()
    if process_id:
        os.close(writer)
        return reader, process_id
    os.close(reader)
    status = 1
    try:
        outcome = play(plan, is_verbose=is_verbose)
        with os.fdopen(writer, "w") as stream:
            json.dump({**dataclasses.asdict(outcome), "plan": plan.to_json()}, stream)
        status = 0
    except BaseException:  # noqa: BLE001 - a simulation that fails is shown, then the process ends
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)  # no process that was left behind may run


def _ended(reader: int, process_id: int, plan: Plan, data: bytearray) -> Outcome:
    os.close(reader)
    _, status = os.waitpid(process_id, 0)
    if status or not data:
        return Outcome(plan, "simulation-failed", f"the simulation ended with status {status}")
    found = json.loads(data)
    return Outcome(**{**found, "plan": plan, "history": tuple(found["history"]), "lines": tuple(found["lines"])})


def reduce(outcome: Outcome) -> Outcome:
    """Return the outcome of the shortest history found that breaks the same invariant: operations are removed."""
    best = outcome
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for operation in best.plan.operations:
            fewer = [each for each in best.plan.operations if each is not operation]
            tried = play_apart(best.plan.with_only(fewer))
            if tried.invariant == outcome.invariant:
                best, is_shorter = tried, True
                break
    return best


def shown(outcome: Outcome) -> str:
    """Return an outcome as text."""
    lines = [f"seed {outcome.plan.seed}: {outcome.invariant or 'all invariants hold'}"]
    if outcome.invariant:
        lines += [f"  {outcome.text}", "  history:", *(f"    {line}" for line in outcome.history)]
        lines += [f"  {outcome.plan.shape}", f"  {outcome.plan.tuning}"]
    numbers = f"{outcome.seconds:.2f} s for {outcome.simulated_s:.0f} s, {outcome.requests} requests"
    return "\n".join([*lines, f"  trace {outcome.trace}, {numbers}"])


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit status."""
    settle_down()
    parsed = _parsed(arguments)
    prepare()
    if parsed.known:
        return _play_known(parsed)
    plans = _plans(parsed)
    began_s = _real_s()
    outcomes: list[Outcome] = []
    for outcome in play_all(plans, workers=parsed.workers, is_verbose=parsed.verbose):
        for line in outcome.lines:
            print(line)
        is_first = outcome.invariant and not any(known.invariant for known in outcomes)
        shortest = reduce(outcome) if parsed.reduce and is_first else outcome
        if outcome.invariant:
            _write_down(shortest, Path(parsed.folder))
        if outcome.invariant or len(plans) == 1:
            print(shown(shortest), flush=True)
        outcomes.append(shortest)
    broken = [outcome for outcome in outcomes if outcome.invariant]
    print(f"{len(outcomes)} seeds, {len(broken)} broken, {(_real_s() - began_s) / len(plans):.2f} s a seed")
    if parsed.json:
        kept = [{**dataclasses.asdict(outcome), "plan": outcome.plan.to_json(), "lines": []} for outcome in outcomes]
        Path(parsed.json).write_text(json.dumps(kept))
    return 1 if broken else 0


def _play_known(parsed: argparse.Namespace) -> int:
    """Play each known defect until a schedule shows it; return 1 if no schedule shows one of them."""
    from e2e.simulation import known

    found = {each.name: _first_broken(each, parsed.workers) for each in known.all_known()}
    for name, outcome in found.items():
        print(f"{name}: {outcome.invariant if outcome else 'nothing is broken any more'}")
    if parsed.json:
        Path(parsed.json).write_text(json.dumps({n: outcome and outcome.invariant for n, outcome in found.items()}))
    return 0 if all(found.values()) else 1


def _first_broken(each: Known, workers: int) -> Outcome | None:
    for outcome in play_all([each.plan], workers=1):
        if outcome.invariant:
            return outcome
    outcomes = play_all(each.schedules()[1:], workers=workers)
    return next((outcome for outcome in [*outcomes] if outcome.invariant), None)


def _plans(parsed: argparse.Namespace) -> list[Plan]:
    from e2e.simulation import adversary, known, plan

    if parsed.plan:
        return [Plan.from_json(json.loads(Path(parsed.plan).read_text()))]
    names = sorted(adversary.FEATURES if parsed.everything else adversary.FEATURES.keys() - known.guarded())
    if parsed.features:
        names = [name for name in parsed.features.split(",") if name != "none"]
    draws = adversary.draws(names)
    if parsed.seed:
        return [plan.draw(parsed.seed, draws)]
    return [plan.draw(str(number), draws) for number in range(parsed.first, parsed.first + parsed.seeds)]


def _write_down(outcome: Outcome, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{outcome.plan.seed}.json").write_text(json.dumps(outcome.plan.to_json(), indent=1))


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds to play")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", default="", help="play this one alone")
    parser.add_argument("--plan", default="", help="play the plan in this file")
    parser.add_argument("--known", action="store_true", help="play the known breaks, and say which are still there")
    parser.add_argument(
        "--features", default="", help="what the adversary may do, separated by commas; none for nothing"
    )
    parser.add_argument("--everything", action="store_true", help="leave out nothing that known breaks need")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="how many seeds at once")
    parser.add_argument("--reduce", action="store_true", help="reduce the first history that breaks an invariant")
    parser.add_argument("--verbose", action="store_true", help="print every request, answer and event")
    parser.add_argument("--json", default="", help="write all outcomes into this file")
    parser.add_argument("--folder", default=".simulation", help="where plans that break an invariant are written down")
    return parser.parse_args(arguments)
