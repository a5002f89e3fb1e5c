"""The proxy to the API server. Source: kubeconfig (v1), ``proxy-url``."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from capo import proxy_environment
from capo.kube.errors import KubeError


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy.

    Args:
        url: without user and password, so that it may be logged.
        login: user and password as they are in the URL, percent-encoded.
    """

    url: str
    login: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """Return the header that authenticates us to the proxy."""
        if not self.login:
            return {}
        user, _, password = self.login.partition(":")
        plain = f"{unquote(user)}:{unquote(password)}"
        return {"proxy-authorization": "Basic " + base64.b64encode(plain.encode()).decode()}

    @property
    def url_with_login(self) -> str:
        """Return the URL with user and password: a secret."""
        return self.url.replace("://", f"://{self.login}@", 1) if self.login else self.url


def choose(server: str, environ: Mapping[str, str], *, given: str | None = None) -> Proxy | None:
    """Return the proxy to a server, None for a direct connection.

    Args:
        server: URL of the API server.
        given: ``proxy-url`` of the kubeconfig; it takes precedence over the environment and its exceptions.

    Raises:
        KubeError: the proxy's type is not supported, or its URL is invalid.
    """
    if given:
        return parse(given)
    found = proxy_environment.proxy_of(server, environ)
    return parse(found) if found else None


def parse(text: str) -> Proxy:
    """Return the proxy of a URL; ``http://`` may be omitted.

    Raises:
        KubeError: it is not a URL of an HTTP proxy.
    """
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, SplitResult("", "", "", "", "")
    if not host:
        # The URL may contain a password: it is not quoted.
        raise KubeError("the proxy for the API server cannot be used: its URL has no host, or no valid port")
    if parts.scheme != "http":
        raise KubeError(
            f"the proxy {host} for the API server cannot be used: {parts.scheme}:// is not supported, only http://"
        )
    login, _, _ = parts.netloc.rpartition("@")
    name = f"[{host}]" if ":" in host else host
    return Proxy(f"http://{name}:{port or 80}", login)
