"""Processes of ``capo run`` that start fast: forked from one that has imported everything.

A crash run starts two managers, and imports are most of the cost of a start. The fork runs ``capo run`` with the same
flags. The process that forks is this file, run by the interpreter of the version that is started: one order per line on
its standard input, the process id of the manager on its standard output; it ends, and all managers with it, when its
input does.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

PR_SET_PDEATHSIG: Final = 1
PACKAGES: Final = (
    "capo.cli",
    "capo.contract",
    "capo.controllers",
    "capo.engine",
    "capo.kube",
    "capo.openstack",
    "capo.webhooks",
    "controllers",
)
"""Packages that a manager imports; of the two with controllers, each version has one."""


@dataclass
class Offspring:
    """A process that is not our child, with the needed part of :class:`subprocess.Popen`."""

    pid: int

    def __post_init__(self) -> None:
        self._handle = -1
        with contextlib.suppress(ProcessLookupError):
            self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return None while the process runs, else a meaningless number: only the parent gets the exit status."""
        return self._awaited(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        status = self._awaited(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal; do nothing if the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def _awaited(self, timeout: float | None) -> int | None:
        if self._handle == -1:
            return -1
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        if not poll.poll(None if timeout is None else 1000 * timeout):
            return None
        os.close(self._handle)
        self._handle = -1
        return -1


class ManagerLauncher:
    """Starts managers; a context manager, threads may share it.

    Args:
        log: file for its errors.
        python: interpreter of the environment in which ``capo`` is installed.
    """

    def __init__(self, log: Path, python: Path | str = sys.executable) -> None:
        with log.open("ab") as errors:
            # It and its children import the packages of the environment, not those of the working directory.
            self._process = subprocess.Popen(
                [str(python), str(Path(__file__).absolute())],
                env={**os.environ, "PYTHONSAFEPATH": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def run(self, arguments: list[str], log: Path, environment: dict[str, str]) -> Offspring:
        """Start ``capo run`` with these arguments in a process of its own."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"arguments": arguments, "log": str(log), "environment": environment}
        with self._lock:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        return Offspring(int(answer))


def main() -> None:
    """Fork a manager for each order."""
    for name in modules():
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no parent waits for them
    for line in sys.stdin:
        process_id = os.fork()
        if process_id == 0:
            os._exit(_run(json.loads(line)))
        print(process_id, flush=True)


def modules() -> list[str]:
    """Return the modules that a manager may import, tests left out."""
    packages = [name for name in PACKAGES if importlib.util.find_spec(name)]
    found = list(packages)
    for package in packages:
        below = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        found += [each.name for each in below if ".tests" not in each.name]
    return found


def _run(order: dict[str, Any]) -> int:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(order["environment"])
    entry = importlib.import_module("capo.__main__")
    print(f"capo is imported from {Path(entry.__file__ or '').parent}", flush=True)
    status: int = entry.main(["run", *order["arguments"]])
    return status


if __name__ == "__main__":
    main()
