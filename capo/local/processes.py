"""Processes that outlive the command which started them.

Each has a record (pid, when it started, where its part of the log begins). A pid alone is ambiguous, since the system
reuses it; with the start time it identifies one process, so no other process is ever signalled.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capo.local import layout
from capo.local.errors import NotReadyError, ProcessDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_POLL_S: Final = 0.05
_TAIL_LINES: Final = 20
_TAIL_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class Record:
    """The stored record of a process.

    Attributes:
        started: identity of the process beside its pid: boot and clock ticks since then.
        log_offset: where in the log this process began to write.
    """

    pid: int
    started: str
    argv: list[str]
    log_offset: int


def started_at(pid: int) -> str | None:
    """Return when a living process was started, or None if there is none.

    A zombie is not alive, but one with running threads is: it may still hold its ports and files.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    state, threads, ticks = fields[0], int(fields[17]), fields[19]
    return None if state in {"Z", "X"} and threads <= 1 else f"{boot}/{ticks}"


class Processes:
    """The processes of one rig."""

    def __init__(self, where: layout.Layout) -> None:
        """Manage the processes whose records are in the rig's folder."""
        self._where = where

    def log(self, name: str) -> Path:
        """Return the path of a process's log."""
        return self._where.log / f"{name}.log"

    def names(self) -> list[str]:
        """Return the names of all processes that were started and not stopped, dead ones included."""
        return sorted(path.stem for path in self._where.run.glob("*.json"))

    def record(self, name: str) -> Record | None:
        """Return the record of a process that was started and not stopped."""
        try:
            stored = json.loads((self._where.run / f"{name}.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return Record(**stored)

    def pid(self, name: str) -> int | None:
        """Return the pid of a process that is alive."""
        record = self.record(name)
        return record.pid if record and started_at(record.pid) == record.started else None

    def start(self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        """Start the process in a session of its own, with its output in its log; a living one is kept."""
        if self.pid(name) is not None:
            return
        log = self.log(name)
        log.touch(mode=0o600)
        offset = log.stat().st_size
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        pid = os.posix_spawn(
            argv[0],
            list(argv),
            {**os.environ, **(env or {})},
            setsid=True,
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        record = Record(pid, started_at(pid) or "", list(argv), offset)
        layout.write_file(self._where.run / f"{name}.json", json.dumps(asdict(record), indent=1))

    def stop(self, names: Sequence[str], *, grace_s: float = 20, gently: bool = True) -> None:
        """Stop these processes and remove their records.

        Args:
            names: processes that end together, in no order.
            grace_s: how long they may take after SIGTERM before SIGKILL.
            gently: False sends SIGKILL at once, when their data is not needed any more.
        """
        alive = self._signal(names, signal.SIGTERM if gently else signal.SIGKILL)
        limit = time.monotonic() + grace_s
        while alive and time.monotonic() < limit:
            time.sleep(_POLL_S)
            alive = [name for name in alive if self._is_alive(name)]
        for name in self._signal(alive, signal.SIGKILL):
            while self._is_alive(name):
                time.sleep(_POLL_S)
        for name in names:
            self._exit_status(name)
            (self._where.run / f"{name}.json").unlink(missing_ok=True)

    def kill_strays(self) -> None:
        """Kill the processes that have files of the rig's folder in their flags, such as ``--kubeconfig=<folder>/...``.

        They are managers of a test that was killed, and processes whose starter was killed before it recorded them.
        """
        mark = f"={self._where.root}/".encode()
        found = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            pid = int(path.parent.name)
            started = started_at(pid)
            with suppress(OSError):
                flags = path.read_bytes().split(b"\0")[1:]
                if started and pid != os.getpid() and any(each.startswith(b"--") and mark in each for each in flags):
                    os.kill(pid, signal.SIGKILL)
                    found[pid] = started
        while any(started_at(pid) == started for pid, started in found.items()):
            time.sleep(_POLL_S)

    def tail(self, name: str) -> str:
        """Return the last lines that the process logged since it was started."""
        record, log = self.record(name), self.log(name)
        if record is None or not log.exists():
            return ""
        with log.open("rb") as lines:
            size = lines.seek(0, os.SEEK_END)
            lines.seek(max(record.log_offset, size - _TAIL_BYTES))
            text = lines.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-_TAIL_LINES:])

    def require_alive(self, name: str) -> None:
        """Check that the process is alive.

        Raises:
            ProcessDiedError: it ended; the message has the end of its log.
        """
        if self._is_alive(name):
            return
        raise ProcessDiedError(name, how=self._exit_status(name), log=self.log(name), tail=self.tail(name))

    def wait_ready(self, probes: Mapping[str, Callable[[], bool]], *, limit_s: float) -> None:
        """Wait until every probe of these processes has succeeded.

        Raises:
            ProcessDiedError: one of them ended.
            NotReadyError: the timeout expired.
        """
        waiting = dict(probes)
        limit = time.monotonic() + limit_s
        while True:
            waiting = {name: probe for name, probe in waiting.items() if not _answers(probe)}
            for name in probes:
                self.require_alive(name)
            if not waiting:
                return
            if time.monotonic() > limit:
                logs = "\n".join(f"the end of {self.log(name)}:\n{self.tail(name)}" for name in waiting)
                raise NotReadyError(f"{', '.join(waiting)} not ready after {limit_s:.0f} s; {logs}")
            time.sleep(_POLL_S)

    def _is_alive(self, name: str) -> bool:
        return self.pid(name) is not None

    def _signal(self, names: Sequence[str], number: signal.Signals) -> list[str]:
        signalled = []
        for name in names:
            pid = self.pid(name)
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
                    signalled.append(name)
        return signalled

    def _exit_status(self, name: str) -> str:
        """Return how a process ended, if this process can read it; reaps a child."""
        record = self.record(name)
        if record is None:
            return "is not running"
        try:
            pid, status = os.waitpid(record.pid, os.WNOHANG)
        except ChildProcessError:
            return "ended"
        if pid == 0:
            return "ended"
        code = os.waitstatus_to_exitcode(status)
        return f"ended with exit status {code}" if code >= 0 else f"was ended by signal {-code}"


def _answers(probe: Callable[[], bool]) -> bool:
    try:
        return probe()
    except OSError:  # not listening yet; exceptions of requests are OSErrors as well
        return False
