"""Connections to addresses that tenants choose: where they may lead, how long an answer may take, how large it may be.

Whoever writes ``clouds.yaml`` chooses the Identity service, and its catalogue names all other end points. So nothing is
connected to networks in which nobody's OpenStack is (``capo.settings.DENIED_NETWORKS``), an answer has a time limit
from the first byte sent to the last one read, and its bytes are counted while they are read. Behind a proxy, which
resolves names itself, the first of these holds for addresses alone.
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

POOL_SIZE: Final = 64
MIB: Final = 2**20
CHUNK: Final = 2**16
ERROR_BYTES: Final = 2**18
"""What is read of an answer with a status of 400 or more: Nova repeats user data of 64 KiB that it refuses, escaped."""
SMALL_BYTES: Final = MIB
"""An answer up to this size needs no share of the memory for large ones."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AddressDeniedError(NewConnectionError):
    """A host is in a network to which no connection is made; nothing was sent."""


class TunnelRefusedError(NewConnectionError):
    """A proxy makes no way to a service; nothing was sent to it."""


class ResponseTooLargeError(requests.exceptions.RequestException):
    """An answer is larger than what is read; the request may have taken effect."""


class MemoryShareError(requests.exceptions.RequestException):
    """Other large answers take the memory that they may; the request may have taken effect."""


@dataclass(frozen=True)
class Limits:
    """Limits of one call.

    Args:
        connect_s: seconds to connect.
        read_s: seconds between two packets of the answer to a read.
        write_s: seconds between two packets of the answer to a write.
        total_s: seconds from the request to the end of the answer.
        max_bytes: size of an answer, decompressed.
        denied: networks to which no connection is made.
    """

    connect_s: float = 5.0
    read_s: float = 30.0
    write_s: float = 60.0
    total_s: float = 180.0
    max_bytes: int = 32 * MIB
    denied: tuple[Network, ...] = ()

    def of(self, method: str) -> tuple[float, float]:
        """Return the seconds to connect and those between two packets."""
        return (self.connect_s, self.read_s if method in ("GET", "HEAD") else self.write_s)


def is_denied(address: str, denied: Sequence[Network]) -> bool:
    """Return whether an IP address is in one of the networks; an IPv4 address may be written as an IPv6 one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or _translated(found) or found
    return any(found in network for network in denied)


def is_address_in(host: str, networks: Sequence[Network]) -> bool:
    """Return whether a host is given as an address, and one in these networks."""
    try:
        return is_denied(host.strip("[]"), networks)
    except ValueError:
        return False


LOOPBACK: Final = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def _translated(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address to which a NAT64 gateway leads. Source: RFC 6052."""
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.sixtofour


class _Call(threading.local):
    """The call that this thread makes: until when it may take, and how long its next packet may take."""

    ends_s: float = float("inf")
    packet_s: float = 60.0


_CALL: Final = _Call()


@contextlib.contextmanager
def _ends_by(ends_s: float, packet_s: float) -> Iterator[None]:
    """Have what is read inside, in this thread, end by a time of the monotonic clock."""
    before = _CALL.ends_s, _CALL.packet_s
    _CALL.ends_s, _CALL.packet_s = ends_s, packet_s
    try:
        yield
    finally:
        _CALL.ends_s, _CALL.packet_s = before


class _TimedReader(io.RawIOBase):
    """Reads a socket's answer until the call's time is over, however steadily single bytes come in."""

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
        # The connection may serve another call, which has its own time.
        with contextlib.suppress(OSError):
            self._sock.settimeout(self._packet_s)
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """An answer whose status, headers and body are all read within the call's time."""

    def __init__(self, sock: Any, *args: Any, ends_s: float, packet_s: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp.close()
        raw = sock.makefile("rb", buffering=0)
        self.fp = io.BufferedReader(_TimedReader(raw, sock, ends_s, packet_s))


class _Guarded:
    """What our connections do differently; mixed into those of urllib3."""

    denied: Sequence[Network] = ()

    def _new_conn(self) -> socket.socket:
        """Resolve the name once and connect to what was checked: another lookup might have another answer."""
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
        """Return the answer; all of it is read within the call's time."""
        self.response_class = functools.partial(_TimedResponse, ends_s=_CALL.ends_s, packet_s=_CALL.packet_s)
        return super().getresponse()  # type: ignore[misc]


def denial(host: str) -> str:
    """Return why no connection is made to a host."""
    return f"{host} is in a network to which connections are denied (--openstack-denied-networks)"


def _never_made(host: str) -> AddressDeniedError:
    return AddressDeniedError(urllib3.connection.HTTPConnection(host, 80), denial(host))


def _pools(denied: Sequence[Network]) -> dict[str, type]:
    """Return the pools of urllib3 by scheme, with connections that know which networks are denied."""
    http_pool, https_pool = urllib3.connectionpool.HTTPConnectionPool, urllib3.connectionpool.HTTPSConnectionPool
    plain = type("GuardedHttp", (_Guarded, urllib3.connection.HTTPConnection), {"denied": denied})
    secure = type("GuardedHttps", (_Guarded, urllib3.connection.HTTPSConnection), {"denied": denied})
    return {
        "http": type("GuardedHttpPool", (http_pool,), {"ConnectionCls": plain}),
        "https": type("GuardedHttpsPool", (https_pool,), {"ConnectionCls": secure}),
    }


class AnswerMemory:
    """Memory for large answers that are being read, over all clouds; one host cannot take all of it.

    Args:
        total: bytes for all at once.
        per_host: bytes for one host.
    """

    def __init__(self, total: int, per_host: int) -> None:
        self._total, self._per_host = total, per_host
        self._taken: Counter[str] = Counter()
        self._freed = threading.Condition()

    @contextlib.contextmanager
    def share(self, host: str, wanted: int, *, ends_s: float) -> Iterator[None]:
        """Take a share, waiting for one until a time of the monotonic clock.

        Raises:
            MemoryShareError: there was none until then.
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
                self._taken += Counter()  # else every host ever seen stays
                self._freed.notify_all()

    def _has_room(self, host: str, wanted: int) -> bool:
        return self._taken[host] + wanted <= self._per_host and self._taken.total() + wanted <= self._total


class BoundedAdapter(requests.adapters.HTTPAdapter):
    """Sends requests within limits; trusts what an SSL context says and nothing else.

    Args:
        shares: memory for large answers, one for all adapters of a process.
    """

    def __init__(self, context: ssl.SSLContext, limits: Limits, shares: AnswerMemory) -> None:
        self._context, self._limits, self._shares = context, limits, shares
        super().__init__(pool_connections=POOL_SIZE, pool_maxsize=POOL_SIZE, max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        """Have connections to admitted addresses alone."""
        super().init_poolmanager(connections, maxsize, block, ssl_context=self._context, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _pools(self._limits.denied)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        """Return the connections by way of a proxy, which the administrator chose: it may be anywhere."""
        manager = super().proxy_manager_for(proxy, ssl_context=self._context, **more)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = _pools(())
        return manager

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Leave trust to the context: the inherited method would add the certificates of a file."""
        conn.cert_reqs = "CERT_REQUIRED" if verify else "CERT_NONE"
        conn.ca_certs = conn.ca_cert_dir = None

    def send(self, request: requests.PreparedRequest, *_: Any, timeout: Any = None, **more: Any) -> requests.Response:
        """Send a request and read its answer, as far as it may be read.

        Raises:
            requests.exceptions.RequestException: there is no answer, or none within the limits.
        """
        host = urlsplit(str(request.url)).hostname or ""
        if is_address_in(host, self._limits.denied):  # by a proxy it would be reached all the same
            raise requests.exceptions.ConnectionError(_never_made(host))
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
                response.close()  # the rest stays unread, so the connection serves no other call
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
            return b"".join(parts)

    def _wanted(self, response: requests.Response) -> int:
        """Return how many bytes an answer may have: what it says itself, if that cannot be less than it has."""
        length = response.headers.get("Content-Length", "")
        is_told = length.isdecimal() and len(length) < 12 and "Content-Encoding" not in response.headers
        return min(int(length), self._limits.max_bytes) if is_told else self._limits.max_bytes


def _start(chunks: Iterator[bytes], size: int) -> bytes:
    """Return what comes first, at least so many bytes if there are as many."""
    parts, found = [], 0
    while found < size and (chunk := next(chunks, None)) is not None:
        parts.append(chunk)
        found += len(chunk)
    return b"".join(parts)
