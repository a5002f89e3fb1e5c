"""The gate with parts that only leave outcomes."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from capo.local.processes import started_at
from environments.manager_process import wait_until
from tools.gate import __main__ as gate
from tools.gate import parts
from tools.gate.parts import FOLDER, LANES, UP_VARIABLE, Part
from tools.gate.plugin import ONLY_VARIABLE, OUTCOMES_VARIABLE

MAKEFILE: Final = f"""
.PHONY: one two three
one two three:
\tcp $@$(if $({ONLY_VARIABLE}),-again).json $({OUTCOMES_VARIABLE})
\texit $$(cat $@$(if $({ONLY_VARIABLE}),-again).status)
"""
DAEMON: Final = f"""
import os, pathlib, time
while time.process_time() < 1:
    pass
pathlib.Path(os.environ["{UP_VARIABLE}"]).touch()
open("end").read()
"""
Write = Callable[..., None]


def outcomes(passed: int = 0, late: int = 0, wrong: int = 0) -> dict[str, Any]:
    """Return the outcomes of a part."""
    names = {f"late-{i}": [f"late-{i}"] for i in range(late)} | {f"wrong-{i}": [] for i in range(wrong)}
    failures = [
        {"test": name, "text": "text\nE   more text\nE   and more", "rerun": rerun} for name, rerun in names.items()
    ]
    tests = {**{f"passed-{i}": "passed" for i in range(passed)}, **dict.fromkeys(names, "failed")}
    return {"status": 1 if names else 0, "tests": tests, "failures": failures, "slowest": [["slow (call)", 3.0]]}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that says what a part comes to."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (tmp_path / "tools" / "gate").mkdir(parents=True)
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / gate.LATE_LIST).write_text("", encoding="utf-8")
    (tmp_path / gate.PROCESSOR_FIGURE).write_text("1000\n", encoding="utf-8")

    def said(name: str, document: dict[str, Any], status: int | None = None) -> None:
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
        (tmp_path / f"{name}.status").write_text(str(document["status"] if status is None else status), "utf-8")

    return said


def part(name: str, *needs: str) -> Part:
    """Return a part whose target is its name."""
    return Part(name, (name,), needs)


def last_line(printed: pytest.CaptureFixture[str]) -> str:
    """Return the last line, without the time."""
    return re.sub(r" in [0-9.]+s \([0-9:]+\) ", "", printed.readouterr().out.splitlines()[-1]).strip("= ")


def test_parts_that_pass_are_summed_up(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("one", outcomes(passed=3))
    write("two", outcomes(passed=4))

    assert gate.run([[part("one")], [part("two", "one")]]) == 0
    assert last_line(capsys) == "7 passed"


def test_a_late_test_that_passes_alone_is_printed(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("one", outcomes(passed=3, late=1))
    write("one-again", {**outcomes(), "tests": {"late-0": "passed"}})

    assert gate.run([[part("one")]]) == 0
    printed = capsys.readouterr().out
    assert "LATE: late-0 passed when it ran alone" in printed
    assert re.fullmatch(r"=+ 4 passed in [0-9.]+s \([0-9:]+\) =+", printed.splitlines()[-1])
    assert "text" in (gate.LATE_FOLDER / "one.txt").read_text(encoding="utf-8")


def test_a_late_test_that_fails_again_fails_the_gate(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("one", outcomes(passed=3, late=1))
    write("one-again", outcomes(late=1))

    assert gate.run([[part("one")]]) == 1
    assert last_line(capsys) == "1 failed, 3 passed"


@pytest.mark.parametrize(
    ("document", "listed"),
    [
        pytest.param(outcomes(passed=1, late=4), "", id="four late tests"),
        pytest.param(outcomes(passed=1, late=1), "2026-11-26 late-0", id="late before"),
        pytest.param(outcomes(passed=1, late=1, wrong=1), "", id="a wrong state beside it"),
        pytest.param({**outcomes(passed=1, late=1), "status": 3}, "", id="an error of pytest beside it"),
    ],
)
def test_late_tests_do_not_run_again(write: Write, document: dict[str, Any], listed: str) -> None:
    write("one", document)
    gate.LATE_LIST.write_text(listed, encoding="utf-8")

    assert gate.run([[part("one")]]) == 1
    assert not gate.LATE_FOLDER.exists()


def test_the_last_lines_name_all_that_failed(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("one", outcomes(passed=1, wrong=2))
    write("two", outcomes(late=1))

    assert gate.run([[part("one"), part("two")]]) == 1
    assert capsys.readouterr().out.splitlines()[-5:-1] == [
        "FAILED: one: failed",
        "failed: one: wrong-0: more text",
        "failed: one: wrong-1: more text",
        "late: two: late-0: more text",
    ]


def test_a_part_without_outcomes_fails_by_its_status(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("one", outcomes(passed=2), status=1)
    write("two", outcomes(passed=5))
    write("three", outcomes(passed=1))

    assert gate.run([[part("one"), part("two", "one"), part("three")]]) == 1
    printed = capsys.readouterr().out
    assert "FAILED: one: failed" in printed
    assert "FAILED: two: not run" in printed
    assert re.fullmatch(r"=+ 2 failed, 3 passed in .*", printed.splitlines()[-1])


def test_a_late_test_that_is_skipped_when_it_runs_again_fails_the_gate(write: Write) -> None:
    write("one", outcomes(passed=3, late=1))
    write("one-again", {**outcomes(), "tests": {"late-0": "skipped"}})

    assert gate.run([[part("one")]]) == 1


def test_a_late_test_that_passes_is_listed(write: Write) -> None:
    write("one", outcomes(passed=3, late=1))
    write("one-again", {**outcomes(), "tests": {"late-0": "passed"}})

    gate.run([[part("one")]])

    assert gate.LATE_LIST.read_text(encoding="utf-8").endswith(" late-0\n")


def test_a_part_with_tests_that_runs_none_fails(write: Write) -> None:
    write("one", outcomes())

    assert gate.run([[part("one")]]) == 1


def test_outcomes_that_cannot_be_read_fail_the_gate_and_do_not_hang_it(write: Write) -> None:
    write("one", outcomes(passed=1))
    Path("one.json").write_text("{", encoding="utf-8")
    write("two", outcomes(passed=1))

    assert gate.run([[part("one")], [part("two", "one")]]) == 1


def test_what_runs_when_the_time_is_over_is_killed_and_named(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = "timeout 600 sleep 599 & echo $$! >starts; mv starts pid; wait"
    Path("Makefile").write_text(f"hangs:\n\t{hangs}\n", encoding="utf-8")
    pid = Path("pid")

    def now_s() -> float:
        return time.monotonic() + (2 * gate.LIMIT_S if pid.exists() else 0.0)

    monkeypatch.setattr(parts, "time", types.SimpleNamespace(monotonic=now_s, sleep=time.sleep))

    assert gate.run([[part("hangs")]]) == 1
    assert "FAILED: hangs: failed" in capsys.readouterr().out
    killed = int(pid.read_text(encoding="utf-8"))
    wait_until("the process is gone", lambda: started_at(killed) is None)


def test_a_part_that_stays_ends_after_all_others(write: Write) -> None:
    write("one", outcomes(passed=1))
    makefile = Path("Makefile")
    stays = f'\nstays:\n\ttouch "$${UP_VARIABLE}" && cat && echo ended >ended\n'
    makefile.write_text(makefile.read_text(encoding="utf-8") + stays, encoding="utf-8")

    lab = Part("stays", ("stays",), has_tests=False, stays=True)
    assert gate.run([[lab, part("one", "stays")]]) == 0
    assert Path("ended").exists()


def test_the_files_that_take_most_of_the_processors_are_printed_for_all_parts(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one", {**outcomes(passed=1), "processor_s": {"a.py": 20.0, **{f"{i}.py": 1.0 for i in range(gate.SLOWEST)}}})
    write("two", {**outcomes(passed=1), "processor_s": {"a.py": 5.0, "b.py": 24.0}})

    assert gate.run([[part("one")], [part("two")]]) == 0
    printed = capsys.readouterr().out.splitlines()
    begins = next(number for number, line in enumerate(printed) if line.startswith("files that take most"))
    shown = [line.split() for line in printed[begins + 1 : printed.index("", begins)]]
    assert shown[:3] == [["a.py", "25"], ["b.py", "24"], ["0.py", "1"]]
    assert len(shown) == gate.SLOWEST


@pytest.mark.parametrize(
    ("seconds", "is_reported"),
    [pytest.param(1099.0, False, id="less than a tenth"), pytest.param(1101.0, True, id="more than a tenth")],
)
def test_a_sum_far_above_the_figure_is_reported_and_not_refused(
    write: Write, capsys: pytest.CaptureFixture[str], seconds: float, is_reported: bool
) -> None:
    results = [
        parts.Result(part("one"), 0, processor_s=seconds - 100.0),
        parts.Result(part("two"), 0, processor_s=100.0),
        parts.Result(Part("lab", ("lab",), stays=True), 0, processor_s=500.0),
    ]

    gate.print_processors(results)

    printed = capsys.readouterr().out
    assert f"processor seconds: {seconds:.0f}, and 500 of the real services\n" in printed
    assert ("MORE: 1101 processor seconds are more than a tenth above the 1000" in printed) is is_reported


def test_services_that_a_part_starts_as_daemons_are_counted_apart(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write("one", outcomes(passed=1))
    Path("daemon.py").write_text(DAEMON, encoding="utf-8")
    os.mkfifo("end")
    makefile = Path("Makefile")
    stays = f"\nstays:\n\t(setsid {sys.executable} daemon.py >/dev/null 2>&1 &); cat && echo >end\n"
    makefile.write_text(makefile.read_text(encoding="utf-8") + stays, encoding="utf-8")

    lab = Part("stays", ("stays",), has_tests=False, stays=True)
    assert gate.run([[lab, part("one", "stays")]]) == 0
    shown = re.search(r"processor seconds: (\d+), and (\d+) of the real services", capsys.readouterr().out)
    assert shown
    assert int(shown[2]) >= 1


@pytest.mark.lint
def test_each_part_needs_parts_of_the_gate_and_is_a_target_of_the_makefile() -> None:
    every = [each for lane in LANES for each in lane]
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")

    assert {name for each in every for name in each.needs} <= {each.name for each in every}
    assert all(f"\n{each.target[0]}:" in makefile for each in every)
