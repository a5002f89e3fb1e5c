"""``capo run`` as a user runs it: messages for wrong use, and how it ends on a signal."""

from __future__ import annotations

import json
import logging
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo import __main__
from capo.cli import run
from capo.components import deployment, release
from capo.components.deployment import Pod
from capo.engine.lease import NAME
from capo.kube.kinds import LEASE, OPENSTACK_SERVER
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.local import pki
from capo.local.testing import spare_ports


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--nonsense"], "capo run: unknown flag --nonsense; see --help"),
        (["--sync-period=x"], "capo run: --sync-period: 'x' is not a duration such as 15s, 10m or 1h30m"),
        (["positional"], "capo run: unexpected argument 'positional': only flags are taken"),
    ],
)
def test_wrong_use_is_one_clear_line_and_status_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    assert __main__.main(["run", *arguments]) == 2

    assert capsys.readouterr().err == complaint + "\n"


def test_help_lists_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["run", "--leader-elect", "--help"]) == 0

    assert "--ambiguous-create-window" in capsys.readouterr().out


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["run", "--version"]) == 0

    assert capsys.readouterr().out.startswith("capo ")


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


LIMIT_S = 180
"""How long a step may take on a busy machine."""


def free_port() -> int:
    """Return a port below the kernel's ephemeral range; otherwise another process could get it before us."""
    return spare_ports("ours")["ours"]


def reachable(api: FakeApiServer, folder: Path, port: int) -> list[str]:
    """Return the flags that connect a manager to the API server and move its servers to addresses of the test."""
    kubeconfig = folder / "kubeconfig"
    named = {"contexts": {"cluster": "c", "user": "u"}, "clusters": {"server": api.url}, "users": {}}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": named["contexts"]}],
        "clusters": [{"name": "c", "cluster": named["clusters"]}],
        "users": [{"name": "u", "user": named["users"]}],
    }
    kubeconfig.write_text(yaml.safe_dump(config))
    pki.create(folder / "pki")
    addresses = [f"--health-addr=127.0.0.1:{port}", "--diagnostics-address=0", f"--kubeconfig={kubeconfig}"]
    return [
        *addresses,
        "--webhook-host=127.0.0.1",
        "--webhook-port=0",
        f"--webhook-cert-dir={folder / 'pki' / 'webhook'}",
    ]


@contextmanager
def manager(api: FakeApiServer, folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run the manager in a process of its own; yield it and the port of its probes."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "capo", "run", *reachable(api, folder, port), *flags],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "POD_NAMESPACE": "capo-system"},
    )
    try:
        yield process, port
    finally:
        process.kill()
        process.communicate()


def answer(port: int, path: str) -> str:
    end_s = time.monotonic() + LIMIT_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LIMIT_S) as response:
                return str(response.read().decode())
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < end_s
            time.sleep(0.1)


def eventually_leads(api: FakeApiServer) -> None:
    end_s = time.monotonic() + LIMIT_S
    while not (lease := api.read(LEASE, "capo-system", NAME)) or not lease["spec"]["holderIdentity"]:
        assert time.monotonic() < end_s
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_in_order_and_gives_the_lease_back(
    api: FakeApiServer, tmp_path: Path, number: int
) -> None:
    with manager(api, tmp_path, "--leader-elect", "--logging-format=json", "-v=2") as (process, port):
        assert answer(port, "/healthz") == "ok"
        eventually_leads(api)
        began_s = time.monotonic()
        process.send_signal(number)
        _, log = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 0, log
    assert time.monotonic() - began_s < 10 + 20, "ten seconds are what Kubernetes gives; the rest is for slow machines"
    # It need not be the last line: the webhook server and hanging threads are logged later.
    assert "Stopped" in [json.loads(line)["msg"] for line in log.splitlines()]
    lease = api.read(LEASE, "capo-system", NAME)
    assert lease
    assert lease["spec"]["holderIdentity"] == ""


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the statuses with which the process would have been ended at once."""
    statuses: list[int] = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    return statuses


def test_threads_that_are_about_to_end_do_not_hang(monkeypatch: pytest.MonkeyPatch, ended: list[int]) -> None:
    pool = ThreadPoolExecutor(8)
    list(pool.map(time.sleep, [0.01] * 8))
    idle = list(pool._threads)
    monkeypatch.setattr(threading, "enumerate", lambda: idle)
    monkeypatch.setattr(run, "ENDING_S", 60)

    threading.Timer(0.1, lambda: pool.shutdown(wait=False)).start()

    assert run._ended(3) == 3
    assert ended == []


def test_a_thread_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch, ended: list[int]) -> None:
    opened = threading.Event()
    stubborn = threading.Thread(target=opened.wait)
    stubborn.start()
    monkeypatch.setattr(threading, "enumerate", lambda: [stubborn])
    monkeypatch.setattr(run, "ENDING_S", 0.1)

    run._ended(3)

    opened.set()
    stubborn.join()
    assert ended == [3]


@pytest.mark.slow
def test_a_lost_lease_ends_the_process_with_status_one(api: FakeApiServer, tmp_path: Path) -> None:
    terms = ["--leader-elect-lease-duration=1s", "--leader-elect-renew-deadline=600ms"]
    with manager(api, tmp_path, "--leader-elect", "--leader-elect-retry-period=100ms", *terms) as (process, _):
        assert process.stderr
        # The API server may have the lease although its answer came too late for the manager.
        assert any("Lease acquired" in line for line in iter(process.stderr.readline, ""))
        api.hang = lambda _method, path: "leases" in path
        log = process.stderr.read()
        api.hang = lambda _method, _path: False
        process.wait(LIMIT_S)

    assert process.returncode == 1
    assert "Lease lost" in log


def test_an_address_that_is_taken_is_one_clear_line(api: FakeApiServer, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with manager(api, tmp_path, f"--health-addr={address}") as (process, _):
            _, log = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 1
    assert f"cannot listen on {address}" in log
    assert "Traceback" not in log


HIDE_NAME = """
import pwd, sys
def nameless(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")
pwd.getpwuid = nameless
from capo.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def nameless_python(*program: str) -> list[str]:
    """Return the command that runs Python as a user without a passwd entry."""
    # The namespace maps the tests' own user to the number, so that their files, and a Python in their home, stay
    # readable.
    namespace = ["unshare", "--user", f"--map-user={deployment.USER_ID}", f"--map-group={deployment.USER_ID}"]
    asked = shutil.which("unshare") and subprocess.run([*namespace, "true"], capture_output=True, check=False)
    if asked and asked.returncode == 0:
        return [*namespace, sys.executable, "-m", *program]
    # Some kernels and container engines forbid user namespaces.
    return [sys.executable, "-c", HIDE_NAME, *program[1:]]


def pod_environment(container: dict[str, Any]) -> dict[str, str]:
    """Return the environment of the container: variables of the runtime, the Dockerfile and the Deployment."""
    *_, line = re.findall(r"^ENV (.*)$", (release.CHECKOUT / "Dockerfile").read_text(), flags=re.MULTILINE)
    fields = {"metadata.namespace": "capo-system"}
    own = {entry["name"]: fields[entry["valueFrom"]["fieldRef"]["fieldPath"]] for entry in container["env"]}
    return {"PATH": os.defpath, "HOSTNAME": "pod", **dict(pair.split("=", 1) for pair in line.split()), **own}


@pytest.mark.slow
def test_a_user_without_a_passwd_entry_watches(api: FakeApiServer, tmp_path: Path) -> None:
    pod = Pod("image", priority_queue="true", autoscale_from_zero="false")
    (container,) = deployment.deployment(pod)["spec"]["template"]["spec"]["containers"]
    spec = {"identityRef": {"name": "missing", "cloudName": "openstack"}, "flavor": "m1"}
    port, log = free_port(), tmp_path / "log"
    assert deployment.USER_ID not in [entry.pw_uid for entry in pwd.getpwall()], "the pod's user has a name here"
    command = nameless_python("capo", "run", *container["args"], *reachable(api, tmp_path, port))

    def until(condition: Callable[[], object]) -> None:
        ends_s = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < ends_s, log.read_text()
            assert process.poll() is None, log.read_text()
            assert "Watches failed" not in log.read_text()
            time.sleep(0.1)

    with log.open("w") as stderr:
        process = subprocess.Popen(command, stderr=stderr, env=pod_environment(container), cwd="/")
    try:
        until(api.watches)
        api.put(OPENSTACK_SERVER, {"metadata": {"name": "late", "namespace": "default"}, "spec": spec})
        until(lambda: any("/openstackservers/late" in path for _, path in api.writes()))
        health = answer(port, "/healthz"), answer(port, "/readyz")
    finally:
        process.kill()
        process.wait()

    assert health == ("ok", "ok")
    assert "Watches failed" not in log.read_text()
