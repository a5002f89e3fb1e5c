"""Run the gate or some of its parts: ``python -m tools.gate all``, ``python -m tools.gate PART...``.

Ends with a table of the parts, each failure, and as the last line the sum of all tests in the form of pytest's summary.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import fcntl
import os
import shlex
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
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
"""More late tests than this in one gate are a failure."""
TAIL_LINES: Final = 60
MESSAGE_LENGTH: Final = 160
SLOWEST: Final = 30
"""Number of slow tests, and of files that take most of the processors, in the report."""
PROCESSOR_FIGURE: Final = Path("tools/gate/processor-seconds.txt")
"""The sum of a whole gate's processor seconds when it was last measured, without the real services."""
TOLERATED: Final = 1.1
"""The sum may be so many times the figure: the same gate differs by some percent."""


class Gate:
    """The parts of one gate, in lanes beside one another."""

    def __init__(self, lanes: Sequence[Sequence[Part]]) -> None:
        """Take the parts of these lanes."""
        self.began_s = time.monotonic()
        self.runner = Runner(self.began_s + LIMIT_S)
        self._lanes = lanes
        self._ended = {part.name: threading.Event() for lane in lanes for part in lane}
        self.results: dict[str, Result] = {}

    def run(self) -> None:
        """Run all parts."""
        threads = [threading.Thread(target=self._run_lane, args=(lane,)) for lane in self._lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _run_lane(self, lane: Sequence[Part]) -> None:
        for part in lane:
            needed = [name for name in part.needs if name in self._ended]
            for name in needed:
                self._ended[name].wait()
            try:
                is_possible = all(self.results[name].is_good for name in needed)
                self._add(self.runner.run(part) if is_possible else Result(part, None))
            except Exception:  # noqa: BLE001 - a fault of the gate fails the part, and other lanes go on
                traceback.print_exc()
                self._add(Result(part, -1))
            finally:
                self._ended[part.name].set()

    def _add(self, result: Result) -> None:
        self.results[result.part.name] = result
        at_s = time.monotonic() - self.began_s
        print(f"[{at_s:5.0f} s] {result.part.name}: {result.verdict} after {result.seconds:.0f} s", flush=True)

    def end_staying(self) -> None:
        """End the parts that stay, and note what they took of the processors."""
        for name, seconds in self.runner.end_staying().items():
            self.results[name] = dataclasses.replace(self.results[name], processor_s=seconds)

    def rerun_late(self) -> list[str]:
        """Run late tests once more, when nothing else runs; return why the gate fails all the same."""
        late = {name: result.late for name, result in self.results.items() if result.late}
        tests = [each["test"] for failures in late.values() for each in failures]
        known = {line.partition(" ")[2].strip() for line in LATE_LIST.read_text(encoding="utf-8").splitlines()}
        if again := sorted(known & set(tests)):
            return [f"late once more, and not mended since ({LATE_LIST}): {test}" for test in again]
        if len(tests) > LATE_LIMIT:
            return [f"late {len(tests)} times, which is more than {LATE_LIMIT}"]
        return [text for name, failures in late.items() for text in self._rerun(self.results[name].part, failures)]

    def _rerun(self, part: Part, failures: Sequence[Mapping[str, Any]]) -> list[str]:
        again = dataclasses.replace(part, name=f"{part.name}-again", target=(*part.target, "WORKERS="))
        LATE_FOLDER.mkdir(parents=True, exist_ok=True)
        only = LATE_FOLDER / f"{again.name}.tests"
        only.write_text("\n".join({test: "" for each in failures for test in each["rerun"]}), encoding="utf-8")
        text = "\n\n".join(f"{each['test']}\n{each['text']}" for each in failures)
        (LATE_FOLDER / f"{part.name}.txt").write_text(text, encoding="utf-8")
        result = self.runner.run(again, **{ONLY_VARIABLE: str(only.absolute())})
        self._add(result)
        if again.log.exists():
            shutil.copyfile(again.log, LATE_FOLDER / f"{again.name}.txt")
        wrong = [each["test"] for each in failures if result.tests.get(each["test"]) != "passed"]
        if result.verdict != "passed" or wrong:
            return [f"{again.name}: {result.verdict}", *(f"did not pass when it ran alone: {test}" for test in wrong)]
        lines = [f"{time.strftime('%Y-%m-%d')} {each['test']}\n" for each in failures]
        with LATE_LIST.open("a", encoding="utf-8") as known:
            known.writelines(lines)
        for each in failures:
            print(f"LATE: {each['test']} passed when it ran alone. Both outputs are in {LATE_FOLDER}.")
        print(f"Mend what was late, or commit these lines of {LATE_LIST}:\n{''.join(lines)}")
        return []


def print_table(results: Sequence[Result]) -> None:
    """Print the slowest tests, and a line for each part."""
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
            f"  {'' if result.verdict == 'passed' else result.verdict}"
        )


def print_processors(results: Sequence[Result]) -> None:
    """Print the files that take most of the processors and the sum of all parts, the real services apart.

    A sum far above the figure in the repository is reported, not refused: it depends on the machine.
    """
    files: collections.Counter[str] = collections.Counter()
    for result in results:
        files.update(result.document.get("processor_s", {}))
    print(f"\n{'files that take most of the processors':<100} cpu s")
    for file, seconds in files.most_common(SLOWEST):
        print(f"{file:<100} {seconds:5.0f}")
    services = sum(result.processor_s for result in results if result.part.stays)
    total = sum(result.processor_s for result in results) - services
    print(f"\nprocessor seconds: {total:.0f}, and {services:.0f} of the real services")
    figure = float(PROCESSOR_FIGURE.read_text(encoding="utf-8"))
    if total > TOLERATED * figure:
        print(f"MORE: {total:.0f} processor seconds are more than a tenth above the {figure:.0f} of {PROCESSOR_FIGURE}")


def print_failures(results: Sequence[Result]) -> None:
    """Print failed tests with the command that runs them alone, and the end of parts that failed without a test."""
    for result in results:
        for each in result.failures:
            alone = f".venv/bin/pytest {shlex.quote(each['test'])}"
            print(f"\n== {each['test']}\n{each['text']}\nalone: {alone}")
        if not result.is_good and not result.failures and result.part.log.exists():
            lines = result.part.log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
            print("\n".join([f"\n== make {' '.join(result.part.target)}: the end of {result.part.log}", *lines]))


def failed_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield a line for each test that failed, for a reader who has the end of the output alone."""
    for result in results:
        for each in result.failures:
            error = next((line[1:].strip() for line in each["text"].splitlines() if line.startswith("E  ")), "")
            kind = "late" if each["rerun"] else "failed"
            yield f"{kind}: {result.part.name}: {each['test']}: {error[:MESSAGE_LENGTH]}"


def summary(results: Sequence[Result], seconds: float, *, is_good: bool) -> str:
    """Return the sum of all tests as pytest's last line has it; a part that failed without a test counts as one."""
    tests: dict[str, str] = {}
    for result in results:  # a late test has passed if it did at last
        tests |= {f"{result.part.target[0]} {test}": state for test, state in result.tests.items()}
        if not result.is_good and "failed" not in result.tests.values():
            tests[result.part.name] = "failed"
    counts = collections.Counter(tests.values())
    if not is_good and not counts["failed"]:
        counts["failed"] = 1
    texts = [f"{counts[state]} {state}" for state in ("failed", "passed", "skipped") if counts[state]]
    clock = datetime.timedelta(seconds=int(seconds))
    return f" {', '.join(texts) or 'no tests ran'} in {seconds:.2f}s ({clock}) ".center(80, "=")


def run(lanes: Sequence[Sequence[Part]]) -> int:
    """Run parts and what was late in them, and print the report; return the exit status."""
    shutil.rmtree(LATE_FOLDER, ignore_errors=True)
    gate = Gate(lanes)
    stopped: list[str] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopped.append(f"ended by {signal.Signals(number).name}")
        gate.runner.kill()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    gate.run()
    reasons = [f"{result.part.name}: {result.verdict}" for result in gate.results.values() if not result.is_good]
    reasons = stopped + reasons or gate.rerun_late()
    gate.end_staying()
    results = list(gate.results.values())
    print_table(results)
    print_processors(results)
    if reasons:
        print_failures(results)
        print("\n".join([*(f"FAILED: {reason}" for reason in reasons), *failed_lines(results)]))
    last_line = summary(results, time.monotonic() - gate.began_s, is_good=not reasons)
    (FOLDER / "summary").write_text(f"{last_line}\n", encoding="utf-8")
    print(last_line)
    return 1 if reasons else 0


def main() -> int:
    """Run the named parts, or all."""
    names = [part.name for lane in LANES for part in lane]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", metavar="PART", help=", ".join([*names, "all"]))
    wanted = parser.parse_args().parts
    if wanted == ["all"]:
        wanted = names
        if os.environ.get("LAB") == "no":
            wanted = [name for name in names if not name.startswith("lab")]
            print("left out (LAB=no): the contract suite, servers and the demo on real services")
    if unknown := set(wanted) - set(names):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    lanes = [[part for part in lane if part.name in wanted] for lane in LANES]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            parser.error(f"another gate runs in this checkout ({FOLDER / 'lock'})")
        return run([lane for lane in lanes if lane])


if __name__ == "__main__":
    sys.exit(main())
