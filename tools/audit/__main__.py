"""Audits the installed packages and the committed files; exits with 1 on a finding.

With ``--report``, as ``make check`` does, vulnerabilities are printed and do not count: an advisory of today must not
refuse a change that was right yesterday. Then the look-up ends after two minutes. A secret counts always.

Advisories come from the package index or from where ``--advisories`` says. An index without advisories (a mirror often
has none) is no finding: the output counts packages without an answer; with ``ADVISORIES=required`` they fail the audit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parents[2]
BASELINE: Final = ".secrets.baseline"
"""Findings of detect-secrets that a person reviewed: passwords of simulators, digests, examples."""
CACHE_VARIABLE: Final = "AUDIT_CACHE"
LINES_MOVED: Final = 3
"""Exit status of detect-secrets-hook when findings of the baseline are in other lines now."""
LIMIT_S: Final = 1200.0
REPORT_LIMIT_S: Final = 120.0
"""For the look-up of packages that is only reported: an index that does not answer must not hold up the check."""


@dataclass(frozen=True)
class Advice:
    """Known vulnerabilities of the installed packages.

    Args:
        findings: a line for each known vulnerability.
        known: number of packages with advisories.
        unknown: number of packages without advisories in the index.
    """

    findings: Sequence[str]
    known: int
    unknown: int

    @classmethod
    def of(cls, report: Any) -> Self:
        """Parse a JSON report of pip-audit."""
        packages = [each for each in report["dependencies"] if "editable" not in each.get("skip_reason", "")]
        looked_up = [each for each in packages if "vulns" in each]
        findings = [_finding(package, fault) for package in looked_up for fault in package["vulns"]]
        return cls(findings, len(looked_up), len(packages) - len(looked_up))


def _finding(package: Any, fault: Any) -> str:
    mended = ", ".join(fault["fix_versions"]) or "no version yet"
    return f"{package['name']} {package['version']}: {fault['id']}, mended in {mended}"


def _command(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def vulnerabilities(advisories: str | None, *, limit_s: float = LIMIT_S) -> Advice:
    """Look up every installed package; blocks.

    Args:
        advisories: address of a service that answers as OSV does; None: the package index.
        limit_s: time limit of the look-up.

    Raises:
        RuntimeError: pip-audit ended without a report, or did not end; the message says why.
    """
    source = ["--vulnerability-service", "osv", "--osv-url", advisories] if advisories else []
    command = [_command("pip-audit"), "--local", "--skip-editable", "--progress-spinner", "off", "--format", "json"]
    try:
        ended = subprocess.run([*command, *source], capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer within {limit_s:.0f} s") from None
    try:
        return Advice.of(json.loads(ended.stdout))
    except ValueError:
        last = ended.stderr.strip().splitlines()[-1:] or ["nothing was printed"]
        raise RuntimeError(f"pip-audit ended with {ended.returncode}: {last[0]}") from None


def unlisted_secrets(root: Path, paths: Sequence[str] = ()) -> str:
    """Return the findings of secrets in the committed files that are not in the baseline; empty if there are none.

    Contents without findings are not scanned again until the baseline or the scanner changes: a cache has their hashes,
    which all checkouts of a user share; ``AUDIT_CACHE`` names another folder.

    Args:
        root: the checkout.
        paths: files and folders of it; empty means all.
    """
    baseline = (root / BASELINE).read_bytes()
    known = _cache() / hashlib.sha256(baseline + version("detect-secrets").encode()).hexdigest()
    clean = set(known.read_text().split()) if known.exists() else set()
    blobs = {
        name: blob for name, blob in _blobs(root, paths).items() if f"{blob}:{name}".replace(" ", "_") not in clean
    }
    found = _scan(root, sorted(blobs), baseline)
    if not found:
        known.parent.mkdir(parents=True, exist_ok=True)
        with known.open("a") as cache:
            cache.write("".join(f"{blob}:{name}\n".replace(" ", "_") for name, blob in sorted(blobs.items())))
    return found


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get(CACHE_VARIABLE) or f"{base}/capo/audit").expanduser()


def _blobs(root: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return the hash of each committed file's present contents."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], cwd=root, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    names = [name for name in names if name != BASELINE and not (root / name).is_symlink()]
    return {name: hashlib.sha256((root / name).read_bytes()).hexdigest() for name in names}


def _scan(root: Path, files: Sequence[str], baseline: bytes) -> str:
    # The hook writes the moved lines into its baseline, so it gets a copy.
    with tempfile.NamedTemporaryFile(suffix=".json") as copy:
        copy.write(baseline)
        copy.flush()
        hook = [_command("detect-secrets-hook"), "--cores", str(os.cpu_count() or 1), "--baseline", copy.name]
        ended = subprocess.run([*hook, *files], cwd=root, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return "" if ended.returncode in (0, LINES_MOVED) else f"{ended.stdout}{ended.stderr}".strip()


def _audit_packages(advisories: str | None, *, is_required: bool, limit_s: float) -> bool:
    try:
        advice = vulnerabilities(advisories, limit_s=limit_s)
    except RuntimeError as error:
        print(f"packages: not looked up: {error}")
        return not is_required
    for finding in advice.findings:
        print(f"packages: {finding}")
    without = f"; the index has no advisories for the other {advice.unknown}" if advice.unknown else ""
    print(f"packages: {len(advice.findings)} known vulnerabilities in {advice.known} that were looked up{without}")
    return not advice.findings and not (is_required and advice.unknown)


def _audit_files(root: Path, paths: Sequence[str] = ()) -> bool:
    if found := unlisted_secrets(root, paths):
        print(found)
        print(f"files: a false alarm is added with `detect-secrets scan --baseline {BASELINE}`, after a look at it")
        return False
    print(f"files: no secret that is not known in {BASELINE}")
    return True


def main(arguments: Sequence[str]) -> int:
    """Audit both; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.audit", description=__doc__)
    parser.add_argument("--advisories", help="address of an advisory service such as OSV (default: the package index)")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout whose files are scanned")
    parser.add_argument("--files", nargs="+", metavar="PATH", help="scan these files alone, and no packages")
    parser.add_argument("--report", action="store_true", help="report known vulnerabilities, refuse only secrets")
    options = parser.parse_args(arguments)
    if options.files:
        return 0 if _audit_files(options.root, options.files) else 1
    limit_s = REPORT_LIMIT_S if options.report else LIMIT_S
    is_required = os.environ.get("ADVISORIES") == "required"
    are_packages_good = _audit_packages(options.advisories, is_required=is_required, limit_s=limit_s)
    are_files_good = _audit_files(options.root)
    return 0 if are_files_good and (are_packages_good or options.report) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
