"""Runs the webhook server in a process of its own, restarts it, and reports its state.

The manager holds the socket: clients wait for a moment instead of being refused while a dead server is replaced. The
socket is not opened before there is a certificate.
"""

from __future__ import annotations

import logging
import socket
import ssl
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from capo import listening
from capo.webhooks.certificate import NAMES
from capo.webhooks.server import GRACE_S, Options

log = logging.getLogger(__name__)

WELL_S: Final = 2.0
"""Interval of the checks of a healthy server."""
UNWELL_S: Final = 0.2
RESTART_S: Final = 1.0
"""Pause before a dead server is replaced."""
STARTING: Final = "the server is starting"
"""State of a server that was just started. Probes fail; the log does not call it an error."""
START_S: Final = 30.0
"""Time that a server may take to import its modules, on a busy machine too."""
PROBE_S: Final = 2.0
"""Timeout of the TLS handshake that probes the server."""


@dataclass
class Webhooks:
    """The webhook server of this replica; a context manager.

    Args:
        host: address to listen on; empty: all.
        port: 0 takes any that is free.
    """

    options: Options
    host: str = ""
    port: int = 0
    _fault: str | None = "not started"
    _started_s: float = 0.0
    _answered: bool = False
    _listener: socket.socket | None = None
    _process: subprocess.Popen[bytes] | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, name="webhooks", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PROBE_S + 1)
        self._end()
        if self._listener:
            self._listener.close()

    def fault(self) -> str | None:
        """Return what is wrong, None if the server accepts TLS connections: the check of the probes."""
        return self._fault

    def _watch(self) -> None:
        while not self._stop.is_set():
            fault = self._look()
            if fault != self._fault:
                is_well = fault in (None, STARTING)  # an error at every start would be ignored
                log.log(logging.INFO if is_well else logging.ERROR, "Webhooks", extra={"state": fault or "served"})
            self._fault = fault
            self._stop.wait(UNWELL_S if fault else WELL_S)

    def _look(self) -> str | None:
        """Start, restart or probe the server, by its state; return what is still wrong."""
        if self._process is None:
            return self._start()
        if (status := self._process.poll()) is not None:
            self._end()
            self._stop.wait(RESTART_S)
            return f"the server ended with status {status} and is started again"
        fault = self._probe()
        self._answered = self._answered or fault is None
        is_young = not self._answered and time.monotonic() < self._started_s + START_S
        return STARTING if fault and is_young else fault

    def _start(self) -> str | None:
        missing = [name for name in NAMES if not (Path(self.options.certificates) / name).exists()]
        if missing:
            return f"no certificate: {self.options.certificates} lacks {' and '.join(missing)}"
        try:
            if self._listener is None:
                self._listener = listening.listener(self.host, self.port)
                self.port = self._listener.getsockname()[1]
            number = self._listener.fileno()
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "capo.webhooks.server", str(number), self.options.to_json()],
                stdin=subprocess.PIPE,
                pass_fds=[number],
            )
        except OSError as error:
            return f"cannot listen on {self.host}:{self.port}: {error.strerror or error}"
        self._started_s, self._answered = time.monotonic(), False
        return STARTING

    def _probe(self) -> str | None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # the probe checks that the server answers, not its identity
        try:
            with (
                socket.create_connection((self.host or "localhost", self.port), PROBE_S) as connection,
                context.wrap_socket(connection),
            ):
                return None
        except OSError as error:
            return f"no TLS connection to port {self.port}: {error.strerror or error}"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None  # noqa: S101 - a pipe was asked for
        process.terminate()
        process.stdin.close()
        try:
            process.wait(GRACE_S + 1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
