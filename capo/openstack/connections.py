"""Connections to addresses that tenants choose: permitted networks, time limit and size limit of each answer.

The author of ``clouds.yaml`` chooses the Identity service, and its catalogue names all other endpoints. So no
connection is opened to networks that cannot host an OpenStack API (``capo.settings.DENIED_NETWORKS``), an answer has a
time limit from the first byte sent to the last one read, and its bytes are counted while they are read. Behind a proxy,
which resolves names itself, the first of these applies to literal addresses only.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import ipaddress
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests
import requests.adapters
import urllib3.connection
import urllib3.connectionpool
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.connection import create_connection

from capo import flag_values
from capo.settings import LOOPBACK_NETWORKS, Settings

POOL_SIZE: Final = 64
MIB: Final = 2**20
CHUNK: Final = 2**16
ERROR_BYTES: Final = 2**18
"""Bytes read of an answer with a status of 400 or more: Nova repeats refused user data of 64 KiB, escaped."""
SMALL_BYTES: Final = MIB
"""Answers up to this size need no share of the memory for large ones."""
VALUE_BYTES: Final = 16
"""What each value of a large answer takes of its size at least: an empty list has 3 bytes and takes 70."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AddressDeniedError(NewConnectionError):
    """A host is in a denied network; nothing was sent."""


class TunnelRefusedError(NewConnectionError):
    """A proxy opens no tunnel to a service; nothing was sent to the service."""


class ResponseTooLargeError(requests.exceptions.RequestException):
    """An answer exceeds the size limit; the request may have taken effect."""


class MemoryShareError(requests.exceptions.RequestException):
    """The memory for large answers is in use; the request may have taken effect."""


@dataclass(frozen=True)
class Limits:
    """Limits of one call.

    Args:
        connect_s: seconds to connect.
        read_s: seconds between two packets of the answer to a read.
        write_s: seconds between two packets of the answer to a write.
        total_s: seconds from the request to the end of the answer.
        max_bytes: size of an answer, decompressed.
        denied: networks to which no connection is opened.
    """

    connect_s: float = 5.0
    read_s: float = 30.0
    write_s: float = 60.0
    total_s: float = 180.0
    max_bytes: int = 32 * MIB
    denied: tuple[Network, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return the limits of a manager, or of an operators' command, with these settings."""
        return cls(
            connect_s=settings.openstack_connect_timeout_s,
            read_s=settings.openstack_read_timeout_s,
            total_s=settings.openstack_request_timeout_s,
            max_bytes=settings.openstack_max_response_bytes,
            denied=settings.openstack_denied_networks,
        )

    def for_method(self, method: str) -> tuple[float, float]:
        """Return the connect timeout and the timeout between two packets, in seconds."""
        return (self.connect_s, self.read_s if method in ("GET", "HEAD") else self.write_s)


def is_denied(address: str, denied: Sequence[Network]) -> bool:
    """Return whether an IP address is in one of the networks; IPv4-mapped IPv6 addresses count as IPv4."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or _translated(found) or found
    return any(found in network for network in denied)


def is_address_in(host: str, networks: Sequence[Network]) -> bool:
    """Return whether a host is a literal IP address in one of these networks."""
    try:
        return is_denied(host.strip("[]"), networks)
    except ValueError:
        return False


LOOPBACK: Final = flag_values.networks(",".join(LOOPBACK_NETWORKS))
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def _translated(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that a NAT64 gateway maps an IPv6 address to. Source: RFC 6052."""
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.sixtofour


class _Call(threading.local):
    """Time limits of the current call of this thread: its end, and the timeout of its next packet."""

    ends_s: float = float("inf")
    packet_s: float = 60.0


_CALL: Final = _Call()


@contextlib.contextmanager
def _ends_by(ends_s: float, packet_s: float) -> Iterator[None]:
    """Limit reads of this thread to a time of the monotonic clock."""
    before = _CALL.ends_s, _CALL.packet_s
    _CALL.ends_s, _CALL.packet_s = ends_s, packet_s
    try:
        yield
    finally:
        _CALL.ends_s, _CALL.packet_s = before


class _TimedReader(io.RawIOBase):
    """Reads a socket until the call's time is over, even if single bytes keep arriving."""

    def __init__(self, raw: io.RawIOBase, sock: Any, ends_s: float, packet_s: float) -> None:
        super().__init__()
        self._raw, self._sock, self._ends_s, self._packet_s = raw, sock, ends_s, packet_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._ends_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer takes longer than a request may")
        self._sock.settimeout(min(self._packet_s, left_s))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        # The connection may serve another call, which has its own time limit.
        with contextlib.suppress(OSError):
            self._sock.settimeout(self._packet_s)
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """An answer whose status, headers and body are all read within the call's time limit."""

    def __init__(self, sock: Any, *args: Any, ends_s: float, packet_s: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        raw = sock.makefile("rb", buffering=0)
        self.fp = io.BufferedReader(_TimedReader(raw, sock, ends_s, packet_s))


class _Guarded:
    """Overrides for urllib3's connections; a mixin."""

    denied: Sequence[Network] = ()

    def _new_conn(self) -> socket.socket:
        """Resolve the name once and connect to the checked address: a second lookup could return another one."""
        connection: Any = self
        error: Exception = NewConnectionError(connection, f"{connection.host} has no address")
        for address in self._admitted():
            try:
                return create_connection(
                    (address, connection.port),
                    connection.timeout,
                    source_address=connection.source_address,
                    socket_options=connection.socket_options,
                )
            except TimeoutError as refusal:
                error = ConnectTimeoutError(connection, f"no connection to {address} in {connection.timeout} s")
                error.__cause__ = refusal
            except OSError as refusal:
                error = NewConnectionError(connection, f"Failed to establish a new connection: {refusal}")
                error.__cause__ = refusal
        raise error

    def _admitted(self) -> Sequence[str]:
        connection: Any = self
        try:
            found = socket.getaddrinfo(connection.host.strip("[]"), connection.port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise NameResolutionError(connection.host, connection, error) from error
        except UnicodeError as error:
            raise NewConnectionError(connection, f"{connection.host!r} is no name of a host") from error
        addresses = [str(each[4][0]) for each in found]
        admitted = [address for address in addresses if not is_denied(address, self.denied)]
        if addresses and not admitted:
            raise AddressDeniedError(connection, denial(connection.host))
        return admitted

    def _tunnel(self) -> None:
        connection: Any = self
        try:
            super()._tunnel()  # type: ignore[misc]
        except OSError as error:
            raise TunnelRefusedError(connection, f"the proxy refuses a tunnel: {error}") from error

    def getresponse(self) -> Any:
        """Return the answer; all of it is read within the call's time limit."""
        self.response_class = functools.partial(_TimedResponse, ends_s=_CALL.ends_s, packet_s=_CALL.packet_s)
        return super().getresponse()  # type: ignore[misc]


def denial(host: str) -> str:
    """Return why no connection to a host is opened."""
    return f"{host} is in a network to which connections are denied (--openstack-denied-networks)"


def _pools(denied: Sequence[Network]) -> dict[str, type]:
    """Return urllib3's pools by scheme, with connections that refuse denied networks."""
    http_pool, https_pool = urllib3.connectionpool.HTTPConnectionPool, urllib3.connectionpool.HTTPSConnectionPool
    plain = type("GuardedHttp", (_Guarded, urllib3.connection.HTTPConnection), {"denied": denied})
    secure = type("GuardedHttps", (_Guarded, urllib3.connection.HTTPSConnection), {"denied": denied})
    return {
        "http": type("GuardedHttpPool", (http_pool,), {"ConnectionCls": plain}),
        "https": type("GuardedHttpsPool", (https_pool,), {"ConnectionCls": secure}),
    }


class AnswerMemory:
    """Memory budget for large answers being read, shared by all clouds; one host cannot use all of it.

    Args:
        total: bytes for all hosts together.
        per_host: bytes for one host.
    """

    def __init__(self, total: int, per_host: int) -> None:
        self._total, self._per_host = total, per_host
        self._taken: Counter[str] = Counter()
        self._freed = threading.Condition()

    @contextlib.contextmanager
    def share(self, host: str, wanted: int, *, ends_s: float) -> Iterator[None]:
        """Reserve a share, waiting until a time of the monotonic clock.

        Raises:
            MemoryShareError: none became free until then.
        """
        with self._freed:
            if not self._freed.wait_for(lambda: self._has_room(host, wanted), ends_s - time.monotonic()):
                raise MemoryShareError("other large answers are being read, and there is no memory for one more")
            self._taken[host] += wanted
        try:
            yield
        finally:
            with self._freed:
                self._taken[host] -= wanted
                self._taken += Counter()  # drop zero counts, else every host ever seen stays
                self._freed.notify_all()

    def _has_room(self, host: str, wanted: int) -> bool:
        return self._taken[host] + wanted <= self._per_host and self._taken.total() + wanted <= self._total


class BoundedAdapter(requests.adapters.HTTPAdapter):
    """Sends requests within limits; trusts exactly what an SSL context trusts.

    Args:
        shares: memory for large answers, one for all adapters of a process.
    """

    def __init__(self, context: ssl.SSLContext, limits: Limits, shares: AnswerMemory) -> None:
        self._context, self._limits, self._shares = context, limits, shares
        super().__init__(pool_connections=POOL_SIZE, pool_maxsize=POOL_SIZE, max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        """Create pools whose connections refuse denied networks."""
        super().init_poolmanager(connections, maxsize, block, ssl_context=self._context, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _pools(self._limits.denied)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        """Return the connections through a proxy. The administrator chose it, so any address is allowed."""
        manager = super().proxy_manager_for(proxy, ssl_context=self._context, **more)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = _pools(())
        return manager

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave trust to the SSL context: the inherited method would add the certificates of a file."""
        conn.cert_reqs = "CERT_REQUIRED" if verify else "CERT_NONE"
        conn.ca_certs = conn.ca_cert_dir = None

    def send(self, request: requests.PreparedRequest, *_: Any, timeout: Any = None, **more: Any) -> requests.Response:
        """Send a request and read its answer within the limits.

        Raises:
            requests.exceptions.RequestException: no answer within the limits.
        """
        host = urlsplit(str(request.url)).hostname or ""
        if is_address_in(host, self._limits.denied):  # a proxy would reach it all the same
            never_made = AddressDeniedError(urllib3.connection.HTTPConnection(host, 80), denial(host))
            raise requests.exceptions.ConnectionError(never_made)
        packet_s = timeout[1] if isinstance(timeout, tuple) else self._limits.read_s
        ends_s = time.monotonic() + self._limits.total_s
        with _ends_by(ends_s, packet_s):
            response = super().send(request, timeout=timeout, **more | {"stream": True})
            try:
                response._content = self._read(response, ends_s)
            except BaseException:
                response.close()
                raise
        return response

    def _read(self, response: requests.Response, ends_s: float) -> bytes:
        chunks = response.iter_content(CHUNK)
        if response.status_code >= 400:
            body = _start(chunks, ERROR_BYTES)
            if len(body) >= ERROR_BYTES:
                response.close()  # the rest stays unread, so the connection cannot be reused
            return body[:ERROR_BYTES]
        body = _start(chunks, min(SMALL_BYTES, self._limits.max_bytes))
        if len(body) < min(SMALL_BYTES, self._limits.max_bytes):
            return body
        host = urlsplit(str(response.url)).netloc
        with self._shares.share(host, self._wanted(response), ends_s=ends_s):
            parts, size = [body], len(body)
            while size <= self._limits.max_bytes and (chunk := next(chunks, None)) is not None:
                parts.append(chunk)
                size += len(chunk)
            if size > self._limits.max_bytes:
                mib = self._limits.max_bytes / MIB
                raise ResponseTooLargeError(f"an answer of more than {mib:g} MiB (--openstack-max-response-size)")
            content = b"".join(parts)
        most = self._limits.max_bytes // VALUE_BYTES
        if values_in(content) > most:
            raise ResponseTooLargeError(f"an answer of more than {most} values (--openstack-max-response-size)")
        return content

    def _wanted(self, response: requests.Response) -> int:
        """Return the largest size of an answer in bytes: its Content-Length, if the body cannot be larger than that."""
        length = response.headers.get("Content-Length", "")
        is_told = length.isdecimal() and len(length) < 12 and "Content-Encoding" not in response.headers
        return min(int(length), self._limits.max_bytes) if is_told else self._limits.max_bytes


def values_in(content: bytes) -> int:
    """Return how many values JSON has at most, before it is parsed; an object counts twice."""
    return content.count(b",") + content.count(b"[") + 2 * content.count(b"{")


def _start(chunks: Iterator[bytes], size: int) -> bytes:
    """Return the first bytes, at least ``size`` if there are as many."""
    parts, found = [], 0
    while found < size and (chunk := next(chunks, None)) is not None:
        parts.append(chunk)
        found += len(chunk)
    return b"".join(parts)
