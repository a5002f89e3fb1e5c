from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from capo.local import pki
from capo.local.apiclient import Api
from capo.local.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CORE = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
CORE["resources"].append({"name": "namespaces", "kind": "Namespace", "namespaced": False})


class FakeServer:
    """An HTTP server that answers each path from a list of answers, and repeats the last one."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, Any]]] = defaultdict(lambda: [(404, {"message": "not here"})])
        self.requests: list[tuple[str, str]] = []
        self.patches: list[tuple[str, Any]] = []

    def answer(self, verb: str, path: str) -> tuple[int, Any]:
        self.requests.append((verb, path))
        answers = self.answers[path]
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def api(server: FakeServer, tmp_path: Path) -> Iterator[Api]:
    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.command == "PATCH":
                server.patches.append((str(self.headers["Content-Type"]), json.loads(sent)))
            status, body = server.answer(self.command, self.path.partition("?")[0])
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = respond  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    pki.create(tmp_path)
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    made = Api(f"http://127.0.0.1:{http.server_port}", pki=tmp_path)
    yield made
    made.close()
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def refuser(tmp_path: Path) -> Iterator[Api]:
    """Yield a client of a server over TLS that ends the first connection before its handshake."""
    pki.create(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")

    def serve() -> None:
        with listener.accept()[0] as refused:
            refused.recv(65536)
        with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        made = Api(f"https://127.0.0.1:{listener.getsockname()[1]}", pki=tmp_path)
        yield made
        made.close()
        thread.join(1)


def test_a_handshake_that_the_server_is_too_busy_for_is_repeated(refuser: Api) -> None:
    assert refuser.get("/api/v1/x") == {}


def config_map(**metadata: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", **metadata}}


def test_a_request_that_the_server_is_too_busy_for_is_repeated(api: Api, server: FakeServer) -> None:
    server.answers["/api/v1/x"] = [(429, {"message": "storage is (re)initializing"}), (200, {"kind": "X"})]

    assert api.get("/api/v1/x") == {"kind": "X"}


def test_a_refusal_carries_the_status_and_the_server_s_words(api: Api, server: FakeServer) -> None:
    server.answers["/api/v1/x"] = [(403, {"message": "you may not"})]

    with pytest.raises(ApiError, match="GET /api/v1/x: 403 you may not") as caught:
        api.get("/api/v1/x")

    assert caught.value.status == 403


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        pytest.param(config_map(namespace="mine"), "/api/v1/namespaces/mine/configmaps/one", id="namespaced"),
        pytest.param(config_map(), "/api/v1/namespaces/default/configmaps/one", id="without a namespace"),
        pytest.param({**config_map(), "kind": "Namespace"}, "/api/v1/namespaces/one", id="cluster-wide"),
    ],
)
def test_paths_come_from_what_the_server_serves(
    api: Api, server: FakeServer, manifest: dict[str, Any], path: str
) -> None:
    server.answers["/api/v1"] = [(200, CORE)]

    assert api.path_of(manifest) == path


def test_a_kind_that_is_not_served_is_an_error_with_its_name(api: Api) -> None:
    with pytest.raises(ApiError, match=r"no Sprocket in example\.com/v1"):
        api.path_of({"apiVersion": "example.com/v1", "kind": "Sprocket", "metadata": {"name": "one"}})


def test_namespaces_are_applied_before_what_lives_in_them(api: Api, server: FakeServer) -> None:
    server.answers["/api/v1"] = [(200, CORE)]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
    for path in ("/api/v1/namespaces/mine", "/api/v1/namespaces/mine/configmaps/one"):
        server.answers[path] = [(200, {})]

    api.apply([config_map(namespace="mine"), namespace])

    assert [path for verb, path in server.requests if verb == "PATCH"] == [
        "/api/v1/namespaces/mine",
        "/api/v1/namespaces/mine/configmaps/one",
    ]


def test_a_kind_is_applied_only_when_each_of_its_versions_is_served(api: Api, server: FakeServer) -> None:
    versions = [{"name": name, "served": name != "v0"} for name in ("v0", "v1", "v2")]
    spec = {"group": "toys.example", "names": {"kind": "Toy"}, "versions": versions}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "toys"}}
    kinds = [{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": False}]
    served = (200, {"resources": [{"name": "toys", "kind": "Toy", "namespaced": True}]})
    is_established = (200, {"status": {"conditions": [{"type": "Established", "status": "True"}]}})
    server.answers["/apis/apiextensions.k8s.io/v1"] = [(200, {"resources": kinds})]
    server.answers["/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys"] = [is_established]
    server.answers["/apis/toys.example/v1"] = [served]
    not_yet = (404, {"message": "not yet"})
    server.answers["/apis/toys.example/v2"] = [not_yet, (200, {"resources": []}), served]
    server.answers["/apis/toys.example/v1/toys"] = [(500, {"message": "nobody converts them"})]
    server.answers["/apis/toys.example/v2/toys"] = [
        not_yet,
        (429, {"message": "initializing"}),
        (200, {"items": [served]}),
    ]

    api.apply([{**crd, "spec": spec}])

    assert api.path_of({"apiVersion": "toys.example/v2", "kind": "Toy", "metadata": {"name": "a"}}).endswith("toys/a")
    assert server.requests.count(("GET", "/apis/toys.example/v2")) == 4
    assert server.requests.count(("GET", "/apis/toys.example/v2/toys")) == 3


def test_a_right_is_waited_for_until_the_api_server_knows_of_it(api: Api, server: FakeServer) -> None:
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    server.answers[reviews] = [(201, {"status": {"allowed": allowed}}) for allowed in (False, False, True)]

    api.wait_allowed("somebody", "get", "", "secrets", namespace="default")

    assert server.requests == [("POST", reviews)] * 3


def test_namespaces_that_are_being_deleted_are_waited_for(api: Api, server: FakeServer) -> None:
    stays, goes = ({"metadata": {"name": "stays"}}, {"metadata": {"name": "goes", "deletionTimestamp": "now"}})
    server.answers["/api/v1/namespaces"] = [
        (200, {"items": items}) for items in ([stays, goes], [stays, goes], [stays])
    ]

    api.wait_namespaces_deleted()

    assert server.requests == [("GET", "/api/v1/namespaces")] * 3


def test_an_object_is_found_or_known_to_be_absent(api: Api, server: FakeServer) -> None:
    server.answers["/api/v1/namespaces/one"] = [(200, {"kind": "Namespace"})]

    assert api.find("/api/v1/namespaces/one") == {"kind": "Namespace"}
    assert api.find("/api/v1/namespaces/gone") is None


def test_what_cannot_be_read_is_not_taken_for_absent(api: Api, server: FakeServer) -> None:
    server.answers["/api/v1/namespaces/one"] = [(403, {"message": "you may not"})]

    with pytest.raises(ApiError, match="403 you may not"):
        api.find("/api/v1/namespaces/one")


def test_a_patch_is_sent_as_a_merge_patch(api: Api, server: FakeServer) -> None:
    server.answers["/api/v1/namespaces/one"] = [(200, {"kind": "Namespace"})]

    assert api.patch("/api/v1/namespaces/one", {"metadata": {"labels": {"a": "b"}}}) == {"kind": "Namespace"}
    assert server.patches == [("application/merge-patch+json", {"metadata": {"labels": {"a": "b"}}})]


def test_deleting_what_is_gone_is_done(api: Api, server: FakeServer) -> None:
    api.delete("/api/v1/namespaces/gone")

    assert server.requests == [("DELETE", "/api/v1/namespaces/gone")]


def test_other_trouble_with_a_deletion_is_told(api: Api, server: FakeServer) -> None:
    server.answers["/api/v1/namespaces/kept"] = [(409, {"message": "conflict"})]

    with pytest.raises(ApiError, match="conflict"):
        api.delete("/api/v1/namespaces/kept")


def test_an_object_that_somebody_wrote_meanwhile_is_read_and_changed_anew(server: FakeServer, api: Api) -> None:
    path = "/api/v1/namespaces/one"
    server.answers[path] = [(200, {"v": 1}), (409, {"message": "modified"}), (200, {"v": 2}), (200, {"v": 3})]
    seen = []

    def note(obj: dict[str, Any]) -> dict[str, Any]:
        seen.append(obj["v"])
        return obj

    changed = api.change(path, note)

    assert seen == [1, 2]
    assert changed == {"v": 3}
    assert [verb for verb, _ in server.requests] == ["GET", "PUT", "GET", "PUT"]


def test_another_refusal_of_a_change_is_an_error(server: FakeServer, api: Api) -> None:
    server.answers["/api/v1/namespaces/one"] = [(200, {}), (422, {"message": "no"})]

    with pytest.raises(ApiError, match="422 no"):
        api.change("/api/v1/namespaces/one", lambda obj: obj)
