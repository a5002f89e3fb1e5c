"""Transport to the API server: rotated TLS, proxies, limits, and nothing sent twice."""

from __future__ import annotations

import gc
import http.server
import logging
import shutil
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from capo.engine.tests.builders import eventually
from capo.engine.watch import Watcher
from capo.kube import proxies, transport
from capo.kube.client import Kube
from capo.kube.connection import Connection
from capo.kube.credentials import Credential, Credentials, bearer
from capo.kube.errors import Denied, KubeError, NotLeading
from capo.kube.kinds import OPENSTACK_SERVER
from capo.kube.tests import tunnel
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.kube.tls import Pem, Tls
from capo.kube.transport import Timeouts
from capo.local import pki

SERVER = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"flavor": "m1"}}


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folders = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    for folder in folders:
        pki.create(folder)
    return folders


def server_tls(folder: Path, *, clients_of: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    if clients_of:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients_of / "ca.crt")
    return context


@contextmanager
def https(folder: Path, *, clients_of: Path | None = None) -> Iterator[str]:
    """Run an empty API server and yield its URL."""
    with answering(not_found, tls=server_tls(folder, clients_of=clients_of)) as (kube, _):
        yield kube.connection.server


def not_found(handler: Any) -> None:
    handler.send_response(404)
    handler.send_header("Content-Length", "2")
    handler.end_headers()
    handler.wfile.write(b"{}")


def files(folder: Path, name: str) -> tuple[Pem, Pem]:
    return Pem(folder / f"{name}.crt"), Pem(folder / f"{name}.key")


def texts(folder: Path, name: str) -> tuple[str, str]:
    return (folder / f"{name}.crt").read_text(), (folder / f"{name}.key").read_text()


def is_answered(kube: Kube) -> bool:
    try:
        return kube.get(OPENSTACK_SERVER, "default", "nothing") is None
    except KubeError:
        return False


def is_watched(api: FakeApiServer, connection: Connection, at_the_end: Callable[[], object] = lambda: None) -> bool:
    api.put(OPENSTACK_SERVER, SERVER)
    seen: list[str] = []
    feed = Watcher(connection, lambda _kind, _type, obj: seen.append(obj["metadata"]["name"]), restart_s=0.05)
    feed.watch([OPENSTACK_SERVER])
    try:
        eventually(lambda: seen == ["s"])
        api.put(OPENSTACK_SERVER, {**SERVER, "metadata": {**SERVER["metadata"], "name": "later"}})
        eventually(lambda: seen == ["s", "later"])
        at_the_end()
    finally:
        feed.stop(60)
    return True


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_a_server_of_another_authority_or_name_is_not_talked_to(authorities: tuple[Path, Path]) -> None:
    one, two = authorities
    with https(one) as url:
        trusting = Kube(Connection(url, tls=Tls(ca=Pem(one / "ca.crt"))))
        strict = Kube(Connection(url, tls=Tls(ca=Pem(two / "ca.crt"))))
        misnamed = Kube(Connection(url, tls=Tls(ca=Pem(one / "ca.crt"), server_name="elsewhere")))
        careless = Kube(Connection(url, tls=Tls(ca=Pem(two / "ca.crt"), is_verified=False)))

        assert is_answered(trusting)
        assert is_answered(careless)
        for kube in (strict, misnamed):
            with pytest.raises(KubeError, match="certificate"):
                kube.get(OPENSTACK_SERVER, "default", "nothing")


def test_a_client_certificate_of_files_is_shown_and_read_again_when_it_is_rotated(
    authorities: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = authorities
    for name in ("admin.crt", "admin.key"):
        shutil.copy(two / name, tmp_path / name)
    with https(one, clients_of=one) as url:
        kube = Kube(Connection(url, tls=Tls(ca=Pem(one / "ca.crt"), certificate=files(tmp_path, "admin"))))
        before = is_answered(kube)
        shutil.copy(one / "admin.crt", tmp_path / "admin.crt")
        half = is_answered(kube)
        shutil.copy(one / "admin.key", tmp_path / "admin.key")

        assert (before, half, is_answered(kube)) == (False, False, True)


def test_the_authority_of_a_pod_is_read_again_when_it_is_rotated(
    authorities: tuple[Path, Path], tmp_path: Path
) -> None:
    one, two = authorities
    shutil.copy(one / "ca.crt", tmp_path / "ca.crt")
    with https(two) as url:
        kube = Kube(Connection(url, tls=Tls(ca=Pem(tmp_path / "ca.crt"))))
        assert not is_answered(kube)

        (tmp_path / "ca.crt").write_text((one / "ca.crt").read_text() + (two / "ca.crt").read_text())

        assert is_answered(kube)


def test_files_that_are_gone_for_a_moment_leave_the_connections(authorities: tuple[Path, Path], tmp_path: Path) -> None:
    one, _ = authorities
    shutil.copy(one / "ca.crt", tmp_path / "ca.crt")
    with https(one) as url:
        kube = Kube(Connection(url, tls=Tls(ca=Pem(tmp_path / "ca.crt"))))
        assert is_answered(kube)

        (tmp_path / "ca.crt").unlink()

        assert is_answered(kube)


def test_certificates_of_a_plugin_replace_each_other_on_new_connections(authorities: tuple[Path, Path]) -> None:
    one, two = authorities
    found = iter([Credential(certificate=texts(two, "admin")), Credential(certificate=texts(one, "admin"))])
    with https(one, clients_of=one) as url:
        credentials = Credentials(lambda: next(found))
        kube = Kube(Connection(url, tls=Tls(ca=Pem(one / "ca.crt")), credentials=credentials))
        assert not is_answered(kube)

        assert credentials.renew(credentials.current())

        assert is_answered(kube)


def test_watches_use_the_same_certificates_name_and_token(authorities: tuple[Path, Path]) -> None:
    one, _ = authorities
    with FakeApiServer(tls=server_tls(one, clients_of=one)).running() as api:
        api.token = "t"
        tls = Tls(ca=Pem(one / "ca.crt"), certificate=files(one, "admin"), server_name="kubernetes.default.svc")
        url = f"https://127.0.0.2:{api.port}"  # an address that is not in the certificate

        with tunnel.leading_to(api.port) as proxy:
            way = proxies.parse(proxy.url)
            connection = Connection(url, tls=tls, credentials=Credentials(lambda: bearer("t")), proxy=way)
            assert is_watched(api, connection)


def test_requests_and_watches_go_by_the_proxy_of_the_environment(
    authorities: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capo.kube import config

    one, _ = authorities
    for name in ("HTTP_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with FakeApiServer(tls=server_tls(one)).running() as api, tunnel.leading_to(api.port) as proxy:
        url = "https://kubernetes.default.svc:6443"
        path = tmp_path / "kubeconfig"
        path.write_text(pki.kubeconfig(url, ca=pki.encoded(one / "ca.crt"), user={"token": "t"}))
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        connection = config.from_kubeconfig(str(path))

        assert is_answered(Kube(connection))
        requests = len(proxy.targets)
        assert is_watched(api, connection)

        assert requests == 1
        assert len(proxy.targets) > requests
        assert set(proxy.targets) == {"kubernetes.default.svc:6443"}
        assert set(proxy.logins) == {"Basic dXNlcjpzQGNyZXQ="}
        monkeypatch.setenv("NO_PROXY", ".svc")
        assert config.from_kubeconfig(str(path)).proxy is None


def test_a_connection_whose_end_the_server_does_not_confirm_is_closed_with_the_watches(
    authorities: tuple[Path, Path],
) -> None:
    one, _ = authorities
    with FakeApiServer(tls=server_tls(one)).running() as api, tunnel.leading_to(api.port) as proxy:
        tls = Tls(ca=Pem(one / "ca.crt"))
        connection = Connection(f"https://127.0.0.1:{api.port}", tls=tls, proxy=proxies.parse(proxy.url))

        assert is_watched(api, connection, at_the_end=proxy.held.set)
        gc.collect()  # a connection that is open makes the test fail, by pytest's hook


class Requests(list[str]):
    """Received requests; ``closed`` is released when the server has closed a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = threading.Semaphore(0)


@contextmanager
def answering(answer: Callable[[Any], None], *, tls: ssl.SSLContext | None = None) -> Iterator[tuple[Kube, Requests]]:
    """Run a server with custom answers; yield a client of it and the received requests."""
    requests = Requests()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            requests.append(f"{self.command} {self.path.partition('?')[0]}")
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        do_GET = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            """Disable logging."""

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def shutdown_request(self, request: Any) -> None:
            super().shutdown_request(request)
            requests.closed.release()

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    connection = Connection(f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}")
    try:
        yield Kube(connection, timeouts=Timeouts(5, 5, 0.3)), requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write(kube: Kube) -> None:
    kube.create(OPENSTACK_SERVER, SERVER)


def read(kube: Kube) -> None:
    kube.get(OPENSTACK_SERVER, "default", "s")


@pytest.mark.parametrize("call", [read, write])
def test_a_connection_that_ends_before_the_answer_is_an_error_and_nothing_is_sent_again(
    call: Callable[[Kube], None],
) -> None:
    def end(handler: Any) -> None:
        handler.close_connection = True
        handler.connection.close()

    with answering(end) as (kube, requests):
        with pytest.raises(KubeError, match="no answer") as caught:
            call(kube)

        assert caught.value.status is None
        assert len(requests) == 1


def test_a_kept_connection_that_the_server_closed_is_replaced() -> None:
    def answer_and_close(handler: Any) -> None:
        not_found(handler)
        handler.close_connection = True  # without announcing it

    with answering(answer_and_close) as (kube, requests):
        for _ in range(3):
            assert kube.get(OPENSTACK_SERVER, "default", "s") is None
            assert requests.closed.acquire(timeout=60)

        assert len(requests) == 3


@pytest.mark.parametrize("call", [read, write])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(call: Callable[[Kube], None], status: int) -> None:
    def redirect(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("Location", "/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with answering(redirect) as (kube, requests):
        with pytest.raises(KubeError) as caught:
            call(kube)

        assert caught.value.status == status
        assert len(requests) == 1


@pytest.mark.parametrize(("status", "is_read"), [(200, False), (500, True)])
def test_a_body_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch, status: int, is_read: bool) -> None:
    monkeypatch.setattr(transport, "MAX_ANSWER", 1_000_000)

    def pour(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            return

    with answering(pour) as (kube, _):
        kube._transport._timeouts = Timeouts(5, 5, 60)
        with pytest.raises(KubeError, match="500" if is_read else "larger") as caught:
            read(kube)

    assert len(str(caught.value)) < 1000


def test_an_answer_that_drips_ends_in_time() -> None:
    ended = threading.Event()

    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not ended.wait(0.01):
            try:
                handler.wfile.write(b" ")
            except OSError:
                return

    with answering(drip) as (kube, _), pytest.raises(KubeError, match="in time"):
        read(kube)
    ended.set()


def test_the_lease_is_checked_after_the_credential_was_fetched_and_before_each_sending() -> None:
    api = FakeApiServer()
    order: list[str] = []
    with api.running():
        api.token = "never"

        def fetch() -> Credential:
            order.append("fetch")
            return bearer(f"token-{len(order)}")

        kube = Kube(Connection(api.url, credentials=Credentials(fetch)), fence=lambda: order.append("fence"))
        with pytest.raises(Denied):
            write(kube)
        sent = len(api.requests)

        def lost() -> None:
            raise NotLeading("lost")

        kube.fence = lost
        with pytest.raises(NotLeading):
            write(kube)

        assert order[:4] == ["fetch", "fence", "fetch", "fence"]
        assert len(api.requests) == sent


def test_no_log_shows_a_token(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    api = FakeApiServer()
    with api.running():
        api.token = "s3cret"
        with caplog.at_level(logging.DEBUG):
            kube = Kube(Connection(api.url, credentials=Credentials(lambda: bearer("s3cret"))))
            write(kube)
            kube.list(OPENSTACK_SERVER)

    assert "s3cret" not in caplog.text + "".join(capsys.readouterr()) + repr(kube.connection)
