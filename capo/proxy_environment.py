"""The proxies of ``HTTP_PROXY`` and ``HTTPS_PROXY``, and the exceptions of ``NO_PROXY``, as Go's clients read them.

Neither requests nor the official Kubernetes client follows these rules: they match ``.example.org`` and ports
differently, and read ``ALL_PROXY``. Source: golang.org/x/net/http/httpproxy.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


def proxy_of(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy that the environment names for a URL, None for a direct connection.

    Raises:
        ValueError: the URL has no valid port.
    """
    target = urlsplit(url)
    name = f"{target.scheme.upper()}_PROXY"
    found = environ.get(name) or environ.get(name.lower())
    if not found or is_exempt(target, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return found


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
