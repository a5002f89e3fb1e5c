"""The lab's scripts: where they cannot run they print one line and change nothing; paused services are resumed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
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


START: Final = """
import sys
import labctl, place

old = place.VAR / "old"
labctl.need_free_ports = lambda: None

def start_all():
    for folder in (place.LOG, place.RUN, place.VAR, place.STATE):
        folder.mkdir(exist_ok=True)
    print("starts with old data" if old.exists() else "starts with nothing")
    if sys.argv[1] == "broken" and old.exists():
        raise SystemExit("mariadb does not listen")

labctl.start_all = start_all
start_all()
old.touch()
if sys.argv[1] != "unfinished":
    labctl.MADE_WITH.write_text("of other scripts" if sys.argv[1] == "other scripts" else labctl.fingerprint())
labctl.up()
assert labctl.MADE_WITH.read_text() == labctl.fingerprint()
"""


@pytest.mark.parametrize(
    ("state", "starts", "says"),
    [
        pytest.param("complete", ["old data"], "", id="complete"),
        pytest.param("unfinished", ["nothing"], "the first start was not finished: deleting its data", id="unfinished"),
        pytest.param(
            "other scripts", ["nothing"], "the data is from other scripts or settings: deleting it", id="older"
        ),
        pytest.param("broken", ["old data", "nothing"], "deleting the data and starting again", id="cannot be started"),
    ],
)
def test_data_that_a_lab_cannot_be_started_with_is_deleted(
    tmp_path: Path, state: str, starts: list[str], says: str
) -> None:
    ended = lab_python(tmp_path, START, state)

    lines = ended.stdout.splitlines()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line for line in lines if line.startswith("starts")] == [
        f"starts with {data}" for data in ("nothing", *starts)
    ]
    assert says in ended.stdout


STRAY: Final = """
import subprocess
import labctl, place, processes

for folder in (place.LOG, place.RUN, place.VAR, place.STATE):
    folder.mkdir()
labctl.need_free_ports = labctl.start_all = lambda: None
labctl.MADE_WITH.write_text(labctl.fingerprint())
stray = subprocess.Popen(["sleep", "600"], env=processes.environment(), start_new_session=True)
processes.start("memcached", ["sh", "-c", "setsid sleep 600 & wait"])
while len({session for _, session in processes.ours().values()}) < 3:
    pass
labctl.up()
assert stray.wait(60) == -9
assert processes.recorded("memcached") and len(processes.ours()) == 2, "what a service started was killed"
labctl.down()
assert not processes.ours()
"""


def test_process_that_a_killed_start_did_not_record_is_killed_by_the_next(tmp_path: Path) -> None:
    ended = lab_python(tmp_path, STRAY)

    assert (ended.returncode, ended.stderr) == (0, "")


PORTS: Final = """
import itertools, os, socket, time
import labctl, place

time.monotonic = itertools.count().__next__
time.sleep = lambda _: None

place.LAB.mkdir(exist_ok=True)
place.RUN.mkdir(exist_ok=True)
with socket.socket() as listener:
    listener.bind((place.HOST, 0))
    listener.listen()
    labctl.PORT = {"nova": listener.getsockname()[1]}
    os.execv = lambda *_: print("again with", place.OFFSET_FILE.read_text())
    labctl.need_free_ports()
"""


def test_port_of_another_process_moves_the_lab_to_other_ports(tmp_path: Path) -> None:
    ended = lab_python(tmp_path, PORTS)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "in use by other processes" in ended.stdout
    assert int(ended.stdout.rpartition("again with ")[2]) % 100 == 0


def test_port_of_another_process_is_an_error_where_the_user_chose_the_ports(tmp_path: Path) -> None:
    ended = lab_python(tmp_path, PORTS, LAB_PORT_OFFSET="100")

    assert ended.returncode == 1
    assert ended.stderr.startswith("ports in use by other processes: ")
    assert ended.stderr.endswith("; set LAB_PORT_OFFSET to another number\n")


def lab_python(lab: Path, code: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LAB_DIR": str(lab), "PYTHONPATH": str(SCRIPT.parent), **more}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Return a lab whose scripts only note what they would do in ``calls``; it runs while ``running`` exists."""
    scripts = {
        "up.sh": 'echo up >>"$LAB_DIR/calls"; touch "$LAB_DIR/running"',
        "down.sh": 'echo down $1 >>"$LAB_DIR/calls"; rm -f "$LAB_DIR/running" "$LAB_DIR/started-by-hold"',
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "labctl.py").write_text(
        f"import os, sys\nsys.exit(not os.path.exists({str(tmp_path / 'running')!r}))\n"
    )
    shutil.copy(SCRIPT.with_name("hold.sh"), tmp_path)
    return tmp_path


@contextlib.contextmanager
def hold(lab: Path, command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [str(lab / "hold.sh"), "sh", "-c", command],
        env={**os.environ, "LAB_DIR": str(lab)},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def calls(lab: Path) -> list[str]:
    return (lab / "calls").read_text().split()


def test_lab_is_started_for_a_command_and_stopped_after_it(lab: Path) -> None:
    with hold(lab, 'echo command >>"$LAB_DIR/calls"; exit 3') as held:
        assert held.wait(60) == 3

    assert calls(lab) == ["up", "command", "down"]


def test_lab_that_a_person_started_is_left_running(lab: Path) -> None:
    (lab / "running").touch()

    with hold(lab, "true") as held:
        assert held.wait(60) == 0

    assert calls(lab) == ["up"]


def test_lab_of_a_killed_command_is_wiped_and_started_again(lab: Path) -> None:
    with hold(lab, "echo here; exec sleep 600") as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        killed.kill()
        assert killed.stdout.read() == "", "the command goes on without the lab"

    with hold(lab, "true") as held:
        assert held.wait(60) == 0

    assert calls(lab) == ["up", "down", "--wipe", "up", "down"]


def test_interrupted_command_ends_before_its_lab_is_stopped(lab: Path) -> None:
    command = """trap 'echo ended >>"$LAB_DIR/calls"; exit' TERM; echo here; while :; do sleep 0.1; done"""
    with hold(lab, command) as held:
        assert held.stdout is not None
        held.stdout.readline()
        held.terminate()
        assert held.wait(60) == 143

    assert calls(lab) == ["up", "ended", "down"]


def test_lab_is_held_until_the_process_that_writes_to_the_command_ends(lab: Path) -> None:
    with hold(lab, "echo here; exec cat") as held:
        assert held.stdin is not None
        assert held.stdout is not None
        held.stdout.readline()
        held.stdin.write("still here\n")
        held.stdin.flush()
        assert held.stdout.readline() == "still here\n"
        held.stdin.close()
        assert held.wait(60) == 0

    assert calls(lab) == ["up", "down"]


def test_second_user_of_a_lab_waits_for_the_first_and_says_so(lab: Path) -> None:
    with hold(lab, 'echo here; until [ -e "$LAB_DIR/over" ]; do sleep 0.1; done') as first:
        assert first.stdout is not None
        first.stdout.readline()
        with hold(lab, "true") as second:
            assert second.stdout is not None
            assert second.stdout.readline() == "another process uses the lab, waiting for its end\n"
            assert calls(lab) == ["up"]
            (lab / "over").touch()
            assert second.wait(60) == 0

    assert calls(lab) == ["up", "down", "up", "down"]
