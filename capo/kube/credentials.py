"""Credentials: tokens and client certificates that expire, are rotated, or come from a plugin.

The official client reads a token file once, runs a plugin without a time limit and never again after a 401. So both
users, the client of ``transport.py`` and kopf's watches, get their credentials from here.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from kubernetes.config.config_exception import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import ConfigNode

from capo.kube.errors import KubeError

log = logging.getLogger(__name__)

REREAD_S: Final = 60.0
"""Interval at which a token file is reread: the kubelet renews a projected token in its file."""
AHEAD_S: Final = 60.0
"""Time before its expiry at which a plugin's credential is renewed; until then the old one is used."""
AGAIN_S: Final = 10.0
"""Pause after a failed renewal, while the old credential is in use."""
REFUSED_S: Final = 5.0
"""Minimum use of a credential that replaced a refused one, even if it is refused, too."""
PLUGIN_S: Final = 30.0
"""Time limit of one run of a plugin."""


@dataclass(frozen=True)
class Credential:
    """Credential of a request with its validity; times are of the monotonic clock.

    Args:
        authorization: value of the header; None with a certificate alone.
        certificate: PEM of the client's certificate and key.
        renew_s: from then on it is renewed, while it is in use.
        until_s: from then on it is not used.
    """

    authorization: str | None = field(default=None, repr=False)
    certificate: tuple[str, str] | None = field(default=None, repr=False)
    renew_s: float = float("inf")
    until_s: float = float("inf")

    def proves_as(self, other: Credential) -> bool:
        """Return whether both are the same to the API server."""
        return (self.authorization, self.certificate) == (other.authorization, other.certificate)


def bearer(token: str, *, renew_s: float = float("inf"), until_s: float = float("inf")) -> Credential:
    """Return the credential of a token; see ``Credential``.

    Raises:
        KubeError: it is empty, or has characters that a header must not contain.
    """
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise KubeError("the token for the API server is empty, or contains characters that a token cannot have")
    return Credential(f"Bearer {token}", renew_s=renew_s, until_s=until_s)


class Credentials:
    """Provides the current credential; thread safe.

    Args:
        fetch: returns a credential or raises KubeError; None: the identity is in the TLS settings only, or there is
            none.
        is_slow: renew in a separate thread, so that no request waits while the old credential is valid.
    """

    def __init__(self, fetch: Callable[[], Credential] | None = None, *, is_slow: bool = False) -> None:
        self._fetch = fetch or Credential
        self._is_slow = is_slow
        self._known: Credential | None = None
        self._refused_s = -float("inf")
        self._lock = threading.Lock()
        """Held while a credential is fetched."""
        self._renewal: threading.Thread | None = None

    def current(self) -> Credential:
        """Return the credential to send now.

        Raises:
            KubeError: there is none; the next call fetches again.
        """
        known, now_s = self._known, time.monotonic()
        if known is None or now_s >= known.until_s:
            return self._fetched(known)
        if now_s >= known.renew_s:
            self._renew(known)
        return self._known or known

    def renew(self, refused: Credential) -> bool:
        """Return whether there is another credential than the one that the API server answered with 401.

        Raises:
            KubeError: none could be fetched.
        """
        known = self._known
        if known is not None and not known.proves_as(refused):
            return True
        if time.monotonic() < self._refused_s + REFUSED_S:
            return False
        found = self._fetched(known)
        self._refused_s = time.monotonic()
        return not found.proves_as(refused)

    def _fetched(self, replaced: Credential | None) -> Credential:
        with self._lock:
            known = self._known
            if known is None or known is replaced:  # otherwise another thread has fetched it
                known = self._known = self._fetch()
            return known

    def _renew(self, known: Credential) -> None:
        if not self._is_slow:
            self._renew_now(known)
        elif self._renewal is None or not self._renewal.is_alive():
            self._renewal = threading.Thread(target=self._renew_now, args=(known,), name="credential", daemon=True)
            self._renewal.start()

    def _renew_now(self, known: Credential) -> None:
        try:
            self._fetched(known)
        except KubeError as error:
            log.warning("Credential could not be renewed; the old one is used", extra={"err": str(error)})
            with self._lock:
                if self._known is known:
                    self._known = replace(known, renew_s=time.monotonic() + AGAIN_S)


def from_file(path: Path) -> Callable[[], Credential]:
    """Return a source that reads a token from a file; a token is reused until another one is read."""

    def fetch() -> Credential:
        try:
            token = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise KubeError(f"token file {path} cannot be read: {error}") from error
        return bearer(token, renew_s=time.monotonic() + REREAD_S)

    return fetch


def from_plugin(plugin: ConfigNode, folder: str, cluster: ConfigNode) -> Callable[[], Credential]:
    """Return a source that runs a credential plugin. Source: client.authentication.k8s.io/v1, ExecCredential.

    Args:
        plugin: ``exec`` of the kubeconfig's user.
        folder: folder of the kubeconfig, to which a relative command refers.
        cluster: passed to a plugin with ``provideClusterInfo``.

    Raises:
        KubeError: the entry is invalid.
    """
    if plugin.safe_get("interactiveMode") == "Always":
        raise KubeError(f"credential plugin {plugin['command']} wants a terminal (interactiveMode: Always): none here")
    try:
        provider = ExecProvider(plugin, folder, cluster)
    except ConfigException as error:
        raise KubeError(f"credential plugin cannot be used: {error}") from error

    def fetch() -> Credential:
        try:
            return _credential(json.loads(_output(provider))["status"])
        except FileNotFoundError as error:
            hint = plugin.safe_get("installHint") or "install it"
            raise KubeError(f"credential plugin {provider.args[0]} is not there: {hint}") from error
        except subprocess.TimeoutExpired as error:
            raise KubeError(f"credential plugin {provider.args[0]} did not end within {PLUGIN_S:.0f} s") from error
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError, AttributeError) as error:
            # Output may contain the token: neither it nor an error that quotes it is reported.
            status = f", exit status {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else ""
            raise KubeError(
                f"credential plugin {provider.args[0]} failed: {type(error).__name__}{status}; run it to see why"
            ) from None

    return fetch


def _output(provider: ExecProvider) -> bytes:
    """Run a plugin; on timeout kill it with its children, which would keep the pipe open."""
    spec: dict[str, Any] = {"interactive": False}
    if provider.cluster:
        known = provider.cluster.value
        extensions = {entry["name"]: entry["extension"] for entry in known.get("extensions") or ()}
        config = extensions.get("client.authentication.k8s.io/exec")
        spec["cluster"] = {**known, **({"config": config} if config is not None else {})}
    info = {"apiVersion": provider.api_version, "kind": "ExecCredential", "spec": spec}
    with subprocess.Popen(  # noqa: S603 - the user's own kubeconfig names it
        provider.args,
        env={**provider.env, "KUBERNETES_EXEC_INFO": json.dumps(info)},
        cwd=provider.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=PLUGIN_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, provider.args[0])
    return output


def _credential(status: Mapping[str, Any]) -> Credential:
    now_s = time.monotonic()
    left_s = _left_s(status.get("expirationTimestamp"))
    renew_s, until_s = now_s + left_s - AHEAD_S, now_s + left_s
    certificate = None
    if status.get("clientCertificateData"):
        certificate = (str(status["clientCertificateData"]), str(status["clientKeyData"]))
    if status.get("token"):
        return replace(bearer(status["token"], renew_s=renew_s, until_s=until_s), certificate=certificate)
    if certificate is None:
        raise KeyError("token")
    return Credential(None, certificate, renew_s, until_s)


def _left_s(expiration: str | None) -> float:
    if not expiration:
        return float("inf")
    left_s = datetime.fromisoformat(expiration).timestamp() - time.time()
    # It was issued just now: if it seems to be expired, the clock of this machine is ahead.
    return max(left_s, 2 * AHEAD_S)
