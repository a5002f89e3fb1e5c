"""The serving certificate; cert-manager renews its files while the server runs."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

NAMES: Final = ("tls.crt", "tls.key")


class CertificateError(Exception):
    """There is no usable certificate; the message gives the cause."""


class Certificate:
    """A TLS context whose certificate follows two files.

    Args:
        folder: has ``tls.crt`` and ``tls.key``.
        make: creates a context without certificate.
    """

    def __init__(self, folder: Path, make: Callable[[], ssl.SSLContext]) -> None:
        self.context = make()
        self._folder = folder
        self._make = make
        self._seen: tuple[tuple[int, int, int], ...] = ()

    def refresh(self) -> bool:
        """Load the certificate if the files changed; return whether they did. Open connections are not affected.

        Raises:
            CertificateError: the files are missing, unreadable or do not match; the context stays as it was.
        """
        try:
            seen = self._stamp()
            if seen == self._seen:
                return False
            pem = b"\n".join((self._folder / name).read_bytes() for name in NAMES)
        except OSError as error:
            raise CertificateError(f"no certificate: {error.filename}: {error.strerror}") from error
        self._load(pem)
        self._seen = seen
        return True

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        """Return a fingerprint that changes when a file does, links of a mounted Secret included."""
        facts = [os.stat(self._folder / name) for name in NAMES]
        return tuple((fact.st_mtime_ns, fact.st_ino, fact.st_size) for fact in facts)

    def _load(self, pem: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # ssl loads certificates from files only
            file.write(pem)
            file.flush()
            try:
                # A failed load would leave the live context without a key: load into another one first.
                self._make().load_cert_chain(file.name)
                self.context.load_cert_chain(file.name)
            except (ssl.SSLError, OSError) as error:
                raise CertificateError(f"the certificate in {self._folder} cannot be used: {error}") from error
