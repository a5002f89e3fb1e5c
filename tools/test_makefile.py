"""What the targets of the Makefile need: a whole environment, and of what is released a green audit.

An environment that a killed ``make`` left is created again: pip takes a half-installed package for installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

MAKEFILE: Final = Path(__file__).parents[1] / "Makefile"
PYTHON: Final = """#!/bin/sh
echo "$@" >>calls
[ "$1 $2" != "-m tools.audit" ] || { echo "$ADVISORIES" >advisories; [ ! -e vulnerable ]; exit; }
[ "$1 $2" != "-m venv" ] || for folder; do :; done
[ -z "$folder" ] || { mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python"; cp "$0" "$folder/bin/capo"; }
[ ! -e no-network ] || [ "$1 $2" != "-m pip" ]
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a folder with the files that the targets read, and a Python that notes its calls."""
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "image").mkdir()
    for name in ("pyproject.toml", "image/simulator.txt"):
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


def environments_created(clone: Path, stamp: str) -> int:
    """Return how many environments a run of ``make`` creates."""
    (clone / "calls").write_text("")
    subprocess.run(["make", stamp, "PYTHON=./python"], cwd=clone, capture_output=True, check=False)
    return (clone / "calls").read_text().count("-m venv ")


@pytest.mark.parametrize("folder", [".venv", ".venv-docs"])
def test_an_environment_without_its_stamp_is_created_again(clone: Path, folder: str) -> None:
    stamp = f"{folder}/.installed"
    first = environments_created(clone, stamp)
    (clone / stamp).unlink()

    again = environments_created(clone, stamp)

    assert (first, again) == (1, 1)
    assert (clone / stamp).exists()


@pytest.mark.parametrize("folder", [".venv", ".venv-docs"])
def test_an_update_of_an_environment_that_did_not_end_leaves_no_stamp(clone: Path, folder: str) -> None:
    stamp = clone / folder / ".installed"
    environments_created(clone, f"{folder}/.installed")
    os.utime(stamp, (0, 0))
    (clone / "no-network").touch()

    created = environments_created(clone, f"{folder}/.installed")

    assert created == 0
    assert not stamp.exists()


@pytest.mark.parametrize(
    ("target", "step"),
    [
        ("release", "-m tools.image wheel"),
        ("image", "-m tools.image build"),
        ("image-multi-arch", "-m tools.image multi-arch"),
    ],
)
def test_what_is_released_is_built_only_after_a_green_audit(clone: Path, target: str, step: str) -> None:
    (clone / "vulnerable").touch()

    refused, calls = run(clone, target), (clone / "calls").read_text().splitlines()

    assert refused != 0
    assert "-m tools.audit" in calls
    assert [call for call in calls if call.startswith(("release", "-m tools.image"))] in ([], ["-m tools.image sbom"])

    (clone / "vulnerable").unlink()

    assert run(clone, target) == 0
    assert [call.strip() for call in (clone / "calls").read_text().splitlines()][-1] == step


@pytest.mark.parametrize("target", ["release", "image", "image-multi-arch"])
def test_advisories_that_cannot_be_had_refuse_a_release_unless_they_are_optional(clone: Path, target: str) -> None:
    assert run(clone, target) == 0
    assert (clone / "advisories").read_text() == "required\n"

    assert run(clone, target, "ADVISORIES=optional") == 0
    assert (clone / "advisories").read_text() == "optional\n"

    assert run(clone, "audit") == 0
    assert (clone / "advisories").read_text() == "\n"


def run(clone: Path, *arguments: str) -> int:
    """Return the exit status of ``make``."""
    environment = {name: value for name, value in os.environ.items() if name != "ADVISORIES"}
    command = ["make", "PYTHON=./python", *arguments]
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, check=False).returncode
