"""How long `capo run` takes until it is ready, and its memory before the first object: `python -m tools.bench.startup`.

On a real API server without objects. Several installations are measured in one run, in turns, because two
runs on one machine differ more than the compared installations: `--python` names their interpreters.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from capo.local import ports
from capo.local.rig import Rig
from tools.bench import environment
from tools.bench.measure import resident_mib
from tools.bench.report import table

LIMIT_S: Final = 60.0
SETTLED_S: Final = 5.0
"""Seconds after which the webhook process has loaded its modules."""
COLUMNS: Final = ("Installation", "Ready after s", "slowest", "Manager MiB", "Webhooks MiB")


@dataclass(frozen=True)
class Start:
    """One cold start.

    Args:
        ready_s: from the start of the process until ``/readyz`` answers 200.
        manager_mib: resident memory of the manager before the first object.
        webhooks_mib: that of its webhook process.
    """

    ready_s: float
    manager_mib: float
    webhooks_mib: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python",
        action="append",
        type=_installation,
        metavar="NAME=INTERPRETER",
        help="an installation; several are measured in turns (default: this one)",
    )
    parser.add_argument("--rounds", type=int, default=7, help="starts of each; the quickest counts")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"), help="folder for startup.json and .md")
    wanted = parser.parse_args(arguments)
    installations = dict(wanted.python or [("this", Path(sys.executable))])
    starts: dict[str, list[Start]] = {name: [] for name in installations}
    for python in installations.values():
        _compile(python)
    with environment.api_server() as rig:
        for number in range(wanted.rounds):
            for name, python in installations.items():
                starts[name].append(measured(rig, f"{name}-{number}", python))
    shown = table(COLUMNS, (row(name, each) for name, each in starts.items()))
    print(shown)
    wanted.out.mkdir(parents=True, exist_ok=True)
    (wanted.out / "startup.md").write_text(f"{shown}\n", encoding="utf-8")
    document = {name: [vars(start) for start in each] for name, each in starts.items()}
    (wanted.out / "startup.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


def measured(rig: Rig, name: str, python: Path) -> Start:
    """Start a manager, read what it takes, and end it."""
    process = f"manager-{name}"
    health, metrics = (
        f"127.0.0.1:{port}" for port in ports.choose(["health", "metrics"], taken=set(rig.ports.values())).values()
    )
    argv = [
        *(
            str(python),
            "-P",
            "-m",
            "capo",
            "run",
            f"--kubeconfig={rig.install_provider_account()}",
            f"--health-addr={health}",
        ),
        *(f"--diagnostics-address={metrics}", "--insecure-diagnostics", "--webhook-host=127.0.0.1", "--webhook-port=0"),
        f"--webhook-cert-dir={rig.webhook_cert_dir}",
    ]
    began_s = time.monotonic()
    # The address answers nothing until the process listens, and another status than 200 until it is ready.
    rig.start(process, argv, ready_url=None)
    ready_s = _ready_s(f"http://{health}/readyz") - began_s
    pid = rig.processes.pid(process)
    assert pid is not None
    time.sleep(SETTLED_S)
    children = [
        child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    webhooks = sum(resident_mib(int(child)) for child in children)
    found = Start(ready_s, resident_mib(pid), webhooks)
    rig.stop(process)
    return found


def _ready_s(url: str) -> float:
    """Return the monotonic second in which an address answered 200."""
    ends_s = time.monotonic() + LIMIT_S
    with requests.Session() as session:
        session.trust_env = False
        while time.monotonic() < ends_s:
            try:
                if session.get(url, timeout=1).status_code == 200:
                    return time.monotonic()
            except requests.RequestException:
                pass
            time.sleep(0.01)
    raise AssertionError(f"{url} did not answer 200 within {LIMIT_S:.0f} s")


def row(name: str, starts: Sequence[Start]) -> tuple[str, ...]:
    """Return one line of the table; pure."""
    seconds = sorted(start.ready_s for start in starts)
    manager = min(start.manager_mib for start in starts)
    webhooks = min(start.webhooks_mib for start in starts)
    return name, f"{seconds[0]:.2f}", f"{seconds[-1]:.2f}", f"{manager:.0f}", f"{webhooks:.0f}"


def _installation(text: str) -> tuple[str, Path]:
    name, _, python = text.partition("=")
    if not python:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=INTERPRETER")
    return name, Path(python)


def _compile(python: Path) -> None:
    """Compile everything that the interpreter imports, as an image does."""
    code = (
        "import compileall, importlib.util, sysconfig\n"
        "specs = map(importlib.util.find_spec, ('api', 'capo', 'controllers'))\n"  # a release may lack some
        "places = [place for spec in specs if spec for place in spec.submodule_search_locations]\n"
        "for place in (sysconfig.get_path('purelib'), *places): compileall.compile_dir(place, quiet=2)"
    )
    subprocess.run([str(python), "-P", "-c", code], check=True)


if __name__ == "__main__":
    sys.exit(main())
