"""The audit reports findings, and packages that it could not check."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.audit import __main__ as audit

Answer = Callable[[str], tuple[int, dict[str, Any]]]


def advisory(name: str) -> dict[str, Any]:
    events = [{"introduced": "0"}, {"fixed": "999"}]
    affected = {
        "package": {"name": name, "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": events}],
    }
    return {"id": "PYSEC-0000-1", "summary": "made up", "details": "made up", "affected": [affected]}


@contextmanager
def advisories(answer: Answer) -> Iterator[str]:
    """Yield the address of a service that answers as OSV does, by the package's name."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = answer(asked["package"]["name"])
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout without findings, and a cache of its own."""
    monkeypatch.setenv(audit.CACHE_VARIABLE, str(tmp_path / "cache"))
    return clean_checkout(tmp_path / "checkout")


def clean_checkout(folder: Path) -> Path:
    folder.mkdir()
    shutil.copy(audit.ROOT / audit.BASELINE, folder)
    (folder / "settings.py").write_text("NAME = 'value'\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return folder


def test_a_known_vulnerability_of_an_installed_package_ends_the_audit_with_its_name(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with advisories(lambda name: (200, {"vulns": [advisory(name)]} if name == "aiohttp" else {})) as address:
        assert audit.main(["--advisories", address, "--root", str(checkout)]) == 1
    assert "PYSEC-0000-1, mended in 999" in capsys.readouterr().out


def test_packages_without_known_vulnerabilities_pass(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with advisories(lambda _name: (200, {})) as address:
        assert audit.main(["--advisories", address, "--root", str(checkout)]) == 0
    assert "0 known vulnerabilities in" in capsys.readouterr().out


def test_advisories_that_cannot_be_read_are_named_and_refused_where_they_are_required(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with advisories(lambda _name: (500, {})) as address:
        assert audit.main(["--advisories", address, "--root", str(checkout)]) == 0
        assert "not looked up" in capsys.readouterr().out
        monkeypatch.setenv("ADVISORIES", "required")
        assert audit.main(["--advisories", address, "--root", str(checkout)]) == 1


def test_packages_that_the_index_does_not_know_are_counted() -> None:
    report = {
        "dependencies": [
            {"name": "capo", "skip_reason": "distribution marked as editable"},
            {"name": "a", "skip_reason": "Dependency not found"},
            {"name": "b", "version": "1", "vulns": []},
        ]
    }
    assert audit.Advice.of(report) == audit.Advice([], known=1, unknown=1)


def test_a_committed_key_is_found_and_what_the_baseline_lists_is_not(checkout: Path) -> None:
    assert audit.unlisted_secrets(checkout) == ""
    kind = "RSA PRIVATE KEY"
    (checkout / "key.pem").write_text(f"-----BEGIN {kind}-----\nMIIEpAIBAAKCAQEA\n-----END {kind}-----\n")
    subprocess.run(["git", "add", "."], cwd=checkout, check=True)
    assert "key.pem" in audit.unlisted_secrets(checkout)
    assert "key.pem" in audit.unlisted_secrets(checkout)  # what was found is found again


def test_another_checkout_scans_only_what_was_not_found_clean(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[str] = []
    scan = audit._scan

    def note(root: Path, files: Sequence[str], baseline: bytes) -> str:
        scanned.extend(files)
        return scan(root, files, baseline)

    monkeypatch.setattr(audit, "_scan", note)
    assert audit.unlisted_secrets(checkout) == ""
    other = clean_checkout(tmp_path / "other")
    (other / "more.py").write_text("NAME = 'other'\n")
    subprocess.run(["git", "add", "."], cwd=other, check=True)

    assert audit.unlisted_secrets(other) == ""

    assert scanned == ["settings.py", "more.py"]


def test_given_files_alone_are_scanned(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = "RSA PRIVATE KEY"
    (checkout / "key.pem").write_text(f"-----BEGIN {kind}-----\nMIIEpAIBAAKCAQEA\n-----END {kind}-----\n")
    subprocess.run(["git", "add", "."], cwd=checkout, check=True)

    assert audit.main(["--root", str(checkout), "--files", "settings.py"]) == 0
    assert audit.main(["--root", str(checkout), "--files", "settings.py", "key.pem"]) == 1
    assert "packages" not in capsys.readouterr().out
    assert "key.pem" in audit.unlisted_secrets(checkout)  # a clean scan of some files clears no others


def test_a_finding_of_the_baseline_may_move_to_another_line(checkout: Path) -> None:
    (checkout / "moved.py").write_text('password = "correct-horse-battery"\n')
    scan = [audit._command("detect-secrets"), "scan", "moved.py"]
    baseline = subprocess.run(scan, cwd=checkout, capture_output=True, check=True).stdout
    (checkout / audit.BASELINE).write_bytes(baseline)
    subprocess.run(["git", "add", "."], cwd=checkout, check=True)
    (checkout / "moved.py").write_text('\n\npassword = "correct-horse-battery"\n')

    assert audit.unlisted_secrets(checkout) == ""
    assert (checkout / audit.BASELINE).read_bytes() == baseline

    (checkout / "moved.py").write_text('password = "another-horse-battery"\n')
    assert "moved.py" in audit.unlisted_secrets(checkout)


def test_a_report_names_a_known_vulnerability_and_does_not_refuse_it(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with advisories(lambda name: (200, {"vulns": [advisory(name)]} if name == "aiohttp" else {})) as address:
        assert audit.main(["--advisories", address, "--root", str(checkout), "--report"]) == 0
    assert "PYSEC-0000-1, mended in 999" in capsys.readouterr().out


def test_a_report_does_not_wait_for_advisories_that_do_not_come(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "REPORT_LIMIT_S", 0.1)
    with advisories(lambda _name: (200, {})) as address:
        assert audit.main(["--advisories", address, "--root", str(checkout), "--report"]) == 0
    assert "not looked up: no answer within" in capsys.readouterr().out


def test_a_report_refuses_a_secret(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "REPORT_LIMIT_S", 0.1)
    kind = "RSA PRIVATE KEY"
    (checkout / "settings.py").write_text(f"-----BEGIN {kind}-----\nMIIEpAIBAAKCAQEA\n-----END {kind}-----\n")

    assert audit.main(["--root", str(checkout), "--report"]) == 1
