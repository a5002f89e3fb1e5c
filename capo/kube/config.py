"""Find the API server and our credentials from flags, the environment, or the pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader

from capo.kube import SERVICE_ACCOUNT, proxies
from capo.kube import kubeconfig as files
from capo.kube.connection import Connection
from capo.kube.credentials import Credentials, from_file
from capo.kube.errors import KubeError
from capo.kube.tls import Pem, Tls


def find(*, kubeconfig: str | None, context: str | None, environ: Mapping[str, str] = os.environ) -> Connection:
    """Return the connection that flags and environment specify.

    The first of: the path given, the files of ``KUBECONFIG`` that exist, the pod's service account, ``~/.kube/config``.
    Source: controller-runtime, ``config.GetConfig``.

    Raises:
        KubeError: there is none, or it is unusable.
    """
    context = context or environ.get("KUBECONTEXT")
    if kubeconfig:
        return files.load([Path(kubeconfig)], context=context, environ=environ)
    if listed := [Path(name).expanduser() for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        # As with kubectl, a list may name files that do not exist, but not only such files.
        return files.load([path for path in listed if path.exists()] or listed[:1], context=context, environ=environ)
    if "KUBERNETES_SERVICE_HOST" in environ:
        return in_cluster(environ)
    return files.load([Path("~/.kube/config").expanduser()], context=context, environ=environ)


def from_kubeconfig(path: str, *, context: str | None = None, environ: Mapping[str, str] = os.environ) -> Connection:
    """Return the connection of a kubeconfig file; see ``kubeconfig.load``."""
    return files.load([Path(path)], context=context, environ=environ)


def in_cluster(environ: Mapping[str, str] = os.environ, *, folder: Path = SERVICE_ACCOUNT) -> Connection:
    """Return the connection of the pod's service account; its token and CA are reread when they are rotated.

    Raises:
        KubeError: the variables or files of the service account are missing.
    """
    configuration = Configuration(proxy="", no_proxy="")
    token, ca = folder / "token", folder / "ca.crt"
    try:
        InClusterConfigLoader(str(token), str(ca), environ=environ).load_and_set(configuration)
        namespace = folder / "namespace"
        name = namespace.read_text(encoding="utf-8").strip() if namespace.exists() else None
    except (ConfigException, OSError, ValueError) as error:
        raise KubeError(f"the pod's service account cannot be used: {error}") from error
    return Connection(
        configuration.host,
        tls=Tls(ca=Pem(Path(configuration.ssl_ca_cert))),
        credentials=Credentials(from_file(token)),
        namespace=name,
        proxy=proxies.choose(configuration.host, environ),
    )
