"""Which certificates a session trusts: a real HTTPS server with a certificate of its own authority."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from keystoneauth1 import exceptions as sdk
from keystoneauth1.session import Session

from capo.errors import AmbiguousAnswerError, IdentityError
from capo.openstack import faults, metrics, transport
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.transport import HttpSessions

NOW = datetime.datetime.now(tz=datetime.UTC)


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - datetime.timedelta(hours=1))
        .not_valid_after(NOW + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=name == issuer, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority, critical=False)
        .add_extension(address, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


@dataclass(frozen=True)
class TlsServer:
    url: str
    bundle: str
    other_bundle: str
    cookies: list[str | None]
    context: ssl.SSLContext


class Handler(http.server.BaseHTTPRequestHandler):
    seen: list[str | None]

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Cookie"))
        self.send_response(200)
        self.send_header("Set-Cookie", "a=b")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Disable logging."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    authority, other, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    pem = serialization.Encoding.PEM
    file: Path = tmp_path_factory.mktemp("tls") / "server.pem"
    private = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(private + certificate("site", own, "authority", authority).public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    seen: list[str | None] = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("H", (Handler,), {"seen": seen}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    bundle, other_bundle = (
        certificate("authority", key, "authority", key).public_bytes(pem).decode() for key in (authority, other)
    )
    yield TlsServer(f"https://127.0.0.1:{server.server_address[1]}/", bundle, other_bundle, seen, context)
    server.shutdown()
    server.server_close()
    thread.join()


def credentials(bundle: str | None = None, *, verify: str = "true") -> Credentials:
    return Credentials(f'{{"verify": {verify}}}', bundle, None)


@pytest.fixture
def sessions() -> HttpSessions:
    return HttpSessions(Limits())


def test_a_server_of_the_bundles_authority_is_trusted(site: TlsServer, sessions: HttpSessions) -> None:
    with sessions.of(credentials(site.bundle)) as session:
        assert session.get(site.url).status_code == 200


@pytest.mark.parametrize("which", ["another authority", "the system"])
def test_no_other_authority_is_trusted(site: TlsServer, sessions: HttpSessions, which: str) -> None:
    bundle = site.other_bundle if which == "another authority" else None

    with sessions.of(credentials(bundle)) as session, pytest.raises(requests.exceptions.SSLError):
        session.get(site.url)


def test_verification_that_is_switched_off_trusts_everybody_without_a_warning(
    site: TlsServer, sessions: HttpSessions
) -> None:
    with sessions.of(credentials(verify="false")) as session:
        assert session.get(site.url).status_code == 200


def test_a_file_of_the_operator_replaces_the_systems_authorities(site: TlsServer, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(site.bundle)

    with HttpSessions(Limits(), str(file)).of(credentials()) as session:
        assert session.get(site.url).status_code == 200


def test_sessions_are_shared_by_those_who_trust_the_same(site: TlsServer, sessions: HttpSessions) -> None:
    first = sessions.of(credentials(site.bundle))

    assert sessions.of(Credentials('{"verify": true, "other": 1}', site.bundle, "R")) is first
    assert sessions.of(credentials(site.other_bundle)) is not first
    assert sessions.of(credentials(site.bundle, verify="false")) is not first


def test_cookies_are_not_kept(site: TlsServer, sessions: HttpSessions) -> None:
    with sessions.of(credentials(site.bundle)) as session:
        session.get(site.url)
        session.get(site.url)

    assert set(site.cookies) == {None}


def test_the_environment_is_not_consulted(
    site: TlsServer, sessions: HttpSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nonexistent")

    with sessions.of(credentials(site.bundle)) as session:
        assert session.get(site.url).status_code == 200


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("GET", "http://nova/v2.1/servers/detail?tags=x", "server_list"),
        ("GET", "http://nova/v2.1/servers/1", "server_get"),
        ("POST", "http://nova/v2.1/servers", "server_create"),
        ("DELETE", "http://x/load-balancer/v2/lbaas/loadbalancers/1?cascade=true", "loadbalancer_delete"),
        ("PUT", "http://x/v2/lbaas/pools/1/members", "member_update"),
        ("POST", "http://x/v2.0/ports", "port_create"),
        ("PUT", "http://x/v2.0/ports/1/tags", "port_update"),
        ("PUT", "http://x/v2.0/routers/1/add_router_interface", "router_update"),
        ("GET", "http://x/v3/0123456789abcdef0123456789abcdef/volumes/detail", "volume_list"),
        ("POST", "http://x/v3/auth/tokens", "token_create"),
        ("GET", "http://x/v3", "version_get"),
        ("GET", "http://x/", "version_get"),
        ("GET", "http://x/v2/schemas/1234", "other_get"),
    ],
)
def test_requests_are_named_for_resource_and_verb_without_ids(method: str, url: str, expected: str) -> None:
    assert metrics.request_name(method, url) == expected


@pytest.mark.parametrize(
    ("method", "status", "expected"),
    [("GET", 404, False), ("DELETE", 404, False), ("POST", 404, True), ("GET", 500, True), ("GET", 200, False)],
)
def test_what_may_be_absent_is_no_error(method: str, status: int, expected: bool) -> None:
    assert metrics.is_failure(method, status) is expected


def test_writes_may_take_longer_than_reads() -> None:
    assert Limits().for_method("GET") == (5.0, 30.0)
    assert Limits().for_method("POST") == (5.0, 60.0)


class Breaking:
    """A TLS peer that receives requests and closes the connection without an answer."""

    def __init__(self, site: TlsServer, how: str) -> None:
        self.received: list[bytes] = []
        self._how, self._context = how, site.context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}/"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._thread.join(60)
        self._socket.close()

    def _serve(self) -> None:
        plain, _ = self._socket.accept()
        secured = self._context.wrap_socket(plain, server_side=True)
        self.received.append(secured.recv(65536))
        with socket.socket(fileno=secured.detach()) as raw:
            if self._how == "fatal alert":
                raw.sendall(bytes([21, 3, 3, 0, 2, 2, 80]))
            elif self._how == "plain text":
                raw.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            elif self._how == "reset":
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("how", ["fatal alert", "plain text", "reset", "close"])
def test_tls_that_breaks_after_a_write_was_received_leaves_open_whether_it_took_effect(
    site: TlsServer, sessions: HttpSessions, how: str
) -> None:
    peer = Breaking(site, how)

    with sessions.of(credentials(site.bundle)) as session, pytest.raises(sdk.ClientException) as raised:
        Session(session=session).request(peer.url, "POST", json={}, authenticated=False)
    peer.close()

    assert peer.received
    found = faults.error_from_exception(raised.value, method="POST", service="network")
    assert type(found) is AmbiguousAnswerError


def test_a_write_to_a_peer_that_is_not_trusted_was_not_sent(site: TlsServer, sessions: HttpSessions) -> None:
    with sessions.of(credentials(site.other_bundle)) as session, pytest.raises(sdk.ClientException) as raised:
        Session(session=session).request(site.url, "POST", json={}, authenticated=False)

    assert type(faults.error_from_exception(raised.value, method="POST", service="network")) is IdentityError


@dataclass(frozen=True)
class Proxy:
    url: str
    tunnels: list[str]


@pytest.fixture
def proxy(site: TlsServer) -> Iterator[Proxy]:
    """Yield a counting proxy that forwards every request to the site."""
    tunnels: list[str] = []
    _, _, port = site.url.rstrip("/").rpartition(":")

    class Tunnel(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            tunnels.append(self.path)
            if "forbidden" in self.path:
                self.send_error(403)
                return
            with socket.create_connection(("127.0.0.1", int(port))) as service:
                self.send_response(200)
                self.end_headers()
                self._join(service)

        def _join(self, service: socket.socket) -> None:
            def carry(source: socket.socket, target: socket.socket) -> None:
                with contextlib.suppress(OSError):
                    while data := source.recv(65536):
                        target.sendall(data)
                    target.shutdown(socket.SHUT_WR)

            back = threading.Thread(target=carry, args=(service, self.connection), daemon=True)
            back.start()
            carry(self.connection, service)
            back.join()

        def do_GET(self) -> None:
            tunnels.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Disable logging."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tunnel)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield Proxy(f"http://user:s3cret@127.0.0.1:{server.server_port}", tunnels)
    server.shutdown()
    server.server_close()


@pytest.fixture
def behind(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> HttpSessions:
    """Return sessions of a machine behind the proxy."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    return HttpSessions(Limits(denied=(ipaddress.ip_network("169.254.0.0/16"),)), uses_proxies=True)


def test_calls_go_by_the_proxy_of_the_environment(behind: HttpSessions, proxy: Proxy, site: TlsServer) -> None:
    with behind.of(credentials(verify="false")) as session:
        assert session.get("https://keystone.example:5000/v3").status_code == 200
        assert session.get("http://keystone.example:5000/v3").status_code == 200

    assert proxy.tunnels == ["keystone.example:5000", "http://keystone.example:5000/v3"]


def test_behind_a_proxy_the_service_is_trusted_by_its_bundle_alone(
    behind: HttpSessions, proxy: Proxy, site: TlsServer
) -> None:
    with behind.of(credentials()) as session, pytest.raises(requests.exceptions.SSLError):
        session.get("https://10.1.1.1:5000/v3")
    with (
        behind.of(credentials(site.bundle)) as session,
        pytest.raises(requests.exceptions.SSLError, match="IP address mismatch"),
    ):
        session.get("https://10.1.1.1:5000/v3")  # the authority is trusted, and its certificate is for another address


@pytest.mark.parametrize("exempt", ["keystone.example", ".example", "*", "keystone.example:5000", "example"])
def test_what_no_proxy_names_is_reached_without(
    behind: HttpSessions, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, exempt: str
) -> None:
    monkeypatch.setenv("NO_PROXY", exempt)
    with behind.of(credentials()) as session, pytest.raises(requests.exceptions.ConnectionError):
        session.get("http://keystone.example:5000/v3")

    assert proxy.tunnels == []


@pytest.mark.parametrize("exempt", [".keystone.example", "keystone.example:443", "10.0.0.0/8"])
def test_what_no_proxy_does_not_name_goes_by_the_proxy(
    behind: HttpSessions, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, site: TlsServer, exempt: str
) -> None:
    monkeypatch.setenv("NO_PROXY", exempt)
    with behind.of(credentials(verify="false")) as session:
        assert session.get("https://keystone.example:5000/v3").status_code == 200

    assert proxy.tunnels == ["keystone.example:5000"]


@pytest.mark.parametrize(
    ("name", "expected"), [("HTTPS_PROXY", {"https": "http://p"}), ("ALL_PROXY", {}), ("HTTP_PROXY", {})]
)
def test_the_environment_names_the_proxy_of_a_scheme(
    behind: HttpSessions, monkeypatch: pytest.MonkeyPatch, name: str, expected: dict[str, str]
) -> None:
    for each in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(each)
    monkeypatch.setenv(name, "http://p")

    assert transport.proxies_of_environment("https://keystone.example:5000/v3") == expected


def test_this_machine_is_reached_without_a_proxy(behind: HttpSessions, proxy: Proxy, site: TlsServer) -> None:
    with behind.of(credentials(site.bundle)) as session:
        assert session.get(site.url).status_code == 200

    assert proxy.tunnels == []


def test_a_denied_address_is_denied_behind_a_proxy_as_well(behind: HttpSessions, proxy: Proxy) -> None:
    with behind.of(credentials()) as session, pytest.raises(requests.exceptions.ConnectionError) as caught:
        session.get("http://169.254.169.254/latest/meta-data")

    assert faults.was_never_sent(caught.value)
    assert proxy.tunnels == []


def test_a_write_that_a_proxy_does_not_let_through_was_not_sent(behind: HttpSessions) -> None:
    with behind.of(credentials()) as session, pytest.raises(requests.exceptions.ConnectionError) as caught:
        session.post("https://forbidden.example/v2.0/ports", json={})

    assert faults.was_never_sent(caught.value)
    assert "s3cret" not in str(caught.value)
