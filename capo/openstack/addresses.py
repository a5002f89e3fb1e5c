"""Map a cloud's ``auth_url`` to its budgets: by the host as written, and by the address that it resolves to.

Nothing here blocks: names are resolved in a thread (``lookup_threads.py``), and until a name is resolved all unresolved
hosts of a namespace share one budget. The result is used for budgets only, never to connect: DNS may answer the next
query differently.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import ipaddress
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from capo import shares
from capo.caches import Bounded
from capo.openstack import lookup_threads
from capo.openstack.lookup_threads import LookupThreads

KEPT_S: Final = 300.0
AGAIN_S: Final = 60.0
"""Seconds before a name that did not resolve is looked up again."""
MAX_NAMES: Final = 4096
MAX_TEXT: Final = 300
"""Longest DNS name in characters; longer text is represented by its hash."""
_IPV6_NETWORK: Final = 64
"""IPv6 prefix of one budget: a holder of one IPv6 address usually controls its whole /64."""
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_PORTS: Final = {"https": 443, "http": 80}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def host_of(auth_url: str) -> str:
    """Return the host of a URL in one spelling: lower case, no final dot, addresses as ``ipaddress`` writes them."""
    with contextlib.suppress(ValueError):
        host = _short((urlsplit(auth_url).hostname or "").rstrip("."))
        return str(literal_of(host) or host)
    return _short(auth_url)


def site_of(auth_url: str, region: str | None) -> str:
    """Return the name of a cloud's budget: host and port in one spelling, and the region."""
    try:
        url = urlsplit(auth_url)
        port = url.port or _PORTS.get(url.scheme, 0)
    except ValueError:
        port = 0
    return f"{host_of(auth_url)}:{port}/{_short(region or '')}"


@functools.lru_cache(MAX_NAMES)
def literal_of(host: str) -> Address | None:
    """Return a host as an IP address, in any notation that ``getaddrinfo`` accepts; None if it is a name."""
    try:
        return _plain(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    # inet_aton ignores what follows a space, so names chosen by tenants would be accepted as addresses.
    if not host or any(character.isspace() for character in host):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


@functools.lru_cache(MAX_NAMES)
def network_of(address: str) -> str:
    """Return the budget of an address."""
    literal = literal_of(address)
    if isinstance(literal, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((literal, _IPV6_NETWORK), strict=False))
    return str(literal or address)


def _plain(address: Address) -> Address:
    """Return the IPv4 address that is embedded in an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _canonical(found: tuple[str, ...]) -> str | None:
    """Return one of several addresses, independent of their order."""
    networks = {network_of(address) for address in found}
    return min(networks, key=lambda text: (":" in text, text), default=None)


@dataclass
class _Known:
    address: str | None
    until_s: float


@dataclass
class Addresses:
    """Resolved addresses of clouds' hosts; thread safe, never blocks.

    Args:
        now: monotonic seconds.
    """

    now: Callable[[], float]
    threads: LookupThreads = field(default_factory=LookupThreads)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: Bounded[str, _Known] = field(default_factory=lambda: Bounded.by_number(MAX_NAMES))
    _asked: set[str] = field(default_factory=set)

    def of(self, host: str, namespace: str) -> str:
        """Return the budget of a host's address, or that of the namespace while the address is unresolved.

        Args:
            host: as :func:`host_of` returns it.
        """
        if literal_of(host):
            return network_of(host)
        with self._lock:
            known = self._known.get(host)
            is_old = known is None or self.now() >= known.until_s
            is_to_be_asked = is_old and host not in self._asked
            if is_to_be_asked:
                self._asked.add(host)
        if is_to_be_asked:
            self._ask(host, namespace)
        return (known.address if known else None) or shares.unresolved(namespace)

    def _ask(self, host: str, namespace: str) -> None:
        is_started = False
        try:
            is_started = self.threads.start(lambda: self._look_up(host), namespace)
        except RuntimeError:
            pass  # no more threads: the next reconcile retries
        finally:
            if not is_started:
                with self._lock:
                    self._asked.discard(host)

    def _look_up(self, host: str) -> None:
        address: str | None = None
        try:
            with contextlib.suppress(OSError, ValueError):
                address = _canonical(lookup_threads.addresses_of(host))
        finally:
            with self._lock:
                self._asked.discard(host)
                before = self._known.get(host)
                # A short outage of the name server does not change the address of a cloud.
                kept = address or (before.address if before else None)
                self._known.put(host, _Known(kept, self.now() + (KEPT_S if address else AGAIN_S)))
