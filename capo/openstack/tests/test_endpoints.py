"""Destinations of calls: by the catalogue of the current token; a service's answer changes at most the path."""

from __future__ import annotations

import dataclasses
import http.server
import ipaddress
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from capo.errors import CapoError, CloudUnavailableError, IdentityError, NotFoundError
from capo.openstack import identity
from capo.openstack.cloud import CATALOGUE_S, Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.tests.builders import FakeClock
from capo.simulator.keystone.service import CATALOG, INTERFACES, service_id
from capo.simulator.simulator import Simulator

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def clouds(clock: FakeClock) -> Iterator[Clouds]:
    made = Clouds(clock, lambda _key: None)
    yield made
    made.close()


def credentials(simulator: Simulator, **more: str) -> Credentials:
    entry = yaml.safe_load(simulator.clouds_yaml.read_text())["clouds"]["sim"] | more
    return identity.parse(yaml.safe_dump({"clouds": {"c": entry}}).encode(), "c")


def move(simulator: Simulator, base: str) -> None:
    """Replace the address of all services in the catalogue, except that of the Identity service."""

    def write() -> None:
        table = simulator.cloud.table("identity", "endpoints")
        table.clear()
        for kind, _, path in CATALOG:
            for interface in INTERFACES:
                made = uuid.uuid4().hex
                table[made] = {
                    "id": made,
                    "interface": interface,
                    "region": "R",
                    "region_id": "R",
                    "service_id": service_id(kind),
                    "url": base + path.format(project_id="p"),
                    "enabled": True,
                }

    simulator.call(write)


def place(simulator: Simulator, kind: str, *, url: str) -> None:
    """Replace the URL of one service in the catalogue of region R."""
    move(simulator, simulator.url)

    def write() -> None:
        for endpoint in simulator.cloud.table("identity", "endpoints").values():
            if endpoint["service_id"] == service_id(kind):
                endpoint["url"] = url

    simulator.call(write)


def credentials_of_region(simulator: Simulator) -> Credentials:
    return credentials(simulator, region_name="R")


def requested(simulator: Simulator, cloud: Cloud, service: str, path: str) -> list[str]:
    """Return the requests of one read, without the login."""
    cloud.authenticate()
    simulator.call(simulator.cloud.counter.reset)
    cloud.get(service, path)
    return [f"{call['method']} {call['path']}" for call in simulator.call(simulator.cloud.counter.log)]


def networks(cloud: Cloud) -> int:
    return len(cloud.list_all("network", "/networks", "networks"))


def test_a_service_that_moved_is_found_after_a_connection_that_failed(
    simulator: Simulator, clouds: Clouds, clock: FakeClock
) -> None:
    move(simulator, NOBODY)
    cloud = clouds.get(credentials(simulator, region_name="R"))
    with pytest.raises(CloudUnavailableError):
        networks(cloud)
    move(simulator, simulator.url)

    clock.advance(CATALOGUE_S)
    with pytest.raises(CloudUnavailableError):
        networks(cloud)

    assert networks(cloud) > 0


def test_a_service_that_is_down_costs_one_login_a_minute(
    simulator: Simulator, clouds: Clouds, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    move(simulator, NOBODY)
    cloud = clouds.get(credentials(simulator, region_name="R"))
    asked: list[float] = []
    fetch = cloud._auth.get_auth_ref

    def fetched(session: Any) -> Any:
        asked.append(clock.now())
        return fetch(session)

    monkeypatch.setattr(cloud._auth, "get_auth_ref", fetched)

    for _ in range(10):
        with pytest.raises(CloudUnavailableError):
            networks(cloud)
        clock.advance(12.0)

    assert asked == [asked[0], asked[0] + 60.0]


def test_the_token_in_use_is_kept_while_the_identity_service_is_down_as_well(
    simulator: Simulator, clouds: Clouds, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = clouds.get(credentials(simulator))
    assert networks(cloud) > 0

    def refuse(_session: object) -> object:
        raise ValueError("down")

    monkeypatch.setattr(cloud._auth, "get_auth_ref", refuse)
    endpoints = cloud._catalogue()
    endpoints._found["compute"] = dataclasses.replace(endpoints.of("compute"), url=NOBODY)
    clock.advance(CATALOGUE_S)
    with pytest.raises(CloudUnavailableError):
        cloud.get("compute", "/servers/detail")

    assert networks(cloud) > 0


def test_end_points_are_those_of_the_newest_token(simulator: Simulator, clouds: Clouds) -> None:
    move(simulator, NOBODY)
    cloud = clouds.get(credentials(simulator, region_name="R"))
    with pytest.raises(CloudUnavailableError):
        networks(cloud)
    move(simulator, simulator.url)

    cloud._auth.invalidate()  # as when it expires, or is refused

    assert networks(cloud) > 0


@contextmanager
def redirecting(status: int, target: str) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Location", f"{target}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_DELETE = do_GET  # noqa: N815 - names that the base class looks for

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_of_a_service_is_not_followed(simulator: Simulator, clouds: Clouds, status: int) -> None:
    with redirecting(status, simulator.url) as address:
        move(simulator, address)
        cloud = clouds.get(credentials(simulator, region_name="R"))
        with pytest.raises(IdentityError, match=f"HTTP {status}"):
            networks(cloud)


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("path", ["/v3", "", "/identity"])
def test_a_redirect_of_the_identity_service_is_not_followed(
    simulator: Simulator, clouds: Clouds, status: int, path: str
) -> None:
    entry = yaml.safe_load(simulator.clouds_yaml.read_text())["clouds"]["sim"]
    with redirecting(status, simulator.url) as address:
        entry["auth"]["auth_url"] = f"{address}{path}"
        cloud = clouds.get(identity.parse(yaml.safe_dump({"clouds": {"c": entry}}).encode(), "c"))
        with pytest.raises(IdentityError, match=f"HTTP {status}|auth_url"):
            cloud.authenticate()


def test_an_end_point_in_a_denied_network_is_told_without_a_connection(simulator: Simulator, clock: FakeClock) -> None:
    limits = Limits(denied=(ipaddress.ip_network("127.0.0.2/32"),))
    clouds = Clouds(clock, lambda _key: None, limits=limits)
    move(simulator, "http://127.0.0.2:80")
    with pytest.raises(CloudUnavailableError, match="openstack-denied-networks"):
        networks(clouds.get(credentials(simulator, region_name="R")))
    clouds.close()


def test_an_answer_beyond_all_measure_is_an_error_that_names_the_setting(
    simulator: Simulator, clock: FakeClock
) -> None:
    clouds = Clouds(clock, lambda _key: None, limits=Limits(max_bytes=20_000))
    cloud = clouds.get(credentials(simulator))
    cloud.authenticate()
    for number in range(40):
        cloud.post("network", "/networks", json={"network": {"name": str(number), "description": "x" * 250}})
    with pytest.raises(CloudUnavailableError, match="openstack-max-response-size"):
        networks(cloud)
    clouds.close()


PROJECT = "{project}"
CATALOGUED = [
    ("network", "network", "/networks", "/network", ["GET /v2.0/networks"]),
    ("network", "network", "/networks", "/network/", ["GET /v2.0/networks"]),
    ("network", "network", "/networks", "/network/v2.0", ["GET /v2.0/networks"]),
    ("network", "network", "/networks", "/network/v2.0/", ["GET /v2.0/networks"]),
    ("load-balancer", "load-balancer", "/lbaas/pools", "/load-balancer", ["GET /v2.0/lbaas/pools"]),
    ("load-balancer", "load-balancer", "/lbaas/pools", "/load-balancer/v2", ["GET /v2/lbaas/pools"]),
    ("load-balancer", "load-balancer", "/lbaas/pools", "/load-balancer/v2.0/", ["GET /v2.0/lbaas/pools"]),
    ("compute", "compute", "/servers", "/compute/v2.1", ["GET /v2.1/servers"]),
    ("compute", "compute", "/servers", "/compute/v2.1/", ["GET /v2.1/servers"]),
    ("compute", "compute", "/servers", "/compute", ["GET /", "GET /v2.1/servers"]),
    ("image", "image", "/images", "/image", ["GET /", "GET /v2/images"]),
    ("image", "image", "/images", "/image/v2", ["GET /v2/images"]),
    ("volume", "block-storage", "/volumes", f"/volume/v3/{PROJECT}", [f"GET /v3/{PROJECT}/volumes"]),
    ("volume", "block-storage", "/volumes", "/volume", ["GET /", f"GET /v3/{PROJECT}/volumes"]),
]


@pytest.mark.parametrize(
    ("service", "kind", "path", "catalogued", "expected"),
    CATALOGUED,
    ids=[f"{each[0]} {each[3]}" for each in CATALOGUED],
)
def test_a_list_of_versions_is_asked_for_where_the_catalogue_names_none_of_a_service_that_has_one(
    simulator: Simulator, clouds: Clouds, service: str, kind: str, path: str, catalogued: str, expected: list[str]
) -> None:
    cloud = clouds.get(credentials_of_region(simulator))
    project = cloud.project_id
    place(simulator, "volumev3", url=f"{simulator.url}/volume/v3/{project}")
    place(simulator, kind, url=f"{simulator.url}{catalogued}".replace(PROJECT, project))
    cloud._auth.invalidate()

    found = requested(simulator, cloud, service, path)

    assert found == [each.replace(PROJECT, project) for each in expected]


def test_versions_are_asked_for_once_with_each_token(simulator: Simulator, clouds: Clouds) -> None:
    cloud = clouds.get(credentials(simulator))
    lists = ["GET /", "GET /v2/images"]

    assert requested(simulator, cloud, "image", "/images") == lists
    assert requested(simulator, cloud, "image", "/images") == lists[1:]
    cloud._auth.invalidate()
    assert requested(simulator, cloud, "image", "/images") == lists


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """Yield a server that answers all requests alike (status 0: no answer), and the requests that it received."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if not status:
                return
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def versions(*hrefs: str, id_: str = "v2.9") -> bytes:
    listed = [{"id": id_, "status": "CURRENT", "links": [{"rel": "self", "href": href}]} for href in hrefs]
    return json.dumps({"versions": listed}).encode()


@pytest.mark.parametrize(
    ("href", "path"),
    [
        ("/elsewhere/v2/", "/elsewhere/v2/images"),
        ("http://169.254.169.254/latest/v2/", "/image/v2/images"),
        ("//169.254.169.254/v2/", "/image/v2/images"),
        ("https://user@evil.example/v2", "/image/v2/images"),
    ],
)
def test_a_list_of_versions_moves_a_service_to_no_other_address(
    simulator: Simulator, clouds: Clouds, href: str, path: str
) -> None:
    with answering(200, versions(href)) as (address, asked):
        place(simulator, "image", url=f"{address}/image")
        cloud = clouds.get(credentials_of_region(simulator))
        with pytest.raises(CapoError):
            cloud.list_all("image", "/images", "images")

    assert asked == ["/image", path]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(404, b"<html>", id="404"),
        pytest.param(403, b"{}", id="403"),
        pytest.param(401, b"{}", id="401"),
        pytest.param(503, b"no server", id="503"),
        pytest.param(200, b"<html>hello</html>", id="page"),
        pytest.param(200, b"[]", id="list"),
        pytest.param(200, b'{"versions": [1, null, {"id": {}}]}', id="strange"),
        pytest.param(200, b'{"versions": [{"id": "v2.9", "status": "CURRENT"}]}', id="no links"),
        pytest.param(200, versions("/v2", id_="v" + "9" * 9000), id="a number without end"),
        pytest.param(200, b"[" * 100_000, id="nested too deeply"),
        pytest.param(200, versions("http://[/v2"), id="no URL"),
        pytest.param(200, versions("/v3", id_="v3.0"), id="another version"),
    ],
)
def test_a_service_that_lists_no_versions_is_taken_to_be_at_the_usual_path(
    simulator: Simulator, clouds: Clouds, status: int, body: bytes
) -> None:
    with answering(status, body) as (address, asked):
        place(simulator, "image", url=f"{address}/image")
        cloud = clouds.get(credentials_of_region(simulator))
        said: CapoError | None = None
        try:
            cloud.get("image", "/images/1")
        except CapoError as error:
            said = error

    assert asked[-1] == "/image/v2/images/1"
    assert not isinstance(said, NotFoundError)


@pytest.mark.parametrize(
    ("status", "kind"), [(0, CloudUnavailableError), (301, IdentityError)], ids=["no answer", "redirect"]
)
def test_nothing_is_sent_to_a_service_whose_versions_got_no_answer(
    simulator: Simulator, clouds: Clouds, status: int, kind: type[CapoError]
) -> None:
    with answering(status, b"") as (address, asked):
        place(simulator, "image", url=f"{address}/image")
        cloud = clouds.get(credentials_of_region(simulator))
        with pytest.raises(kind):
            cloud.post("image", "/images", json={})

    assert asked == ["/image"]


def test_a_version_at_another_address_is_refused_whoever_found_it(
    simulator: Simulator, clouds: Clouds, monkeypatch: pytest.MonkeyPatch
) -> None:
    from capo.openstack import sdk_connection

    monkeypatch.setattr(sdk_connection.ServiceProxy, "get_endpoint", lambda _: "http://evil.example/v2")

    with pytest.raises(IdentityError, match="another address"):
        clouds.get(credentials(simulator)).get("image", "/images")


def test_a_service_that_nobody_answers_for_is_unavailable_and_looked_up_again(
    simulator: Simulator, clouds: Clouds, clock: FakeClock
) -> None:
    place(simulator, "image", url=f"{NOBODY}/image")
    cloud = clouds.get(credentials_of_region(simulator))
    with pytest.raises(CloudUnavailableError, match="no connection"):
        cloud.post("image", "/images", json={})
    place(simulator, "image", url=f"{simulator.url}/image")

    clock.advance(CATALOGUE_S)
    with pytest.raises(CloudUnavailableError):
        cloud.list_all("image", "/images", "images")

    assert cloud.list_all("image", "/images", "images")


@pytest.mark.parametrize("text", ["%(project_id)s", "%(project_id)99999999999s", "%zz", "{0}"])
@pytest.mark.parametrize("kind", ["network", "image", "load-balancer"])
def test_an_end_point_is_taken_as_it_is_written(simulator: Simulator, clouds: Clouds, kind: str, text: str) -> None:
    place(simulator, kind, url=f"{simulator.url}/{kind}/{text}")
    cloud = clouds.get(credentials_of_region(simulator))

    with pytest.raises(CapoError):
        cloud.get(kind, "/things")

    assert cloud._endpoint(kind).url.startswith(f"{simulator.url}/{kind}/{text}/v2")


def test_threads_that_need_the_same_service_ask_once(simulator: Simulator, clouds: Clouds) -> None:
    cloud = clouds.get(credentials(simulator))
    cloud.authenticate()
    simulator.call(simulator.cloud.counter.reset)

    threads = [threading.Thread(target=lambda: cloud.get("image", "/images")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    asked = [call["path"] for call in simulator.call(simulator.cloud.counter.log)]
    assert asked.count("/") == 1
    assert asked.count("/v2/images") == 8
