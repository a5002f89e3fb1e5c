"""A real ``capo run`` process, started, killed and started again by tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capo.crdgen import files
from capo.local.rig import Rig

if TYPE_CHECKING:
    from environments.manager_launcher import ManagerLauncher, Offspring

ON_LOOPBACK: Final = (
    "--health-addr=127.0.0.1:0",
    "--diagnostics-address=127.0.0.1:0",
    "--insecure-diagnostics=true",
    "--webhook-host=127.0.0.1",
    "--webhook-port=0",
)
"""Flags of a manager that serves only on free ports of loopback."""


@dataclass
class ManagerProcess:
    """One manager at a time, with its log.

    Args:
        kubeconfig: of the ServiceAccount that ships, never of an administrator.
        flags: for ``capo run``.
        launcher: forks the process; None starts a fresh interpreter.
    """

    kubeconfig: Path
    log: Path
    flags: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    launcher: ManagerLauncher | None = None
    _process: subprocess.Popen[bytes] | Offspring | None = None

    @property
    def pid(self) -> int:
        """Return the process id of the running manager."""
        assert self._process is not None
        return self._process.pid

    @property
    def was_started(self) -> bool:
        """Return whether a process was ever started."""
        return self._process is not None

    def start(self) -> None:
        """Start the process without waiting for it."""
        arguments = [f"--kubeconfig={self.kubeconfig}", *self.flags]
        if self.launcher:
            self._process = self.launcher.run(arguments, self.log, dict(self.environment))
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "capo", "run", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment},
            )

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self._end(signal.SIGKILL, limit_s=60)

    def freeze(self) -> None:
        """Suspend the process until :meth:`thaw`, as on a host that hangs."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a frozen process."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> int:
        """Send SIGTERM, as Kubernetes does; return the exit status."""
        return self._end(signal.SIGTERM, limit_s=60)

    def _end(self, sig: signal.Signals, *, limit_s: float) -> int:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(sig)
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def tail(self, lines: int = 40) -> str:
        """Return the end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@contextlib.contextmanager
def running(manager: ManagerProcess) -> Iterator[ManagerProcess]:
    """Run a manager during a block, and end it afterwards in any case."""
    manager.start()
    try:
        yield manager
    finally:
        if manager.is_alive():
            manager.stop()


@contextlib.contextmanager
def shipped(rig: Rig, log: Path, *flags: str) -> Iterator[ManagerProcess]:
    """Run a manager as it ships, under its own account, on a rig with our kinds (conversion stripped)."""
    rig.install_crds(files.load(), strip_conversion=True)
    with running(ManagerProcess(rig.install_provider_account(), log, (*ON_LOOPBACK, "--v=4", *flags))) as made:
        yield made


SLOWING: Final = 1.2
SLOWEST_S: Final = 0.5


class NotReachedError(AssertionError):
    """A state was not reached in time."""


def wait_until(what: str, reached: object, *, limit_s: float = 180.0, every_s: float = 0.1) -> None:
    """Poll until a function returns something true; the default limit is for busy machines.

    Args:
        every_s: the first pause; the others grow to half a second, since polls of many tests took a tenth of all
            processor time.

    Raises:
        NotReachedError: time is over; the message has the last result.
    """
    assert callable(reached)
    ends, pause_s = time.monotonic() + limit_s, every_s
    answer = reached()
    while not answer:
        if time.monotonic() > ends:
            raise NotReachedError(f"{what}: not within {limit_s:.0f} s; last answer {answer!r}")
        time.sleep(pause_s)
        pause_s = max(every_s, min(pause_s * SLOWING, SLOWEST_S))
        answer = reached()
