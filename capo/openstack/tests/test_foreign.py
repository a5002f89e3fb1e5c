"""Error messages for answers that no service wrote: over real sockets, with a Keystone that a tenant runs."""

from __future__ import annotations

import contextlib
import datetime
import gc
import io
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import requests
import yaml

from capo import logs
from capo.errors import AmbiguousAnswerError, CapoError, CloudUnavailableError, IdentityError, NotAuthorizedError
from capo.openstack import foreign, identity
from capo.openstack.auth_backoff import AuthBackoff
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.tests.builders import FakeClock

MARK: Final = "hunter2zyx"
HIDDEN: Final = "abc123"
SERVICES: Final = ("compute", "network", "volume", "load-balancer", "image")
Raw = Callable[[bytes], bytes]
# The HTTP client leaves the socket of an unreadable answer to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Peer:
    """Answers each request with bytes; one connection each."""

    def __init__(self, answer: Raw) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(60)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                request = self._read(connection)
                self.asked.append(request.split(b"\r\n", 1)[0].decode())
                connection.sendall(self.answer(request))

    def _read(self, connection: socket.socket) -> bytes:
        found = b""
        while b"\r\n\r\n" not in found and (more := connection.recv(65536)):
            found += more
        head, _, body = found.partition(b"\r\n\r\n")
        sizes = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        size = int(sizes[0].split(b":")[1]) if sizes else 0
        while len(body) < size and (more := connection.recv(65536)):
            body += more
        return head + b"\r\n\r\n" + body


def http(status: int, body: Any, *headers: str) -> bytes:
    raw = (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = (f"HTTP/1.1 {status} {MARK}", f"Content-Length: {len(raw)}", "Connection: close", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


def token(catalog: Any, **more: Any) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    times = {
        name: (now + datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        for name, hours in (("issued_at", 0), ("expires_at", 1))
    }
    named = {"id": "1", "name": "n", "domain": {"id": "d", "name": "d"}}
    fields = {"methods": ["password"], **times, "user": named, "project": named, "roles": [], "catalog": catalog}
    return http(201, {"token": {**fields, **more}}, "X-Subject-Token: t", "Content-Type: application/json")


def catalog(url: str) -> list[dict[str, Any]]:
    types = ("compute", "network", "image", "block-storage", "load-balancer")
    end_point = {"id": "e", "interface": "public", "region_id": "R", "region": "R", "url": url}
    return [{"type": type_, "name": type_, "id": type_, "endpoints": [end_point]} for type_ in types]


@pytest.fixture
def clouds() -> Iterator[Clouds]:
    made = Clouds(FakeClock(), lambda _key: None)
    yield made
    for cloud in made._clouds.values():
        cloud._session.session.close()
    made.close()
    gc.collect()


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer(lambda _request: b"")
    yield made
    made.close()


@pytest.fixture
def keystone(peer: Peer) -> Iterator[Peer]:
    made = Peer(lambda _request: token(catalog(peer.url)))
    yield made
    made.close()


def opened(clouds: Clouds, auth_url: str) -> Cloud:
    auth = {"auth_url": auth_url, "username": "u", "password": "p", "project_name": "p", "user_domain_name": "d"}
    text = yaml.safe_dump({"clouds": {"one": {"auth": {**auth, "project_domain_name": "d"}}}})
    return clouds.get(identity.parse(text.encode(), "one"))


@contextlib.contextmanager
def logged(verbosity: int) -> Iterator[io.StringIO]:
    root, stream = logging.getLogger(), io.StringIO()
    before = root.handlers[:], root.level
    logs.set_up(verbosity_level=verbosity, stream=stream)
    try:
        yield stream
    finally:
        root.handlers[:], root.level = before
        logging.captureWarnings(False)


CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
ANSWERS: dict[str, bytes] = {
    "a banner": f"SSH-2.0-{MARK}\r\n".encode(),
    "another protocol": f"-ERR {MARK}\r\n$5\r\n".encode(),
    "a status that is none": f"HTTP/1.1 {MARK} OK\r\n\r\n".encode(),
    "a header that is none": f"HTTP/1.1 500 OK\r\n{MARK}\r\nContent-Length: 0\r\n\r\n".encode(),
    "a chunk that is none": f"{CHUNKED}{MARK}\r\n".encode(),
    "half a chunk": f"{CHUNKED}ff\r\n{MARK}".encode(),
    "no gzip": http(200, MARK, "Content-Encoding: gzip"),
    "half a body": f"HTTP/1.1 200 OK\r\nContent-Length: 999\r\nConnection: close\r\n\r\n{MARK}".encode(),
    "two lengths": f"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\nConnection: close\r\n\r\n{MARK}".encode(),
    "nothing": b"",
    "a redirection": http(302, MARK, f"Location: http://127.0.0.1:1/{MARK}"),
    "one to nowhere": http(307, MARK),
    "an unfinished document": http(200, f'{{"servers": ["{MARK}'),
    "another encoding": http(200, f'{{"{MARK}": 1}}'.encode("utf-16").decode("latin-1")),
    "a deep document": http(200, '{"networks":' * 50_000),
    "a large number": http(200, "9" * 5000),
    "credentials": http(200, {"Code": "Success", "AccessKeyId": MARK, "SecretAccessKey": MARK}),
    "a link that is none": http(200, {"networks": [{"id": "1"}], "networks_links": [{"rel": "next", "href": "//["}]}),
    "links that are none": http(200, {"networks": [{"id": "1"}], "networks_links": MARK}),
    "a refusal": http(403, {"message": MARK}, f"Server: {MARK}", f"Via: {MARK}", f"X-OpenStack-Request-Id: {MARK}"),
    "a login": http(401, MARK, f'WWW-Authenticate: Basic realm="{MARK}"'),
    "a pause": http(503, MARK, f"Retry-After: {MARK}"),
}
CALLS: dict[str, Callable[[Cloud, str], Any]] = {
    "list": lambda cloud, service: cloud.list_all(service, "/networks", "networks"),
    "read": lambda cloud, service: cloud.get(service, "/networks/1")["network"],
    "create": lambda cloud, service: cloud.post(service, "/networks", json={"network": {}})["network"],
    "delete": lambda cloud, service: cloud.remove(service, "/networks/1"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_no_part_of_an_answer_is_quoted_in_an_error_or_in_the_default_log(
    clouds: Clouds, peer: Peer, keystone: Peer, answer: bytes
) -> None:
    peer.answer = lambda _request: answer

    with logged(0) as log:
        for service in SERVICES:
            for call in CALLS.values():
                cloud = opened(clouds, f"{keystone.url}/v3")
                cloud._refusals = AuthBackoff(cloud.clock.now)
                with contextlib.suppress(CapoError):
                    call(cloud, service)
                    continue
                with pytest.raises(CapoError) as raised:
                    call(cloud, service)
                assert MARK not in raised.value.sentence
                assert len(raised.value.sentence) < 700

    assert MARK not in log.getvalue()


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("path", ["/v3", "/identity", ""])
def test_no_part_of_what_answers_at_auth_url_is_quoted(
    clouds: Clouds, keystone: Peer, answer: bytes, path: str
) -> None:
    keystone.answer = lambda _request: answer
    cloud = opened(clouds, f"{keystone.url}{path}")

    with logged(0) as log, pytest.raises(CapoError) as raised:
        cloud.authenticate()

    assert MARK not in raised.value.sentence
    assert MARK not in log.getvalue()


def changed(**fields: Any) -> dict[str, Any]:
    return {**catalog("http://127.0.0.1:1")[0], **fields}


UNREADABLE: dict[str, bytes] = {
    "no token": http(201, MARK),
    "a text": http(201, f'"token {MARK}"', "X-Subject-Token: t"),
    "a token that is a text": http(201, {"token": MARK}, "X-Subject-Token: t"),
    "a token without a header": http(201, {"token": {}}),
    "times that are none": token([], expires_at=MARK, issued_at=MARK),
    "a project that is none": token([], project={"id": [MARK], "name": MARK}),
    "a project of many words": token([], project={"id": f"{MARK} {MARK}", "name": MARK}),
    "a catalogue that is a text": token(MARK),
    "services that are texts": token([MARK]),
    "end points that are texts": token([changed(endpoints=MARK)]),
    "an end point that is a list": token([changed(endpoints=[[MARK]])]),
    "a type that is a list": token([changed(type=[MARK])]),
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE)
def test_a_token_that_cannot_be_read_is_a_fault_of_the_credentials_and_not_quoted(
    clouds: Clouds, keystone: Peer, answer: bytes
) -> None:
    keystone.answer = lambda _request: answer
    cloud = opened(clouds, f"{keystone.url}/v3")

    with logged(0) as log, pytest.raises((IdentityError, CloudUnavailableError)) as raised:
        cloud.get("compute", "/servers/detail")

    assert MARK not in raised.value.sentence
    assert MARK not in log.getvalue()


@pytest.mark.parametrize(
    "url",
    [
        pytest.param(f"http://127.0.0.1:1/latest/{MARK}?x=", id="query"),
        pytest.param(f"http://127.0.0.1:1/latest/{MARK}#", id="fragment"),
        pytest.param(f"http://user:{MARK}@127.0.0.1:1/", id="password"),
        pytest.param(f"file:///etc/{MARK}", id="scheme"),
        pytest.param(f"http://[{MARK}", id="no host"),
        pytest.param(f"http://127.0.0.1:{MARK}/", id="no port"),
        pytest.param(f"http://{MARK}{'x' * 300}/", id="a host of 300 letters"),
        pytest.param([MARK], id="a list"),
        pytest.param({"a": MARK}, id="a document"),
    ],
)
def test_an_end_point_that_no_path_can_be_put_behind_is_not_asked(clouds: Clouds, keystone: Peer, url: Any) -> None:
    keystone.answer = lambda _request: token(catalog(url))
    cloud = opened(clouds, f"{keystone.url}/v3")

    with (
        logged(0) as log,
        pytest.raises(IdentityError, match=r"end point of the compute|catalogue of the") as raised,
    ):
        cloud.get("compute", "/servers/detail")

    assert MARK not in raised.value.sentence
    assert MARK not in log.getvalue()


@pytest.mark.parametrize("status", [301, 302, 303, 305, 307, 308])
@pytest.mark.parametrize("call", ["list", "create"])
def test_a_redirection_is_not_followed(clouds: Clouds, peer: Peer, keystone: Peer, status: int, call: str) -> None:
    elsewhere = Peer(lambda _request: http(200, {"networks": []}))
    peer.answer = lambda _request: http(status, "", f"Location: {elsewhere.url}/{MARK}")

    with pytest.raises(IdentityError) as raised:
        CALLS[call](opened(clouds, f"{keystone.url}/v3"), "network")
    elsewhere.close()

    assert elsewhere.asked == []
    assert "Redirections are not followed" in raised.value.sentence
    assert MARK not in raised.value.sentence


def test_a_401_at_an_auth_url_without_a_version_ends_the_login(clouds: Clouds, keystone: Peer) -> None:
    keystone.answer = lambda _request: http(401, MARK)

    with pytest.raises(NotAuthorizedError):  # the SDK would wait for its own lock
        opened(clouds, keystone.url).authenticate()

    assert len(keystone.asked) == 1


def test_keystones_redirection_is_not_followed_either(clouds: Clouds, keystone: Peer) -> None:
    elsewhere = Peer(lambda _request: token([]))
    keystone.answer = lambda _request: http(307, "", f"Location: {elsewhere.url}/{MARK}")

    with pytest.raises(IdentityError, match="HTTP 307"):
        opened(clouds, f"{keystone.url}/v3").authenticate()
    elsewhere.close()

    assert elsewhere.asked == []


def test_who_runs_the_manager_sees_the_beginning_of_a_foreign_answer_in_the_log(
    clouds: Clouds, peer: Peer, keystone: Peer
) -> None:
    page = f"<html>\n<b>{MARK}</b>\n" + json.dumps({"password": HIDDEN}) + "x" * 5000
    peer.answer = lambda _request: http(502, page, "Content-Type: text/html")

    with logged(4) as log, pytest.raises(CloudUnavailableError) as raised:
        opened(clouds, f"{keystone.url}/v3").get("compute", "/servers/detail")

    (line,) = (line for line in log.getvalue().splitlines() if "is not the service's own" in line)
    assert MARK in line
    assert HIDDEN not in line
    assert len(line) < 1000
    assert raised.value.message == (
        f"{peer.url} answered HTTP 502 in a form that is not the compute service's own (text/html, {len(page)} bytes)"
    )


@pytest.mark.parametrize(
    ("call", "answer", "kind", "words"),
    [
        pytest.param("list", b"", CloudUnavailableError, "the connection was closed without an answer", id="read"),
        pytest.param("create", b"", AmbiguousAnswerError, "the connection was closed without an answer", id="write"),
        pytest.param("list", b"SSH-2.0-x\r\n", CloudUnavailableError, "does not speak HTTP", id="another protocol"),
        pytest.param("list", http(200, MARK, "Content-Encoding: gzip"), CloudUnavailableError, "decoded", id="no gzip"),
    ],
)
def test_why_a_call_failed_is_told_in_words_of_ours(
    clouds: Clouds, peer: Peer, keystone: Peer, call: str, answer: bytes, kind: type[CapoError], words: str
) -> None:
    peer.answer = lambda _request: answer

    with pytest.raises(kind, match=words) as raised:
        CALLS[call](opened(clouds, f"{keystone.url}/v3"), "network")

    assert MARK not in raised.value.message
    assert raised.value.message.endswith((f"({peer.url})", "decoded"))


def test_an_address_where_nobody_listens_is_told_with_the_systems_reason(clouds: Clouds, keystone: Peer) -> None:
    keystone.answer = lambda _request: token(catalog("http://127.0.0.1:1"))

    with pytest.raises(CloudUnavailableError) as raised:
        CALLS["create"](opened(clouds, f"{keystone.url}/v3"), "network")

    assert raised.value.message == "network: no connection: Connection refused (http://127.0.0.1:1)"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("text/html; charset=utf-8", "text/html, 3 bytes"),
        ("APPLICATION/JSON", "application/json, 3 bytes"),
        (f"text/{MARK}", "another content type, 3 bytes"),
        ("", "no content type, 3 bytes"),
    ],
)
def test_of_a_content_type_only_a_known_one_is_named(given: str, shown: str) -> None:
    answer = requests.Response()
    answer._content = b"abc"
    answer.headers["Content-Type"] = given

    assert foreign.kind(answer) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"https://user:{HIDDEN}@nova.example:8774/v2.1/servers?x=y#z", "https://nova.example:8774"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("http://a b/", "an end point that is no URL"),
        ("gopher://nova/", "an end point that is no URL"),
        ("http://[", "an end point that is no URL"),
        (f"http://{'x' * 300}/", "an end point that is no URL"),
    ],
)
def test_of_an_end_point_scheme_host_and_port_are_shown(url: str, shown: str) -> None:
    assert foreign.origin(url) == shown
