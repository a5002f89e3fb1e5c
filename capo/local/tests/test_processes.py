from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from capo.local.errors import NotReadyError, ProcessDiedError
from capo.local.layout import Layout
from capo.local.processes import Processes, started_at
from capo.local.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STAYS = "import signal, time; print('here', flush=True); time.sleep(300)"
IGNORES_SIGTERM = "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(300)"
FAILS = "import sys; print('what went wrong', flush=True); sys.exit(3)"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.create()
    return made


@pytest.fixture
def processes(layout: Layout) -> Iterator[Processes]:
    made = Processes(layout)
    yield made
    made.stop(made.names(), gently=False)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def says(processes: Processes, name: str, text: str) -> Callable[[], bool]:
    return lambda: text in processes.tail(name)


def started(processes: Processes, name: str, code: str) -> int:
    """Start a process and return its pid once it has reported its start."""
    processes.start(name, python(code))
    processes.wait_ready({name: says(processes, name, "here")}, limit_s=60)
    pid = processes.pid(name)
    assert pid is not None
    return pid


def test_a_started_process_is_known_to_another_command(layout: Layout, processes: Processes) -> None:
    pid = started(processes, "one", STAYS)

    assert Processes(layout).pid("one") == pid
    assert Processes(layout).names() == ["one"]


def test_starting_again_leaves_a_living_process_alone(processes: Processes) -> None:
    pid = started(processes, "one", STAYS)

    processes.start("one", python(STAYS))

    assert processes.pid("one") == pid


def test_a_stopped_process_is_gone_with_its_record(processes: Processes) -> None:
    pid = started(processes, "one", STAYS)

    processes.stop(["one"])

    assert started_at(pid) is None
    assert processes.names() == []


def test_a_process_that_ignores_the_request_is_killed_after_the_grace(processes: Processes) -> None:
    pid = started(processes, "stubborn", IGNORES_SIGTERM)

    processes.stop(["stubborn"], grace_s=0.1)

    assert started_at(pid) is None


def test_a_pid_that_belongs_to_another_process_now_is_never_signalled(layout: Layout, processes: Processes) -> None:
    pid = started(processes, "one", STAYS)
    record = processes.record("one")
    assert record is not None
    stale = dataclasses.replace(record, started="another boot/1")
    (layout.run / "stale.json").write_text(json.dumps(dataclasses.asdict(stale)))

    processes.stop(["stale"])

    assert processes.pid("one") == pid


def test_a_wiped_rig_leaves_no_process_whose_starter_was_killed_before_it_was_recorded(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "rig")
    rig.layout.create()
    unrecorded = [*python("print('here', flush=True); input()"), f"--kubeconfig={rig.layout.kubeconfig}"]
    with subprocess.Popen(unrecorded, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()

        rig.down(wipe=True)

    assert process.returncode == -signal.SIGKILL


def test_a_wiped_rig_leaves_the_processes_of_others_alone(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "rig")
    rig.layout.create()
    code = python("print('here', flush=True); print(input(), flush=True)")
    reader = [*code, str(rig.layout.kubeconfig)]
    of_another_rig = [*code, f"--kubeconfig={tmp_path}/rig-2/kubeconfig"]
    for command in (reader, of_another_rig):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()

            rig.down(wipe=True)
            rig.layout.create()

            assert process.communicate("alive\n")[0] == "alive\n"


def test_a_process_that_ends_is_reported_with_its_status_and_log(processes: Processes) -> None:
    processes.start("failing", python(FAILS))

    with pytest.raises(ProcessDiedError, match="failing ended with exit status 3") as caught:
        processes.wait_ready({"failing": lambda: False}, limit_s=60)

    assert caught.value.tail == "what went wrong"


def test_the_tail_has_only_what_the_last_start_wrote(processes: Processes) -> None:
    started(processes, "one", STAYS)
    processes.stop(["one"])
    processes.log("one").write_text("old\n" * 3)

    started(processes, "one", STAYS)

    assert processes.tail("one") == "here"


def test_a_long_log_is_shown_by_its_last_lines(processes: Processes) -> None:
    processes.start(
        "one", python("for n in range(99): print(n)\nimport time; print('here', flush=True); time.sleep(300)")
    )
    processes.wait_ready({"one": says(processes, "one", "here")}, limit_s=60)

    lines = processes.tail("one").splitlines()

    assert len(lines) == 20
    assert lines[-2:] == ["98", "here"]


def test_waiting_ends_with_the_names_of_those_that_are_not_ready(processes: Processes) -> None:
    for name in ("other", "slow"):
        started(processes, name, STAYS)

    with pytest.raises(NotReadyError, match="slow not ready after 0 s"):
        processes.wait_ready({"other": lambda: True, "slow": lambda: False}, limit_s=0)


def test_a_probe_that_cannot_connect_counts_as_not_ready(processes: Processes) -> None:
    answers = iter([ConnectionRefusedError(), None])

    def probe() -> bool:
        error = next(answers)
        if error is not None:
            raise error
        return True

    started(processes, "one", STAYS)
    began = time.monotonic()

    processes.wait_ready({"one": probe}, limit_s=60)

    assert time.monotonic() - began < 30


def test_variables_reach_the_process(processes: Processes) -> None:
    processes.start("one", python("import os; print(os.environ['X'])"), env={"X": "from the test"})

    with pytest.raises(ProcessDiedError, match="from the test"):
        processes.wait_ready({"one": lambda: False}, limit_s=60)


def test_a_record_of_a_process_that_never_was_is_none(processes: Processes) -> None:
    assert processes.record("nobody") is None
    assert processes.tail("nobody") == ""
    with pytest.raises(ProcessDiedError, match="nobody is not running"):
        processes.require_alive("nobody")


def test_our_own_start_time_does_not_change() -> None:
    assert started_at(os.getpid()) == started_at(os.getpid())
