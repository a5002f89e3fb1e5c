"""The parts of the gate: each is a target of the Makefile, so that one part can be run alone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final

from tools.gate.plugin import OUTCOMES_VARIABLE

FOLDER: Final = Path("build/gate")
POLL_S: Final = 0.2
UP_VARIABLE: Final = "GATE_UP"
"""The file that a part which stays touches when it is up."""
SESSION: Final = 3
TIMES: Final = slice(11, 15)
"""Fields of a process, counted from its state: its session; its time of processors and that of children that ended."""
END_S: Final = 120.0
"""For a part that stays, to end after its input has ended."""
GOGC: Final = "300"
"""For the garbage collector of API servers: a quarter less of the processors, and 950 MiB each instead of 590."""
FIRST: Final = -10
"""Niceness of the real services: an operation passes through a dozen of their processes, and waits for each."""
LAB: Final = ("CLOUD=lab", "LAB_HELD=1")
"""Variables of targets on the real services, which another part holds for all of them."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One part.

    Attributes:
        target: of the Makefile, with variables.
        needs: names of parts that have to pass before this one begins.
        niceness: what only computes gives way to what others wait for.
        has_tests: whether it writes outcomes.
        stays: whether it is started with a command that touches a file when it is up, and goes on until its input ends.
    """

    name: str
    target: tuple[str, ...]
    needs: tuple[str, ...] = ()
    niceness: int = 0
    has_tests: bool = True
    stays: bool = False

    @property
    def log(self) -> Path:
        """Return the file of its output."""
        return FOLDER / f"{self.name}.log"

    @property
    def outcomes(self) -> Path:
        """Return the file of its tests' outcomes; a part without tests writes none."""
        return FOLDER / f"{self.name}.json"


LANES: Final[Sequence[Sequence[Part]]] = (
    (Part("check", ("check",)),),
    (
        Part("build", ("build",), has_tests=False),
        Part("integration", ("test-integration",), needs=("build",)),
        # They only compute: beside the others they took the processors of what waits, and waited themselves.
        Part("unit", ("test-unit",), niceness=5),
    ),
    (
        Part("crash", ("crash-sample",), needs=("build",)),
        Part("upgrade", ("upgrade-sample",), needs=("build",)),
        Part("demo", ("demo",), needs=("build",), has_tests=False),
    ),
    (
        Part("lab", ("openstack-hold",), niceness=FIRST, has_tests=False, stays=True),
        Part("lab-contract", ("contract", *LAB), needs=("lab",), niceness=FIRST),
        Part("lab-servers", ("servers", *LAB), needs=("build", "lab"), niceness=FIRST),
        Part(
            "lab-demo",
            ("demo", *LAB, "DEMO_FLAGS=--state .demo-lab"),
            needs=("build", "lab"),
            niceness=FIRST,
            has_tests=False,
        ),
    ),
)
"""The parts of a lane run one after the other; the lanes beside one another, since most of them wait."""


@dataclasses.dataclass(frozen=True)
class Result:
    """How a part ended.

    Attributes:
        status: exit status; None if it did not begin: a part that it needs failed, or the time was over.
        processor_s: time of processors that it and its children took; of a part that stays, all that it started.
        document: what ``plugin.Outcomes`` wrote; empty if it did not.
    """

    part: Part
    status: int | None
    seconds: float = 0.0
    processor_s: float = 0.0
    document: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def tests(self) -> dict[str, str]:
        """Return its tests with ``passed``, ``skipped`` or ``failed``."""
        return dict(self.document.get("tests", {}))

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """Return its tests that failed."""
        return list(self.document.get("failures", ()))

    @property
    def late(self) -> list[Mapping[str, Any]]:
        """Return its tests that were late."""
        return [failure for failure in self.failures if failure["rerun"]]

    @property
    def verdict(self) -> str:
        """Return one word or two for how it ended."""
        if self.status is None:
            return "not run"
        if self.status == 0 and not self.failures:
            return "passed" if self.tests or not self.part.has_tests else "no tests"
        is_late = self.document.get("status") == 1 and self.late and self.late == self.failures
        return "late" if is_late else "failed"

    @property
    def is_good(self) -> bool:
        """Return whether nothing is wrong, as far as it is known before late tests ran again."""
        return self.verdict in {"passed", "late"}


class Runner:
    """Runs parts, and kills what runs when the time is over."""

    def __init__(self, ends_s: float) -> None:
        """Run until a time of the monotonic clock."""
        self._ends_s = ends_s
        self._running: set[int] = set()
        self._staying: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, part: Part, **environment: str) -> Result:
        """Run a part until it ends, or is up if it stays."""
        if time.monotonic() > self._ends_s:
            return Result(part, None)
        began_s = time.monotonic()
        up = _up(part.name)
        for old in (part.outcomes, up):
            old.unlink(missing_ok=True)
        files = {OUTCOMES_VARIABLE: str(part.outcomes.absolute()), UP_VARIABLE: str(up.absolute())}
        with part.log.open("wb") as log:
            process = subprocess.Popen(
                ["nice", "-n", str(part.niceness), "make", *part.target],
                stdin=subprocess.PIPE if part.stays else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"GOGC": GOGC, **os.environ, **files, **environment},
                start_new_session=True,
            )
        self._running.add(process.pid)
        # Where sessions are groups of the scheduler, niceness counts between the processes of one session alone.
        with contextlib.suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(part.niceness), encoding="utf-8")
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        while not pid and not up.exists():
            if time.monotonic() > self._ends_s:
                self.kill()
            time.sleep(POLL_S)
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
        self._running.discard(process.pid)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
        else:
            self._staying[part.name] = process
        document = json.loads(part.outcomes.read_text(encoding="utf-8")) if part.outcomes.exists() else {}
        seconds = time.monotonic() - began_s
        return Result(part, process.returncode or 0, seconds, used.ru_utime + used.ru_stime, document)

    def end_staying(self) -> dict[str, float]:
        """End the parts that stay; return the time of processors that each took, by name."""
        taken = {name: _taken_s(_up(name)) for name in self._staying}
        for process in self._staying.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=END_S)
        return taken

    def kill(self) -> None:
        """Kill what runs, and start nothing more; rigs are sessions of their own, which the next gate removes."""
        self._ends_s = 0.0
        for pid in _of_sessions(set(self._running)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _up(name: str) -> Path:
    """Return the file that a part which stays touches when it is up."""
    return FOLDER / f"{name}.up"


def _of_sessions(leaders: Set[int]) -> Iterator[int]:
    """Yield the processes of sessions: timeout(1), for one, has a group of its own in the session."""
    for folder, fields in _processes():
        if int(fields[SESSION]) in leaders:
            yield int(folder.name)


def _taken_s(up: Path) -> float:
    """Return the time of processors of all that a part started and of what that waited for.

    Its services are neither its children nor of its session, but they have its environment.
    """
    variable = f"{UP_VARIABLE}={up.absolute()}".encode()
    ticks = 0
    for folder, fields in _processes():
        with contextlib.suppress(OSError):
            if variable in (folder / "environ").read_bytes().split(b"\0"):
                ticks += sum(map(int, fields[TIMES]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _processes() -> Iterator[tuple[Path, list[str]]]:
    """Yield the folder of each process, and the fields of its ``stat`` from the state on. Source: proc(5)."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield folder, (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
