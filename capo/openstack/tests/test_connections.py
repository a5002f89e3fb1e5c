"""Calls end within their limits, whatever the server does."""

from __future__ import annotations

import contextlib
import gzip
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import requests

from capo.openstack.connections import (
    MIB,
    AnswerMemory,
    Limits,
    MemoryShareError,
    ResponseTooLargeError,
    is_denied,
)
from capo.openstack.faults import was_never_sent
from capo.openstack.identity import Credentials
from capo.openstack.transport import HttpSession, HttpSessions
from capo.settings import DENIED_NETWORKS

DENIED = tuple(ipaddress.ip_network(text) for text in DENIED_NETWORKS)
Script = Callable[[socket.socket], None]


@dataclass
class Hostile:
    """A server that runs a test's script once a request has arrived."""

    url: str
    ended: threading.Event
    connections: list[str] = field(default_factory=list)


@contextlib.contextmanager
def hostile(script: Script) -> Iterator[Hostile]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = Hostile(f"http://127.0.0.1:{listener.getsockname()[1]}/", threading.Event())

    def talk(peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            while not server.ended.is_set() and peer.recv(65536):
                script(peer)

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                server.connections.append("connection")
                threading.Thread(target=talk, args=(peer,), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()
    try:
        yield server
    finally:
        server.ended.set()
        listener.close()


def session(limits: Limits) -> HttpSession:
    return HttpSessions(limits).of(Credentials('{"verify": true}', None, None))


def drip(head: bytes, piece: bytes, pause: threading.Event) -> Script:
    """Return a server that never ends its answer: one piece each few milliseconds."""

    def script(peer: socket.socket) -> None:
        peer.sendall(head)
        while not pause.wait(0.005):
            peer.sendall(piece)

    return script


def answer(status: str, body: bytes, *headers: str) -> Script:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return lambda peer: peer.sendall("\r\n".join(lines).encode() + body)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"x", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", id="chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Header: ", b"x", id="header"),
        pytest.param(b"HTTP/1.1 ", b"2", id="status line"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="interim answers"),
        pytest.param(b"HTTP/1.1 500 No\r\nContent-Length: 1000000000\r\n\r\n", b"x", id="error"),
    ],
)
def test_an_answer_that_comes_byte_by_byte_ends_with_the_time_of_the_request(head: bytes, piece: bytes) -> None:
    pause = threading.Event()
    limits = Limits(connect_s=60, read_s=60, write_s=60, total_s=0.3)
    with hostile(drip(head, piece, pause)) as server, session(limits) as http:
        began_s = time.monotonic()
        with pytest.raises(requests.exceptions.RequestException) as caught:
            http.get(server.url)
        pause.set()

    assert not was_never_sent(caught.value)
    assert time.monotonic() - began_s < 30  # a packet may take 60 s, and there is always another one


def test_the_time_of_one_request_is_not_that_of_the_next_on_the_same_connection() -> None:
    with hostile(answer("200 OK", b"{}")) as server, session(Limits(total_s=60.0)) as http:
        for _ in range(3):
            assert http.get(server.url).json() == {}

    assert len(server.connections) == 1


@pytest.mark.parametrize("is_compressed", [False, True])
def test_an_answer_is_read_up_to_its_limit(is_compressed: bool) -> None:
    plain = b" " * (8 * MIB)
    body, headers = (gzip.compress(plain), ["Content-Encoding: gzip"]) if is_compressed else (plain, [])
    with hostile(answer("200 OK", body, *headers)) as server:
        with session(Limits(max_bytes=8 * MIB)) as http:
            assert len(http.get(server.url).content) == len(plain)
        with session(Limits(max_bytes=8 * MIB - 1)) as http, pytest.raises(ResponseTooLargeError, match="max-response"):
            http.get(server.url)


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0", b'{"":0}'])
def test_an_answer_of_too_many_small_values_is_refused_before_it_is_parsed(value: bytes) -> None:
    body = b"[" + b",".join([value] * (MIB // 2 + 1)) + b"]"
    with hostile(answer("200 OK", body)) as server:
        with session(Limits(max_bytes=32 * MIB)) as http:
            assert http.get(server.url).content == body
        with session(Limits(max_bytes=8 * MIB)) as http, pytest.raises(ResponseTooLargeError, match="524288 values"):
            http.get(server.url)


def test_of_an_error_the_beginning_is_read() -> None:
    with hostile(answer("500 No", b"x" * MIB)) as server, session(Limits()) as http:
        response = http.get(server.url)

    assert (response.status_code, response.content) == (500, b"x" * 2**18)


def test_a_large_answer_waits_for_the_memory_that_others_have() -> None:
    shares = AnswerMemory(total=3, per_host=2)
    ends_s = time.monotonic() + 600
    with shares.share("a", 2, ends_s=ends_s):
        with pytest.raises(MemoryShareError), shares.share("a", 1, ends_s=time.monotonic()):
            pass
        with shares.share("b", 1, ends_s=ends_s):
            with pytest.raises(MemoryShareError), shares.share("c", 1, ends_s=time.monotonic()):
                pass
            waits = threading.Event()
            others = threading.Thread(target=lambda: _enter(shares, ends_s, waits))
            others.start()
            assert not waits.is_set()
        others.join(timeout=60)
    assert waits.is_set()


def _enter(shares: AnswerMemory, ends_s: float, entered: threading.Event) -> None:
    with shares.share("c", 1, ends_s=ends_s):
        entered.set()


def test_what_was_taken_of_the_memory_is_given_back_whatever_becomes_of_the_answer() -> None:
    limits = Limits(max_bytes=2 * MIB)
    with hostile(answer("200 OK", b" " * (2 * MIB), "Connection: close")) as server, session(limits) as http:
        for _ in range(4):
            http.get(server.url)
    with hostile(answer("200 OK", b" " * (3 * MIB), "Connection: close")) as server, session(limits) as http:
        for _ in range(4):
            with pytest.raises(ResponseTooLargeError):
                http.get(server.url)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "100.100.100.200",
        "0.0.0.0",
        "::",
    ],
)
def test_addresses_of_metadata_services_are_denied(address: str) -> None:
    assert is_denied(address, DENIED)


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "2001:db8::1", "fd00::1", "100.100.100.201"])
def test_addresses_where_an_openstack_may_be_are_not_denied(address: str) -> None:
    assert not is_denied(address, DENIED)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "127.1", "[::ffff:127.0.0.1]"])
def test_no_connection_is_made_to_a_denied_network_however_the_host_is_written(host: str) -> None:
    limits = Limits(denied=(ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")))
    with hostile(answer("200 OK", b"secret")) as server, session(limits) as http:
        port = server.url.rstrip("/").rpartition(":")[2]
        with pytest.raises(requests.exceptions.ConnectionError) as caught:
            http.post(f"http://{host}:{port}/")

    assert server.connections == []
    assert was_never_sent(caught.value)
    assert "denied" in str(caught.value)


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = socket.getaddrinfo

    def rebinding(host: str, *args: object, **kwargs: object) -> object:
        asked.append(host)
        is_second = asked.count("cloud.example") > 1
        return real("127.0.0.1" if is_second else "127.0.0.2", *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    limits = Limits(denied=(ipaddress.ip_network("127.0.0.1/32"),))
    with hostile(answer("200 OK", b"secret")) as server, session(limits) as http:
        port = server.url.rstrip("/").rpartition(":")[2]
        with pytest.raises(requests.exceptions.ConnectionError):
            http.get(f"http://cloud.example:{port}/")

    assert asked.count("cloud.example") == 1
    assert server.connections == []
