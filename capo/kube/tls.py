"""TLS settings for the API server; the same for the client's requests and for kopf's watches.

Certificates are reread when their files change: the pod's CA and an administrator's certificate are rotated while the
manager runs. Keys are kept in memory; the official client would leave them in temporary files if it is killed.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capo.kube.errors import KubeError


@dataclass(frozen=True)
class Pem:
    """Certificates or a key: a file, or its text if the kubeconfig contains it."""

    path: Path | None = None
    text: str = field(default="", repr=False)

    def read(self) -> str:
        """Return the text.

        Raises:
            OSError: the file cannot be read.
        """
        return self.path.read_text(encoding="utf-8") if self.path else self.text

    def version(self) -> Hashable:
        """Return a value that changes when the file does.

        Raises:
            OSError: the file does not exist.
        """
        if self.path is None:
            return None
        state = self.path.stat()
        return state.st_mtime_ns, state.st_ino, state.st_size


@dataclass(frozen=True)
class Tls:
    """TLS of one kubeconfig entry or pod.

    Args:
        ca: certificates that may sign the server's; None means those of the system.
        certificate: of the client, with its key.
        is_verified: False accepts any server: ``insecure-skip-tls-verify``.
        server_name: name to expect in the server's certificate; empty means the URL's.
    """

    ca: Pem | None = None
    certificate: tuple[Pem, Pem] | None = None
    is_verified: bool = True
    server_name: str = ""

    def version(self) -> Hashable:
        """Return a value that changes when one of the files does.

        Raises:
            OSError: one does not exist.
        """
        return tuple(pem.version() for pem in (self.ca, *(self.certificate or ())) if pem)

    def context(self, certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
        """Return a new context.

        Args:
            certificate: PEM of a client's certificate and key to use instead of the configured ones.

        Raises:
            KubeError: certificates or key are unreadable or invalid.
        """
        try:
            context = _new_context(self.ca.read() if self.ca else None, self.server_name)
            if not self.is_verified:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if certificate is None and self.certificate:
                certificate = self.certificate[0].read(), self.certificate[1].read()
            if certificate:
                _load(context, certificate)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise KubeError(f"certificates for the API server cannot be used: {error}") from error
        return context


class _Named(ssl.SSLContext):
    """Expects one name in the server's certificate, regardless of the URL: asyncio has no such option per session."""

    name: str

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        return super().wrap_bio(*args, **{**kwargs, "server_hostname": self.name})


def _new_context(ca: str | None, server_name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca)
    if not server_name:
        return context
    named = _Named(ssl.PROTOCOL_TLS_CLIENT)
    named.name = server_name
    named.verify_flags = context.verify_flags
    if ca:
        named.load_verify_locations(cadata=ca)
    else:
        named.load_default_certs()
    return named


def _load(context: ssl.SSLContext, certificate: tuple[str, str]) -> None:
    # ssl loads a key from a file only; only this user can read it, and it is removed as soon as it is loaded.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
        pem.write("\n".join(certificate))
        pem.flush()
        context.load_cert_chain(pem.name)
