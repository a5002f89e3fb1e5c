"""The server as a real process, which costs these tests seconds."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests

from capo import listening
from capo.local import pki
from capo.webhooks.server import Options
from capo.webhooks.supervisor import Webhooks

pytestmark = pytest.mark.integration


def until(reached: Callable[[], object], *, limit_s: float = 120) -> None:
    ends = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Webhooks]:
    with Webhooks(Options(str(tmp_path / "pki" / "webhook")), "127.0.0.1") as webhooks:
        pki.create(tmp_path / "pki")
        until(lambda: webhooks.fault() is None)
        yield webhooks


def child(webhooks: Webhooks) -> int:
    process = webhooks._process
    assert process is not None
    return process.pid


def answers(webhooks: Webhooks, folder: Path) -> bool:
    with requests.Session() as session:
        session.trust_env = False
        url = f"https://127.0.0.1:{webhooks.port}/convert"
        return session.post(url, verify=str(folder / "ca.crt"), timeout=120).status_code == 400


def test_nothing_listens_before_there_is_a_certificate(tmp_path: Path) -> None:
    with Webhooks(Options(str(tmp_path)), "127.0.0.1") as webhooks:
        until(lambda: webhooks.fault() != "not started")

        assert webhooks.fault() == f"no certificate: {tmp_path} lacks tls.crt and tls.key"
        assert webhooks.port == 0


def test_a_start_logs_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pki.create(tmp_path)
    caplog.set_level(logging.INFO, "capo.webhooks.supervisor")

    with Webhooks(Options(str(tmp_path / "webhook")), "127.0.0.1") as webhooks:
        until(lambda: webhooks.fault() is None and caplog.records)

    states = [(record.levelname, vars(record)["state"]) for record in caplog.records if record.msg == "Webhooks"]
    assert ("INFO", "the server is starting") in states
    assert {level for level, _ in states} == {"INFO"}


@pytest.mark.parametrize(
    ("age_s", "answered", "fault"),
    [
        pytest.param(1, False, "the server is starting", id="slow"),
        pytest.param(60, False, "no TLS connection", id="too slow"),
        pytest.param(1, True, "no TLS connection", id="answered before"),
    ],
)
def test_a_young_server_that_never_answered_is_starting(
    age_s: float, answered: bool, fault: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    webhooks = Webhooks(Options(str(tmp_path)), "127.0.0.1", port)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as webhooks._process:
        webhooks._started_s, webhooks._answered = time.monotonic() - age_s, answered

        assert str(webhooks._look()).startswith(fault)


def test_a_server_that_dies_is_replaced_on_the_same_port(running: Webhooks, tmp_path: Path) -> None:
    first = child(running)
    os.kill(first, signal.SIGKILL)

    assert answers(running, tmp_path / "pki")  # the request waits for the new server
    assert child(running) != first
    until(lambda: running.fault() is None)


def test_a_port_that_is_taken_is_said_and_tried_again(tmp_path: Path) -> None:
    pki.create(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with Webhooks(Options(str(tmp_path / "webhook")), "127.0.0.1", port) as webhooks:
            until(lambda: "cannot listen" in str(webhooks.fault()))
            assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in str(webhooks.fault())

            other.close()
            until(lambda: webhooks.fault() is None)


def test_the_server_ends_with_the_supervisor(running: Webhooks) -> None:
    pid = child(running)

    running.__exit__()

    assert not Path(f"/proc/{pid}").exists()


def test_the_server_ends_when_the_manager_is_killed(tmp_path: Path) -> None:
    pki.create(tmp_path)
    program = (
        "import sys, time; from capo.webhooks import server, supervisor\n"
        "with supervisor.Webhooks(server.Options(sys.argv[1]), '127.0.0.1') as webhooks:\n"
        "    while webhooks.fault(): time.sleep(0.05)\n"
        "    print(webhooks._process.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "webhook")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as manager:
        assert manager.stdout is not None
        pid = int(manager.stdout.readline())

        manager.kill()

        until(lambda: not Path(f"/proc/{pid}").exists())


def test_all_addresses_are_listened_on_unless_one_is_named() -> None:
    with listening.listener("", 0) as everywhere, listening.listener("127.0.0.1", 0) as here:
        assert everywhere.getsockname()[0] in ("::", "0.0.0.0")
        assert here.getsockname()[0] == "127.0.0.1"
