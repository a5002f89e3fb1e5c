"""The plugin in pytest runs of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tools.gate.plugin import ONLY_VARIABLE, OUTCOMES_VARIABLE, TOGETHER, group

ROOT: Final = Path(__file__).parents[2]
LATE: Final = """
import pytest
from environments.manager_process import NotReachedError

@pytest.mark.integration
def test_waits():
    raise NotReachedError("all is made: not within 180 s")
"""
INDEPENDENT: Final = (
    LATE.replace("@pytest.mark.integration", "@pytest.mark.integration\n@pytest.mark.independent")
    + """

@pytest.mark.integration
def test_passes():
    pass
"""
)
CHAIN: Final = """
import pytest
from environments.manager_process import NotReachedError

pytestmark = [pytest.mark.integration, pytest.mark.incremental]

def test_begins():
    pass

def test_fails():
    raise NotReachedError("not within 180 s")

def test_follows():
    pass
"""
BROKEN_FIXTURE: Final = """
import pytest
from environments.manager_process import NotReachedError

@pytest.fixture(scope="session")
def rig():
    raise NotReachedError("etcd is not ready")

@pytest.mark.integration
@pytest.mark.parametrize("number", range(3))
def test_needs_a_rig(rig, number):
    pass
"""


WRONG: Final = """
import pytest

@pytest.mark.integration
def test_is_wrong():
    raise AssertionError("created twice")
"""
VIRTUAL: Final = LATE.replace("@pytest.mark.integration", "")
LEAKS_AFTERWARDS: Final = """
import pytest
from environments.manager_process import NotReachedError

@pytest.fixture
def cloud():
    yield
    raise AssertionError("left behind")

@pytest.mark.integration
def test_leaks(cloud):
    pass
"""
DIED: Final = """
from pathlib import Path

import pytest
from capo.local.errors import ProcessDiedError

def died(name):
    return ProcessDiedError(name, how="ended", log=Path("log"), tail="")

@pytest.mark.integration
@pytest.mark.parametrize("name", ["etcd", "capo"])
def test_starts(name):
    raise died(name)
"""


WORKS: Final = """
import subprocess, sys, time
import pytest

WORK = "import time\\nwhile time.process_time() < {}: pass"

@pytest.fixture(scope="module")
def child():
    yield
    subprocess.run([sys.executable, "-c", WORK.format(0.5)], check=True)

def test_works(child):
    ends_s = time.process_time() + 0.5
    while time.process_time() < ends_s:
        pass
"""


FILES: Final = {
    "test_broken_fixture.py": BROKEN_FIXTURE,
    "test_chain.py": CHAIN,
    "test_cannot_be_imported.py": "import missing_module",
    "test_died.py": DIED,
    "test_independent.py": INDEPENDENT,
    "test_late.py": LATE,
    "test_leaks.py": LEAKS_AFTERWARDS,
    "test_virtual.py": VIRTUAL,
    "test_works.py": WORKS,
    "test_wrong.py": WRONG,
}


def run(folder: Path, *arguments: str, **variables: str) -> Any:
    """Run all files in a pytest of its own; return its outcomes."""
    outcomes = folder / "outcomes.json"
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n integration\n incremental\n independent\n", encoding="utf-8"
    )
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tools.gate.plugin", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), OUTCOMES_VARIABLE: str(outcomes), **variables},
        capture_output=True,
        check=False,
    )
    return json.loads(outcomes.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the outcomes of all files, run in two processes."""
    return run(tmp_path_factory.mktemp("all"), "-n", "2", "--dist", "loadfile")


def failures(outcomes: Any, file: str) -> dict[str, Any]:
    """Return the failures of a file by the names of their tests."""
    names = {each["test"]: each for each in outcomes["failures"]}
    return {test.partition("::")[2]: each for test, each in names.items() if test.startswith(file)}


def test_a_wait_of_real_processes_that_timed_out_is_late(outcomes: Any) -> None:
    failure = failures(outcomes, "test_late.py")["test_waits"]

    assert failure["rerun"] == ["test_late.py::test_waits"]
    assert "not within 180 s" in failure["text"]


def test_an_independent_test_runs_again_alone(outcomes: Any) -> None:
    failure = failures(outcomes, "test_independent.py")["test_waits"]

    assert failure["rerun"] == ["test_independent.py::test_waits"]


@pytest.mark.parametrize(
    "file", ["test_wrong.py", "test_virtual.py", "test_leaks.py", "test_cannot_be_imported.py"], ids=lambda file: file
)
def test_what_is_wrong_is_not_late(outcomes: Any, file: str) -> None:
    (failure,) = failures(outcomes, file).values()

    assert not failure["rerun"]


def test_a_program_of_the_rig_that_does_not_start_is_late_and_a_manager_of_ours_that_ends_is_not(outcomes: Any) -> None:
    late = {test: bool(failure["rerun"]) for test, failure in failures(outcomes, "test_died.py").items()}

    assert late == {"test_starts[etcd]": True, "test_starts[capo]": False}


def test_a_chain_fails_once_and_runs_again_whole(outcomes: Any) -> None:
    (failure,) = failures(outcomes, "test_chain.py").values()

    names = [f"test_chain.py::test_{name}" for name in ("begins", "fails", "follows")]
    assert (failure["test"], failure["rerun"]) == (names[1], names)
    assert [outcomes["tests"][name] for name in names] == ["passed", "failed", "skipped"]


def test_a_fixture_that_fails_does_so_once_for_all_tests_that_need_it(outcomes: Any) -> None:
    (failure,) = failures(outcomes, "test_broken_fixture.py").values()

    names = [f"test_broken_fixture.py::test_needs_a_rig[{number}]" for number in range(3)]
    assert failure["rerun"] == names
    assert [outcomes["tests"][name] for name in names] == ["failed", "skipped", "skipped"]


def test_the_time_of_processors_of_a_file_has_its_fixtures_and_their_children(outcomes: Any) -> None:
    taken = outcomes["processor_s"]

    assert taken["test_works.py"] >= 1.0
    assert taken["test_virtual.py"] < 0.5


def test_only_the_named_tests_run_again(tmp_path: Path) -> None:
    only = tmp_path / "only"
    only.write_text("test_broken_fixture.py::test_needs_a_rig[1]", encoding="utf-8")

    again = run(tmp_path, "test_broken_fixture.py", **{ONLY_VARIABLE: str(only)})

    assert list(again["tests"]) == ["test_broken_fixture.py::test_needs_a_rig[1]"]


def test_tests_of_a_shared_folder_are_one_group() -> None:
    folder = TOGETHER[0]

    assert group(f"{folder}test_a.py::test_x") == group(f"{folder}test_b.py::test_y") == folder
    assert group("api/tests/test_a.py::test_x[1]") == "api/tests/test_a.py"
