"""Kubeconfig files, read by the official client's loader, with the rules of kubectl where the loader differs.

These are: of several files the first that names a current context decides, a token file precedes a token, and
unsupported entries are refused, not ignored.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from capo.kube import proxies
from capo.kube.connection import Connection
from capo.kube.credentials import Credential, Credentials, bearer, from_file, from_plugin
from capo.kube.errors import KubeError
from capo.kube.tls import Pem, Tls

_UNREADABLE: Final = (
    OSError,
    ValueError,
    yaml.YAMLError,
    ConfigException,
    AttributeError,
    TypeError,
    KeyError,
    RecursionError,
)
_IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")


def load(paths: Iterable[Path], *, context: str | None, environ: Mapping[str, str]) -> Connection:
    """Return the connection of a context, the current one if none is given.

    Args:
        paths: files; of entries with the same name the first is used.
        environ: names the proxies to use if the kubeconfig names none.

    Raises:
        KubeError: a file or the context is unusable; the message gives the reason.
    """
    paths = list(paths)
    where = ", ".join(map(str, paths))
    merged, current = _merged(paths)
    name = context or current
    if not name:
        raise KubeError(f"kubeconfig {where} has no current-context; name one with KUBECONTEXT")
    try:
        return _connection(merged, name, environ)
    except (ConfigException, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # The value of a field may be a secret, and the loader's errors quote whole entries.
        detail = _without_entries(str(error)) if isinstance(error, ConfigException | OSError) else type(error).__name__
        raise KubeError(f"kubeconfig {where}, context {name!r}, cannot be used: {detail}") from None


def _merged(paths: Iterable[Path]) -> tuple[ConfigNode, str | None]:
    merger = KubeConfigMerger("")
    current = None
    for path in paths:
        try:
            text = yaml.safe_load(path.read_text(encoding="utf-8"))
            if not text:
                continue
            merger.load_config(str(path))
            current = current or text.get("current-context")
        except _UNREADABLE as error:
            detail = str(error) if isinstance(error, OSError) else "it is not a kubeconfig"
            raise KubeError(f"kubeconfig {path} cannot be read: {detail}") from None
    if merger.config is None:
        raise KubeError(f"kubeconfig {', '.join(map(str, paths))} is empty")
    return merger.config, current


def _connection(merged: ConfigNode, name: str, environ: Mapping[str, str]) -> Connection:
    context = merged["contexts"].get_with_name(name)["context"]
    cluster = merged["clusters"].get_with_name(context["cluster"])["cluster"]
    if not str(cluster["server"]).startswith(("https://", "http://")):
        raise ConfigException("the server is not an https:// or http:// URL")
    credentials = _own_sources(merged, context.safe_get("user"), cluster)
    configuration = Configuration(proxy="", no_proxy="")
    with tempfile.TemporaryDirectory(prefix="capo-kubeconfig-") as private:
        # The loader writes data of the kubeconfig into files: they are read and removed.
        KubeConfigLoader(merged, name, config_base_path=None, temp_file_path=private).load_and_set(configuration)
        tls = _tls(configuration, Path(private))
    return Connection(
        configuration.host,
        tls=tls,
        credentials=credentials or _static(configuration.api_key.get("BearerToken")),
        namespace=context.safe_get("namespace"),
        proxy=proxies.choose(configuration.host, environ, given=configuration.proxy),
    )


def _without_entries(message: str) -> str:
    """Return a message of the loader without its quotes, from the first brace to the last."""
    before, brace, rest = message.partition("{")
    return f"{before}...{rest.rpartition('}')[2] if '}' in rest else ''}" if brace else message


def _own_sources(merged: ConfigNode, name: str | None, cluster: ConfigNode) -> Credentials | None:
    """Return the credentials of a token file or plugin and hide them from the loader, which reads them only once."""
    if not name:
        return None
    entry = merged["users"].get_with_name(name)
    values = entry.value["user"] = dict(entry.value.get("user") or {})
    if "auth-provider" in values:
        raise ConfigException(f"auth-provider of user {name} is not supported; use a credential plugin (exec)")
    if refused := [key for key in _IMPERSONATION if values.get(key)]:
        raise ConfigException(f"{', '.join(refused)} of user {name}: impersonation is not supported")
    user = entry["user"]
    folder = Path(user.path).parent.absolute()
    plugin = user["exec"] if values.get("exec") else None
    file = values.pop("tokenFile", None)
    values.pop("exec", None)
    if file:
        return Credentials(from_file(folder / file))
    if plugin and not values.get("token"):
        return Credentials(from_plugin(plugin, str(folder), cluster), is_slow=True)
    return None


def _static(authorization: str | None) -> Credentials:
    """Return the credentials of the loader's header: of a token, or of user and password."""
    if authorization is None:
        return Credentials()
    scheme, _, value = authorization.partition(" ")
    credential = bearer(value) if scheme == "Bearer" else Credential(authorization)
    return Credentials(lambda: credential)


def _tls(configuration: Configuration, private: Path) -> Tls:
    def pem(file: str | None) -> Pem | None:
        if not file:
            return None
        path = Path(file)
        return Pem(text=path.read_text(encoding="utf-8")) if path.is_relative_to(private) else Pem(path.absolute())

    certificate, key = pem(configuration.cert_file), pem(configuration.key_file)
    if (certificate is None) != (key is None):
        raise ConfigException("of client-certificate and client-key there is one alone")
    return Tls(
        ca=pem(configuration.ssl_ca_cert),
        certificate=(certificate, key) if certificate and key else None,
        is_verified=configuration.verify_ssl,
        server_name=configuration.tls_server_name or "",
    )
