"""pytest plugin: tests that belong together, chains that fail once, late tests, and the outcomes of a run as JSON.

A failure is *late* if a test of real processes ended because a wait timed out or a program of the rig did not start.
The gate runs such a test once more when nothing else runs. Any other failure is final.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import resource
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from capo.local import components
from capo.local.errors import NotReadyError, ProcessDiedError
from environments.manager_process import NotReachedError

TOGETHER: Final = ("e2e/clusterctl/", "e2e/contract/", "e2e/faults/", "e2e/servers/")
"""Folders whose tests share what takes long to start, or count what the tests of all files did.

The last test of the contract suite asks whether the tests of all its files, together, received what is recorded. In
``e2e/faults`` the first test starts the scenarios of all files. The others share a rig or a project.
"""
REAL_PROCESSES: Final = ("integration", "lab")
"""Marks of the tests that start programs; no other test has a reason to be late."""
RIG_PROGRAMS: Final = frozenset(component.name for component in (*components.API, *components.MANAGERS))
OUTCOMES_VARIABLE: Final = "GATE_OUTCOMES"
"""The file to write the outcomes of a run into; without it they are not written."""
ONLY_VARIABLE: Final = "GATE_ONLY"
"""A file with the tests to run, a line each; without it all that pytest collects."""
SLOWEST: Final = 60
"""Number of slow phases of tests in the outcomes."""

State = Literal["passed", "skipped", "failed"]
FAILED_IN_CHAIN: Final = pytest.StashKey[dict[Path, str]]()
TAKEN: Final = pytest.StashKey[float]()
BROKEN_FIXTURES: Final = pytest.StashKey[list[tuple[BaseException, str]]]()


def group(nodeid: str) -> str:
    """Return what a test belongs to: its folder if all tests of the folder belong together, else its file."""
    folders = (folder for folder in TOGETHER if nodeid.startswith(folder))
    return next(folders, nodeid.partition("::")[0])


def taken_s() -> float:
    """Return the time of processors that this process took, and those of its children that ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def is_late(error: BaseException) -> bool:
    """Return whether an exception says that something has not happened yet, rather than that something is wrong.

    A manager of ours that ends is a defect; a program of the rig that ends was killed by a machine out of memory.
    """
    if isinstance(error, ProcessDiedError):
        return error.name in RIG_PROGRAMS
    return isinstance(error, NotReachedError | NotReadyError)


@dataclasses.dataclass
class Failure:
    """A test that failed.

    Attributes:
        text: what pytest prints about it.
        rerun: the tests to run again if it is late: its group, since a test may depend on what others left, or the
            test alone if it is marked as independent. Empty if it is not late.
    """

    test: str
    text: str
    rerun: list[str] = dataclasses.field(default_factory=list)


class Outcomes:
    """What a run came to, written to a file at its end."""

    def __init__(self, path: Path) -> None:
        """Write to this file."""
        self._path = path
        self._states: dict[str, State] = {}
        self._failures: list[Failure] = []
        self._seconds: dict[str, float] = collections.defaultdict(float)
        self._processor_s: dict[str, float] = collections.defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test; its first failed phase decides, since what follows from it fails as well."""
        self._seconds[f"{report.nodeid} ({report.when})"] += report.duration
        self._processor_s[report.nodeid.partition("::")[0]] += getattr(report, "processor_s", 0.0)
        if report.failed and self._states.get(report.nodeid) == "failed":
            failure = next(each for each in self._failures if each.test == report.nodeid)
            failure.text += f"\n\n{report.when}:\n{report.longreprtext}"
        elif report.failed:
            self._failures.append(Failure(report.nodeid, report.longreprtext, getattr(report, "rerun", [])))
            self._states[report.nodeid] = "failed"
        elif report.skipped or report.when == "call":
            self._states.setdefault(report.nodeid, report.outcome)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Add a file that cannot be imported."""
        if report.failed:
            self._failures.append(Failure(report.nodeid, report.longreprtext))

    def pytest_internalerror(self, excrepr: object) -> None:
        """Add an error of pytest itself, after which it may exit with 0."""
        self._failures.append(Failure("pytest", str(excrepr)))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the file."""
        if missing := session.testscollected - len(self._states):
            self._failures.append(Failure("pytest", f"{missing} collected tests have no outcome"))
        document = {
            "status": int(exitstatus),
            "tests": self._states,
            "failures": [dataclasses.asdict(failure) for failure in self._failures],
            "slowest": sorted(self._seconds.items(), key=lambda item: -item[1])[:SLOWEST],
            "processor_s": self._processor_s,
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps(document, indent=1), encoding="utf-8")
        partial.replace(self._path)


class GroupScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Give all tests of a group to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Divide the tests between processes for ``--dist loadfile``."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    """Collect outcomes in the process where the reports of all processes arrive."""
    # Taken out, so that neither a process of xdist nor a pytest that a test starts writes into the same file.
    if path := os.environ.pop(OUTCOMES_VARIABLE, None):
        config.pluginmanager.register(Outcomes(Path(path)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not to run again."""
    if path := os.environ.get(ONLY_VARIABLE):
        only = set(Path(path).read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in only])
        items[:] = [item for item in items if item.nodeid in only]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Begin to count the time of processors; what collects the tests is no test's."""
    session.stash[TAKEN] = taken_s()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test if one before it in its file failed, and it builds on them."""
    failed = item.session.stash.setdefault(FAILED_IN_CHAIN, {}).get(item.path)
    if failed and item.get_closest_marker("incremental"):
        pytest.skip(f"needs {failed}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Note what a phase took of the processors, what fails other tests as well, and whether a failure is late."""
    report = yield
    now_s = taken_s()
    report.processor_s = now_s - item.session.stash[TAKEN]
    item.session.stash[TAKEN] = now_s
    if not report.failed or call.excinfo is None:
        return report
    error = call.excinfo.value
    broken = item.session.stash.setdefault(BROKEN_FIXTURES, [])
    # pytest keeps the exception of a fixture that failed, and raises the same one for each test that needs it.
    if known := next((test for known, test in broken if known is error), None):
        report.outcome, report.longrepr = (
            "skipped",
            (str(item.path), 0, f"Skipped: needs a fixture that failed in {known}"),
        )
        return report
    if call.when == "setup":
        broken.append((error, item.name))
    if item.get_closest_marker("incremental"):
        item.session.stash.setdefault(FAILED_IN_CHAIN, {}).setdefault(item.path, item.name)
    if is_late(error) and any(map(item.get_closest_marker, REAL_PROCESSES)):
        beside = [] if item.get_closest_marker("independent") else item.session.items
        report.rerun = [each.nodeid for each in beside if group(each.nodeid) == group(item.nodeid)] or [item.nodeid]
    return report
