"""The lab's scripts: where they cannot run they print one line and change nothing; paused services are resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "openstack-lab" / "up.sh"
NOBODY = 65534


def up(lab: Path, *, user: int | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script; pass it by standard input, since the user may not be allowed to read its folder."""
    return subprocess.run(
        ["/bin/bash", "-s"],
        input=SCRIPT.read_text(encoding="utf-8"),
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LAB_DIR": str(lab), **environment},
        user=user,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("release", "words"),
    [
        pytest.param("ID=ubuntu\nVERSION_ID=24.04\n", "ubuntu 24.04", id="another distribution"),
        pytest.param("ID=debian\nVERSION_ID=13\n", "debian 13", id="another release"),
        pytest.param("ID=debian\n", "debian", id="a rolling release"),
        pytest.param(None, "unknown", id="no release file"),
    ],
)
def test_lab_on_another_system_is_refused_in_one_line(tmp_path: Path, release: str | None, words: str) -> None:
    path = tmp_path / "os-release"
    if release is not None:
        path.write_text(release, encoding="utf-8")

    ended = up(tmp_path / "lab", LAB_OS_RELEASE=str(path))

    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"the lab needs root on Debian 12; this is {words} (LAB_ANY_SYSTEM=1 tries all the same)"
    ]
    assert (ended.stdout, (tmp_path / "lab").exists()) == ("", False)


def test_lab_of_another_user_than_root_is_refused_in_one_line(tmp_path: Path) -> None:
    ended = up(tmp_path / "lab", user=NOBODY if os.geteuid() == 0 else None, LAB_ANY_SYSTEM="1")

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("the lab needs root on Debian 12; this is user ")
    assert (ended.stdout, (tmp_path / "lab").exists()) == ("", False)


PAUSES: Final = """
import signal, time
import place, processes

for folder in (place.LOG, place.RUN, place.VAR):
    folder.mkdir()

def wait_for(state):
    ends = time.monotonic() + 60
    while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != state:
        assert time.monotonic() < ends, f"not in state {state}"
        time.sleep(0.02)

processes.start("sleeper", ["sleep", 600])
pid = processes.recorded("sleeper")
try:
    processes.send(signal.SIGSTOP, [pid])
    wait_for("T")
    processes.start("sleeper", ["sleep", 600])
    wait_for("S")
    assert processes.recorded("sleeper") == pid
finally:
    processes.stop(["sleeper"])
"""


def test_service_that_was_left_paused_goes_on_when_the_lab_is_started_again(tmp_path: Path) -> None:
    environment = {**os.environ, "LAB_DIR": str(tmp_path), "PYTHONPATH": str(SCRIPT.parent)}

    ended = subprocess.run(
        [sys.executable, "-c", PAUSES], env=environment, capture_output=True, text=True, timeout=120, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")
