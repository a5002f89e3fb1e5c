"""The process that serves webhooks; started by ``supervisor.py`` with a socket to listen on and its options as JSON.

It ends when its standard input is closed, which happens however the manager ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from capo import listening, logs, tls
from capo.webhooks.application import application
from capo.webhooks.certificate import Certificate, CertificateError

log = logging.getLogger(__name__)

REFRESH_S: Final = 1.0
"""Interval of the checks of the certificate's files."""
MEMORY: Final = 384 * 2**20
"""Bytes of data that this process may have. At the limit a request fails instead of the container, which the manager
shares.
"""
GRACE_S: Final = 2.0
"""How long running requests may take when the process is asked to end."""


@dataclass(frozen=True)
class Options:
    """Options of the process.

    Args:
        certificates: folder with ``tls.crt`` and ``tls.key``.
        tls_min_version: as in ``--tls-min-version``.
        tls_cipher_suites: IANA names.
        verbosity: of the log.
        layout: of the log.
    """

    certificates: str
    tls_min_version: str = "VersionTLS12"
    tls_cipher_suites: tuple[str, ...] = ()
    verbosity: int = 0
    layout: str = "text"

    def to_json(self) -> str:
        """Return the options as one argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the options from an argument."""
        values = json.loads(text)
        return cls(**values | {"tls_cipher_suites": tuple(values["tls_cipher_suites"])})


async def serve(options: Options, listener: socket.socket, stopped: asyncio.Event) -> None:
    """Serve until stopped; does not answer before there is a usable certificate."""
    certificate = Certificate(
        Path(options.certificates), lambda: tls.server_context(options.tls_min_version, options.tls_cipher_suites)
    )
    complaint = ""
    while not stopped.is_set():
        complaint = _refreshed(certificate, complaint)
        if not complaint:
            break
        await _pause(stopped)
    if stopped.is_set():
        return
    server = listening.LimitedServer(application(), grace_s=GRACE_S)
    await server.start(listener, certificate.context)
    try:
        while not stopped.is_set():
            await _pause(stopped)
            complaint = _refreshed(certificate, complaint)
    finally:
        await server.cleanup()


def _refreshed(certificate: Certificate, complaint: str) -> str:
    """Load a new certificate if there is one.

    Return what is wrong with it, logged if it differs from the last complaint.
    """
    try:
        if certificate.refresh():
            log.info("Certificate is loaded")
    except CertificateError as error:
        if str(error) != complaint:
            log.error("Certificate cannot be used", extra={"err": str(error)})
        return str(error)
    return ""


async def _pause(stopped: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), REFRESH_S)


async def _until_told(options: Options, listener: socket.socket) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C: the manager ends us when it has finished
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def watch_manager() -> None:
        await reader.read()
        stopped.set()

    watching = asyncio.create_task(watch_manager())
    await serve(options, listener, stopped)
    watching.cancel()


def limit_memory(most: int) -> None:
    """Limit this process to so many bytes of data; an existing lower limit stays."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def main(arguments: Sequence[str]) -> int:
    """Serve on the socket whose number is the first argument, with the options in the second one."""
    number, text = arguments
    options = Options.from_json(text)
    logs.set_up(verbosity_level=options.verbosity, layout=options.layout)
    limit_memory(MEMORY)
    with socket.socket(fileno=int(number)) as listener:
        listener.setblocking(False)
        asyncio.run(_until_told(options, listener))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
