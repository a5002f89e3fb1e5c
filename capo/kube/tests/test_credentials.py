"""Tokens that expire, are rotated, refused, or come from a plugin that hangs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config.kube_config import ConfigNode

from capo.engine.tests.builders import eventually
from capo.kube import credentials
from capo.kube.credentials import Credential, Credentials, bearer, from_file, from_plugin
from capo.kube.errors import KubeError

API = "client.authentication.k8s.io/v1"


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def plugin(script: str, **more: Any) -> Callable[[], Credential]:
    entry = {"apiVersion": API, "command": sys.executable, "args": ["-c", script], **more}
    return from_plugin(ConfigNode("exec", entry), "", ConfigNode("cluster", {"server": "https://api:6443"}))


def answering(status: dict[str, Any]) -> str:
    return f"print({json.dumps(json.dumps({'apiVersion': API, 'kind': 'ExecCredential', 'status': status}))})"


def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    found = Credentials(from_file(file))
    before = found.current().authorization
    file.write_text("new\n")
    meanwhile = found.current().authorization

    clock.now_s += 61

    assert (before, meanwhile, found.current().authorization) == ("Bearer old", "Bearer old", "Bearer new")


def test_a_token_file_that_is_gone_for_a_moment_leaves_the_old_token(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    found = Credentials(from_file(file))
    found.current()
    file.unlink()
    clock.now_s += 3600
    meanwhile = found.current().authorization
    file.write_text("new")

    clock.now_s += 11

    assert (meanwhile, found.current().authorization) == ("Bearer old", "Bearer new")


@pytest.mark.parametrize("text", ["", " \n", "two\nlines", "sécret"])
def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)

    with pytest.raises(KubeError, match="token") as caught:
        Credentials(from_file(tmp_path / "token")).current()

    assert "lines" not in str(caught.value)
    assert "cret" not in str(caught.value)


class CountingLock:
    """Counts its callers, so that a test can wait until all threads wait."""

    def __init__(self) -> None:
        self.came, self._lock = 0, threading.Lock()

    def __enter__(self) -> None:
        self.came += 1
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_many_refusals_at_once_fetch_one_credential() -> None:
    fetched: list[str] = []
    lock = CountingLock()

    def fetch() -> Credential:
        fetched.append("")
        if len(fetched) > 1:
            eventually(lambda: lock.came >= 8)
        return bearer(f"token-{len(fetched)}")

    found = Credentials(fetch)
    refused = found.current()
    found._lock = lock  # type: ignore[assignment]
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(found.renew(refused))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [True] * 8
    assert len(fetched) == 2


def test_what_is_refused_all_the_same_is_not_fetched_for_each_request(clock: Clock) -> None:
    fetched: list[str] = []

    def fetch() -> Credential:
        fetched.append("")
        return bearer(f"token-{len(fetched)}")

    found = Credentials(fetch)
    assert found.renew(found.current())
    at_once = found.renew(found.current())
    clock.now_s += 6
    later = found.renew(found.current())

    assert (at_once, later, len(fetched)) == (False, True, 3)


def test_a_credential_that_cannot_change_is_not_tried_again() -> None:
    found = Credentials(lambda: bearer("fixed"))

    assert not found.renew(found.current())


def test_nobody_waits_for_a_slow_renewal_while_the_old_credential_may_be_used(clock: Clock) -> None:
    may_end = threading.Event()
    fetched: list[Credential] = []

    def fetch() -> Credential:
        if fetched:
            may_end.wait(60)
        fetched.append(bearer(f"token-{len(fetched)}", renew_s=clock.now_s + 60, until_s=clock.now_s + 120))
        return fetched[-1]

    found = Credentials(fetch, is_slow=True)
    found.current()
    clock.now_s += 61
    meanwhile = [found.current().authorization for _ in range(3)]

    may_end.set()

    assert meanwhile == ["Bearer token-0"] * 3
    eventually(lambda: found.current().authorization == "Bearer token-1")
    assert len(fetched) == 2


def test_a_plugin_gives_a_token_or_a_certificate() -> None:
    token = plugin(answering({"token": "t", "expirationTimestamp": "2999-01-01T00:00:00Z"}))()
    certificate = plugin(answering({"clientCertificateData": "CERT", "clientKeyData": "KEY"}))()

    assert token.authorization == "Bearer t"
    assert time.monotonic() < token.renew_s < token.until_s < float("inf")
    assert (certificate.authorization, certificate.certificate) == (None, ("CERT", "KEY"))
    assert "KEY" not in repr(certificate)


def test_a_plugin_is_told_of_the_cluster_if_it_wants_to() -> None:
    script = (
        "import os, json; print(json.dumps({'status': {'token': os.environ['KUBERNETES_EXEC_INFO'].encode().hex()}}))"
    )

    found = plugin(script, provideClusterInfo=True)()

    info = json.loads(bytes.fromhex(str(found.authorization).removeprefix("Bearer ")))
    assert info == {
        "apiVersion": API,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://api:6443"}},
    }


@pytest.mark.parametrize(
    "script",
    ["import sys; print('s3cret'); sys.exit(1)", "print('s3cret')", "print('[]')", "print('{\"status\": {}}')"],
)
def test_a_plugin_that_fails_is_one_clear_error_without_its_output(script: str) -> None:
    with pytest.raises(KubeError, match="credential plugin") as caught:
        plugin(script)()

    assert "failed" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_plugin_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = "import time; time.sleep(600)"
    script = (
        f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {child!r}]);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); child.wait()"
    )
    began_s = time.monotonic()
    run = plugin(script)
    real = subprocess.Popen.communicate

    def communicate(process: Any, *, timeout: float) -> Any:
        eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        return real(process, timeout=0.1)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)

    with pytest.raises(KubeError, match="did not end within"):
        run()

    status = Path(f"/proc/{(tmp_path / 'pid').read_text()}/status")
    eventually(lambda: not status.exists() or "Z (zombie)" in status.read_text())
    assert time.monotonic() - began_s < 60


def test_a_plugin_that_is_not_there_says_how_to_install_it() -> None:
    entry = {"apiVersion": API, "command": "no-such-plugin", "installHint": "run: make plugin"}
    fetch = from_plugin(ConfigNode("exec", entry), "", ConfigNode("cluster", {}))

    with pytest.raises(KubeError, match="run: make plugin"):
        fetch()


def test_a_plugin_that_wants_a_terminal_is_refused() -> None:
    with pytest.raises(KubeError, match="interactiveMode"):
        plugin("", interactiveMode="Always")


def test_a_clock_that_is_ahead_does_not_run_the_plugin_for_each_request() -> None:
    assert credentials._left_s("2001-01-01T00:00:00Z") == 2 * credentials.AHEAD_S
