"""The proxy to the API server, chosen as Go's clients do.

Neither the official client nor requests follows these rules: they match ``.example.org`` and ports differently, and
the client also reads ``ALL_PROXY``. Source: golang.org/x/net/http/httpproxy; kubeconfig (v1), ``proxy-url``.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from capo.kube.errors import KubeError

_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


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
    target = urlsplit(server)
    name = f"{target.scheme.upper()}_PROXY"
    found = environ.get(name) or environ.get(name.lower())
    if not found or is_exempt(target, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return parse(found)


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
    return Proxy(f"http://{_bracketed(host)}:{port or _PORTS['http']}", login)


def is_exempt(target: SplitResult, no_proxy: str) -> bool:
    """Return whether a URL is reached directly: this machine itself, and the entries of ``NO_PROXY``."""
    host = (target.hostname or "").strip()
    port = str(target.port or _PORTS.get(target.scheme) or "")
    address = _address(host)
    if host == "localhost" or (address and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, port) for entry in no_proxy.split(","))


def _matches(entry: str, host: str, port: str) -> bool:
    if not entry or entry == "*":
        return entry == "*"
    address = _address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    wanted, wanted_port = _host_and_port(entry)
    if wanted_port and wanted_port != port:
        return False
    if known := _address(wanted):
        return known == address
    # ``example.org`` matches itself and its subdomains; ``.example.org`` and ``*.example.org`` only its subdomains.
    suffix = wanted.removeprefix("*")
    return bool(suffix) and (host.endswith(suffix) if suffix.startswith(".") else f".{host}".endswith(f".{suffix}"))


def _host_and_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, port
    return entry, ""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
