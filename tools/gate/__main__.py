"""Run the gate, or some of its parts: ``python -m tools.gate [PART...]``.

Ends with a table of the parts and, as the last line, the sum of all tests in the form of pytest's summary.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, Final

from tools.gate.parts import FOLDER, LANES, Part, Result, Runner
from tools.gate.plugin import ONLY_VARIABLE

LIMIT_S: Final = float(os.environ.get("GATE_LIMIT_S") or 80 * 60)
"""Seconds after which what still runs is killed, so that there is a report instead of a job that was cancelled."""
LATE_FOLDER: Final = Path("build/late")
LATE_LIST: Final = Path("tools/gate/late.txt")
"""Tests that were late before, a line each: date and test. One of them does not run again until it is mended."""
LATE_LIMIT: Final = 3
"""More late events than this in one gate are a failure."""
TAIL_LINES: Final = 60
SLOWEST: Final = 30


class Gate:
    """The parts of one gate, in lanes beside one another."""

    def __init__(self, lanes: Sequence[Sequence[Part]]) -> None:
        """Take the parts of these lanes."""
        self.began_s = time.monotonic()
        self.runner = Runner(self.began_s + LIMIT_S)
        self._lanes = lanes
        self._ended = {part.name: threading.Event() for lane in self._lanes for part in lane}
        self.results: dict[str, Result] = {}

    def run(self) -> None:
        """Run all parts."""
        with ThreadPoolExecutor(len(self._lanes)) as pool:
            list(pool.map(self._run_lane, self._lanes))

    def _run_lane(self, lane: Sequence[Part]) -> None:
        for part in lane:
            needed = [name for name in part.needs if name in self._ended]
            for name in needed:
                self._ended[name].wait()
            is_possible = all(self.results[name].is_good for name in needed)
            self._add(self.runner.run(part) if is_possible else Result(part, None))
            self._ended[part.name].set()

    def _add(self, result: Result) -> None:
        self.results[result.part.name] = result
        at_s = time.monotonic() - self.began_s
        print(f"[{at_s:5.0f} s] {result.part.name}: {result.verdict} after {result.seconds:.0f} s", flush=True)

    def rerun_late(self) -> list[str]:
        """Run late tests once more, when nothing else runs; return why the gate fails all the same."""
        late = {name: result.late for name, result in self.results.items() if result.late}
        tests = [each["test"] for failures in late.values() for each in failures]
        known = {line.split(maxsplit=1)[1] for line in LATE_LIST.read_text(encoding="utf-8").splitlines() if line}
        if again := sorted(known & set(tests)):
            return [f"late once more, and not mended since ({LATE_LIST}): {test}" for test in again]
        events = {each["event"] for failures in late.values() for each in failures}
        if len(events) > LATE_LIMIT:
            return [f"late {len(events)} times, which is more than {LATE_LIMIT}: {', '.join(tests)}"]
        return [test for name, failures in late.items() for test in self._rerun(self.results[name].part, failures)]

    def _rerun(self, part: Part, failures: Sequence[Mapping[str, Any]]) -> list[str]:
        again = dataclasses.replace(part, name=f"{part.name}-again", target=(*part.target, "WORKERS="))
        LATE_FOLDER.mkdir(parents=True, exist_ok=True)
        only = LATE_FOLDER / f"{again.name}.tests"
        only.write_text("\n".join(test for each in failures for test in each["rerun"]), encoding="utf-8")
        text = "\n\n".join(f"{each['test']}\n{each['text']}" for each in failures)
        (LATE_FOLDER / f"{part.name}.txt").write_text(text, encoding="utf-8")
        result = self.runner.run(again, **{ONLY_VARIABLE: str(only.absolute())})
        self._add(result)
        shutil.copyfile(again.log, LATE_FOLDER / f"{again.name}.txt")
        if result.status != 0:
            return [f"failed again when it ran alone: {each['test']}" for each in failures]
        for each in failures:
            print(
                f"LATE: {each['test']} passed when it ran alone. Both outputs are in {LATE_FOLDER}. Mend it, or add to"
            )
            print(f"{LATE_LIST}: {time.strftime('%Y-%m-%d')} {each['test']}")
        return []


def print_failures(results: Sequence[Result], *, late: bool) -> None:
    """Print failed tests with the command that runs them alone, and the end of parts that failed without a test."""
    for result in results:
        for each in result.failures if late else [each for each in result.failures if not each["event"]]:
            print(f"\n== {each['test']}\n{each['text']}\nalone: .venv/bin/pytest '{each['test']}'")
        if result.status and not result.failures:
            lines = result.part.log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
            print("\n".join([f"\n== make {' '.join(result.part.target)}: the end of {result.part.log}", *lines]))


def print_table(results: Sequence[Result]) -> None:
    """Print a line for each part, and the slowest tests."""
    slowest = collections.Counter({test: s for result in results for test, s in result.document.get("slowest", ())})
    print(f"\n{'slowest tests':<100} seconds")
    for test, seconds in slowest.most_common(SLOWEST):
        print(f"{test:<100} {seconds:7.1f}")
    print(f"\n{'part':<20} {'seconds':>8} {'cpu s':>8} {'passed':>7} {'skipped':>8} {'failed':>7} {'late':>5}")
    for result in results:
        counts = collections.Counter(result.tests.values())
        numbers = f"{counts['passed']:7} {counts['skipped']:8} {len(result.failures) - len(result.late):7}"
        print(
            f"{result.part.name:<20} {result.seconds:8.0f} {result.processor_s:8.0f} {numbers} {len(result.late):5}"
            f"  {'' if result.status == 0 else result.verdict}"
        )


def summary(results: Sequence[Result], reasons: Sequence[str], seconds: float) -> str:
    """Return the sum of all tests as pytest's last line has it."""
    tests: dict[str, str] = {}
    for result in results:  # a late test has passed if it did at last
        tests |= {f"{result.part.target[0]} {test}": state for test, state in result.tests.items()}
    counts = collections.Counter(tests.values())
    failed = max(counts["failed"], len(reasons))
    texts = [f"{number} {what}" for number, what in ((failed, "failed"), (counts["passed"], "passed")) if number]
    texts += [f"{counts['skipped']} skipped"] if counts["skipped"] else []
    clock = datetime.timedelta(seconds=int(seconds))
    return f" {', '.join(texts) or 'no tests ran'} in {seconds:.2f}s ({clock}) ".center(80, "=")


def run(lanes: Sequence[Sequence[Part]]) -> int:
    """Run parts and what was late in them, and print the report; return the exit status."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    gate = Gate(lanes)

    def stop(number: int, _frame: FrameType | None) -> None:
        gate.runner.kill()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    gate.run()
    first = list(gate.results.values())
    reasons = [f"{result.part.name}: {result.verdict}" for result in first if not result.is_good]
    if not reasons:
        reasons = gate.rerun_late()
    print_failures(first, late=bool(reasons))
    results = list(gate.results.values())
    print_table(results)
    for reason in reasons:
        print(f"FAILED: {reason}")
    print(summary(results, reasons, time.monotonic() - gate.began_s))
    return 1 if reasons else 0


def main() -> int:
    """Run the named parts, or all."""
    names = [part.name for lane in LANES for part in lane]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(names))
    wanted = parser.parse_args().parts or names
    if unknown := set(wanted) - set(names):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    lanes = [[part for part in lane if part.name in wanted] for lane in LANES]
    return run([lane for lane in lanes if lane])


if __name__ == "__main__":
    sys.exit(main())
