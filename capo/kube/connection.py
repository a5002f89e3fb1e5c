"""Where the API server is and how to prove who we are: from a kubeconfig file or from inside a pod.

The official client's loader costs 49 MB for the same (measured); this reads what a kubeconfig may hold, tokens from
files and credential plugins (``exec``) included.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import yaml

from capo.kube.errors import KubeError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_LIFETIME_S: Final = 60.0
"""A projected token is renewed by the kubelet in its file: read it again after so long."""


@dataclass(frozen=True)
class Token:
    """A bearer token and, on the monotonic clock, until when it may be used without asking again."""

    value: str
    until_s: float


@dataclass
class Credentials:
    """Hands out the bearer token, fresh; threads may share it."""

    fetch: Callable[[], Token] | None = None
    _token: Token | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def token(self) -> str | None:
        """Return the token to send now, None when this identity has none (client certificate)."""
        if self.fetch is None:
            return None
        with self._lock:
            if self._token is None or time.monotonic() >= self._token.until_s:
                self._token = self.fetch()
            return self._token.value

    def forget(self) -> None:
        """Ask again at the next use: the API server refused the token."""
        with self._lock:
            self._token = None


@dataclass(frozen=True)
class Connection:
    """One API server and one identity.

    Args:
        server: URL without a trailing slash.
        ca_pem: certificates that may sign the server's; None means those of the system.
        server_name: name to expect in the server's certificate, None means the URL's.
        client_pem: certificate and key of the client, both in PEM.
        basic: user name and password.
        namespace: the context's or the pod's own namespace.
    """

    server: str
    ca_pem: str | None = None
    is_insecure: bool = False
    server_name: str | None = None
    client_pem: tuple[str, str] | None = None
    credentials: Credentials = field(default_factory=Credentials)
    basic: tuple[str, str] | None = None
    namespace: str | None = None

    def authorization(self) -> dict[str, str]:
        """Return the header that proves who we are; empty with a client certificate."""
        if token := self.credentials.token():
            return {"Authorization": f"Bearer {token}"}
        if self.basic:
            return {"Authorization": "Basic " + base64.b64encode(":".join(self.basic).encode()).decode()}
        return {}

    def tls(self) -> ssl.SSLContext:
        """Return a context that trusts the given certificates alone."""
        context = ssl.create_default_context(cadata=self.ca_pem)
        if self.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_pem:
            # ssl loads certificates from files only; it is removed as soon as it is read.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
                pem.write("\n".join(self.client_pem))
                pem.flush()
                context.load_cert_chain(pem.name)
        return context


def find(*, kubeconfig: str | None, context: str | None, environ: Mapping[str, str] = os.environ) -> Connection:
    """Return the connection that flags and environment mean.

    The first of: the path given, ``KUBECONFIG``, the pod's service account, ``~/.kube/config``.

    Raises:
        KubeError: there is none, or it cannot be read.
    """
    path = kubeconfig or environ.get("KUBECONFIG")
    if not path and "KUBERNETES_SERVICE_HOST" in environ:
        return in_cluster(environ)
    if not path:
        path = str(Path("~/.kube/config").expanduser())
    return from_kubeconfig(path.split(os.pathsep)[0], context=context or environ.get("KUBECONTEXT"))


def in_cluster(environ: Mapping[str, str] = os.environ, *, folder: Path = SERVICE_ACCOUNT) -> Connection:
    """Return the connection of the pod's service account; its token is read again every minute."""
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    namespace = folder / "namespace"
    return Connection(
        server=f"https://{host}:{port}",
        ca_pem=_read(folder / "ca.crt"),
        credentials=Credentials(_from_file(folder / "token")),
        namespace=namespace.read_text().strip() if namespace.exists() else None,
    )


def from_kubeconfig(path: str, *, context: str | None = None) -> Connection:
    """Return the connection of a kubeconfig's context.

    Raises:
        KubeError: the file or the context cannot be used; the message says what is wrong.
    """
    folder = Path(path).resolve().parent
    config = _parsed(path)
    name = context or config.get("current-context")
    chosen = _named(config, "contexts", "context", name, path)
    cluster = _named(config, "clusters", "cluster", chosen.get("cluster"), path)
    user = _named(config, "users", "user", chosen.get("user"), path) if chosen.get("user") else {}
    certificate = _pem(user, "client-certificate", folder)
    key = _pem(user, "client-key", folder)
    return Connection(
        server=str(cluster["server"]).rstrip("/"),
        ca_pem=_pem(cluster, "certificate-authority", folder),
        is_insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=cluster.get("tls-server-name"),
        client_pem=(certificate, key) if certificate and key else None,
        credentials=Credentials(_fetcher(user, folder)),
        basic=(user["username"], user["password"]) if user.get("username") and user.get("password") else None,
        namespace=chosen.get("namespace"),
    )


def _parsed(path: str) -> dict[str, Any]:
    try:
        config = yaml.safe_load(Path(path).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise KubeError(f"kubeconfig {path} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise KubeError(f"kubeconfig {path} is empty")
    return config


def _named(config: dict[str, Any], plural: str, singular: str, name: object, path: str) -> dict[str, Any]:
    for entry in config.get(plural) or ():
        if entry.get("name") == name:
            return dict(entry.get(singular) or {})
    raise KubeError(f"kubeconfig {path} has no {singular} named {name!r}")


def _pem(section: Mapping[str, Any], field_name: str, folder: Path) -> str | None:
    if data := section.get(f"{field_name}-data"):
        return base64.b64decode(data).decode()
    if file := section.get(field_name):
        return _read(folder / file)
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise KubeError(f"{path} cannot be read: {error}") from error


def _fetcher(user: Mapping[str, Any], folder: Path) -> Callable[[], Token] | None:
    if user.get("exec"):
        return lambda: _from_plugin(user["exec"], folder)
    if file := user.get("tokenFile"):
        return _from_file(folder / file)
    if value := user.get("token"):
        return lambda: Token(value, float("inf"))
    return None


def _from_file(path: Path) -> Callable[[], Token]:
    return lambda: Token(_read(path).strip(), time.monotonic() + TOKEN_LIFETIME_S)


def _from_plugin(plugin: Mapping[str, Any], folder: Path) -> Token:
    """Run a credential plugin. Source: client.authentication.k8s.io/v1, ExecCredential."""
    info = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": {"interactive": False}}
    extra = {entry["name"]: entry["value"] for entry in plugin.get("env") or ()}
    try:
        run = subprocess.run(  # noqa: S603 - the user's own kubeconfig names it
            [plugin["command"], *(plugin.get("args") or ())],
            env={**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(info), **extra},
            cwd=folder,
            capture_output=True,
            check=True,
            timeout=60,
        )
        status = json.loads(run.stdout)["status"]
        return Token(status["token"], time.monotonic() + _lifetime_s(status.get("expirationTimestamp")))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        # Output may hold the token: it is not repeated here.
        raise KubeError(f"credential plugin {plugin.get('command')} failed: {type(error).__name__}") from error


def _lifetime_s(expiration: str | None) -> float:
    if not expiration:
        return float("inf")
    left_s = datetime.fromisoformat(expiration).timestamp() - time.time() - TOKEN_LIFETIME_S
    # It was handed out just now: where it seems to be over, the clock of this machine is ahead.
    return max(left_s, TOKEN_LIFETIME_S)
