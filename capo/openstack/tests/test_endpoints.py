"""Where calls go: by the catalogue of the token in use, never by what an answer says."""

from __future__ import annotations

import http.server
import ipaddress
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from capo.errors import CloudUnavailableError, IdentityError
from capo.openstack import identity
from capo.openstack.cloud import CATALOGUE_S, Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.connections import Limits
from capo.openstack.identity import Credentials
from capo.openstack.tests.builders import FakeClock
from capo.simulator.keystone import CATALOG, INTERFACES, service_id
from capo.simulator.simulator import Simulator

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


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
    """Put all services at another address into the catalogue, but for the Identity service's own."""

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
    cloud._endpoints["compute"] = NOBODY
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
    threading.Thread(target=server.serve_forever, daemon=True).start()
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
