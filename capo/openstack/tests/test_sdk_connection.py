"""The SDK's connection of one cloud: effects that an entry, a cloud and the environment must not have."""

from __future__ import annotations

import gc
import http.server
import json
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from keystoneauth1 import exceptions as sdk
from openstack import exceptions as openstack_exceptions

from capo.errors import AmbiguousAnswerError, CapoError, CloudUnavailableError, IdentityError, NotFoundError
from capo.openstack import faults, identity
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.connections import Limits
from capo.openstack.tests.builders import FakeClock
from capo.openstack.transport import HttpSessions
from capo.simulator.keystone.service import change_password
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client

EVENTS: list[tuple[str, Any]] = []
IS_WATCHED = threading.Event()


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if IS_WATCHED.is_set() and event in ("open", "socket.connect", "socket.sendto", "subprocess.Popen", "import"):
        EVENTS.append((event, arguments[0] if event in ("open", "import") else arguments[1]))


sys.addaudithook(_watch)


@contextmanager
def watched() -> Iterator[list[tuple[str, Any]]]:
    """Record each file that is opened, each address that is connected to, each process and each import."""
    EVENTS.clear()
    IS_WATCHED.set()
    try:
        yield EVENTS
    finally:
        IS_WATCHED.clear()


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


@pytest.fixture
def entry(simulator: Simulator) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(simulator.clouds_yaml.read_text())["clouds"]["sim"]
    return found


@pytest.fixture
def trap() -> Iterator[tuple[str, list[str]]]:
    """Yield a server that must not be called, and the requests that it received."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps({"name": "trap", "profile": {"auth": {"auth_url": "http://trap"}}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - a name that the base class looks for

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def parsed(entry: dict[str, Any]) -> identity.Credentials:
    return identity.parse(yaml.safe_dump({"clouds": {"c": entry}}).encode(), "c")


def unobserved(entry: dict[str, Any]) -> Cloud:
    """Return a cloud that no thread lists."""
    credentials = parsed(entry)
    return Cloud(credentials, HttpSessions(Limits()).of(credentials), clock=FakeClock(), wake=lambda _key: None)


def used(cloud: Cloud) -> None:
    """Call each service that the provider uses."""
    cloud.list_all("network", "/networks", "networks")
    cloud.list_all("compute", "/servers/detail", "servers", microversion="2.69")
    cloud.list_all("image", "/images", "images")
    cloud.list_all("volume", "/volumes/detail", "volumes")
    cloud.list_all("load-balancer", "/lbaas/loadbalancers", "loadbalancers")


HOSTILE: list[tuple[str, Any]] = [
    ("profile", "{trap}"),
    ("profile", "rackspace"),
    ("profile", "/etc/passwd"),
    ("cloud", "{trap}"),
    ("cloud", "ovh"),
    ("vendor", "{trap}"),
    ("vendor_hook", "os:getcwd"),
    ("cacert", "{file}"),
    ("cert", "{file}"),
    ("key", "{file}"),
    ("os_cacert", "{file}"),
    ("insecure", "true"),
    ("auth_type", "v3oidcpassword"),
    ("auth_type", "none"),
    ("auth_type", "admin_token"),
    ("auth_type", "v3adfspassword"),
    ("auth_type", "http_basic"),
    ("auth_plugin", "v3oidcpassword"),
    ("auth_methods", "v3totp"),
    ("compute_endpoint_override", "{trap}"),
    ("image_endpoint_override", "{trap}"),
    ("network_endpoint", "{trap}"),
    ("block_storage_endpoint_override", "{trap}"),
    ("endpoint_override", "{trap}"),
    ("compute_default_microversion", "2.1"),
    ("volume_api_version", "1"),
    ("compute_service_type", "trap"),
    ("compute_region_name", "trap"),
    ("image_status_code_retries", "1000"),
    ("connect_retries", "1000"),
    ("rate_limit", {"compute": "0.0001"}),
    ("concurrency", {"compute": "1"}),
    ("cache", {"class": "dogpile.cache.dbm", "expiration_time": "3600", "arguments": {"filename": "{file}"}}),
    ("cache", {"auth": "true"}),
    ("metrics", {"statsd": {"host": "127.0.0.1", "port": "9"}}),
    ("metrics", {"influxdb": {"host": "127.0.0.1", "port": "9", "use_udp": "true"}}),
    ("networks", [{"name": "n", "nat_source": "true"}]),
    ("external_network", "n"),
    ("regions", [{"name": "R", "values": {"auth": {"auth_url": "{trap}"}}}]),
    ("image_format", "{file}"),
    ("api_timeout", "0.0001"),
    ("force_ipv4", "true"),
    ("disable_vendor_agent", {"x": "y"}),
]


def _filled(value: Any, **places: str) -> Any:
    text = json.dumps(value)
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", place)
    return json.loads(text)


@pytest.mark.parametrize(("key", "value"), HOSTILE, ids=[f"{key}={json.dumps(value)[:40]}" for key, value in HOSTILE])
def test_no_key_of_an_entry_opens_a_file_or_leads_to_another_address(
    simulator: Simulator,
    clouds: Clouds,
    entry: dict[str, Any],
    trap: tuple[str, list[str]],
    tmp_path: Path,
    key: str,
    value: Any,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("what only the manager may read")
    used(clouds.get(parsed(entry | {"region_name": "RegionOne", "interface": "internal"})))  # all imports are done
    text = yaml.safe_dump({"clouds": {"c": entry | {key: _filled(value, trap=trap[0], file=str(secret))}}}).encode()

    with watched() as events:
        said = ""
        try:
            used(clouds.get(identity.parse(text, "c")))
        except IdentityError as error:
            said = error.sentence

    assert "only the manager" not in said
    home = simulator.url.rpartition(":")[2]
    allowed = {("socket.connect", ("127.0.0.1", int(home)))}
    assert {event for event in events if event not in allowed} == set()
    assert trap[1] == []


@pytest.mark.parametrize("key", ["auth_url", "username", "project_name", "user_domain_name"])
@pytest.mark.parametrize("value", ["{trap}", "{file}", "{auth[password]}", "{0.__class__}", "%(password)s"])
def test_no_value_of_auth_is_put_into_another(
    clouds: Clouds, entry: dict[str, Any], trap: tuple[str, list[str]], key: str, value: str
) -> None:
    entry["auth"] = entry["auth"] | {key: f"{entry['auth']['auth_url']}/{value}" if key == "auth_url" else value}

    with pytest.raises(CapoError) as caught:
        used(clouds.get(parsed(entry)))

    assert entry["auth"]["password"] not in caught.value.sentence
    assert trap[1] == []


@pytest.mark.parametrize("region", ["{auth[password]}", "{region_name:>99999999999}", "{", "%(x)s", "a,b"])
def test_a_region_is_taken_as_it_is_written(clouds: Clouds, entry: dict[str, Any], region: str) -> None:
    cloud = clouds.get(parsed(entry | {"region_name": region}))

    assert cloud._connection.config.get_region_name("compute") == region
    with pytest.raises(IdentityError) as caught:
        used(cloud)
    assert f"in region {region}" in caught.value.message


def test_a_password_is_taken_as_it_is_written(simulator: Simulator, clouds: Clouds, entry: dict[str, Any]) -> None:
    before, strange = entry["auth"]["password"], "{auth_url}%(user)s{{}}$HOME~ 0123"
    simulator.call(lambda: change_password(simulator.cloud, {"user": "capi", "password": strange}))
    try:
        entry["auth"]["password"] = strange
        used(clouds.get(parsed(entry)))
    finally:
        simulator.call(lambda: change_password(simulator.cloud, {"user": "capi", "password": before}))


def test_the_environment_configures_no_connection(
    clouds: Clouds, entry: dict[str, Any], trap: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(clouds.get(parsed(entry | {"interface": "internal"})))
    elsewhere = tmp_path / "clouds.yaml"
    elsewhere.write_text("clouds: {c: {compute_endpoint_override: 'http://127.0.0.1:9'}}")
    for name, value in {
        "OS_CLIENT_CONFIG_FILE": str(elsewhere),
        "OS_CLIENT_SECURE_FILE": str(elsewhere),
        "OS_CLOUD": "c",
        "OS_AUTH_URL": trap[0],
        "OS_REGION_NAME": "Mars",
        "OS_COMPUTE_ENDPOINT_OVERRIDE": trap[0],
        "STATSD_HOST": "127.0.0.1",
        "STATSD_PORT": "9",
    }.items():
        monkeypatch.setenv(name, value)

    with watched() as events:
        used(clouds.get(parsed(entry)))

    assert [event for event in events if event[0] != "socket.connect"] == []
    assert trap[1] == []


@pytest.mark.parametrize("service", ["compute", "image", "load-balancer", "network", "volume"])
@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 409}, {"cut": "after"}], ids=["503", "409", "cut"])
def test_no_request_is_sent_twice(
    simulator: Simulator, clouds: Clouds, entry: dict[str, Any], service: str, fault: dict[str, Any]
) -> None:
    cloud = clouds.get(parsed(entry))
    used(cloud)
    admin = Client(simulator)
    admin.order(match={"service": service}, effect=fault)
    simulator.call(simulator.cloud.counter.reset)
    try:
        with pytest.raises(CapoError):
            cloud.post(service, "/things", json={})
    finally:
        admin.ask("DELETE", "/_simulator/faults")
        admin.session.close()

    assert simulator.call(lambda: simulator.cloud.counter.total) == 1


def test_a_clock_that_is_set_back_delays_no_request(
    clouds: Clouds, entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = clouds.get(parsed(entry))
    used(cloud)
    slept: list[float] = []
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600.0)
    monkeypatch.setattr(time, "sleep", slept.append)

    used(cloud)

    assert slept == []


def test_the_sdk_keeps_no_cloud_that_was_dropped(entry: dict[str, Any]) -> None:
    cloud = unobserved(entry)
    used(cloud)
    left = [weakref.ref(each) for each in (cloud._connection, cloud._auth, cloud._endpoint("compute").proxy)]

    del cloud
    gc.collect()  # the connection, whose finalizer has the session
    gc.collect()

    assert [ref() for ref in left] == [None, None, None]


def test_a_connection_that_is_closed_leaves_the_others_theirs(clouds: Clouds, entry: dict[str, Any]) -> None:
    one, other = clouds.get(parsed(entry)), clouds.get(parsed(entry | {"interface": "internal"}))
    used(one)
    used(other)
    shared = one._session.session
    assert shared is other._session.session
    pools = [len(adapter.poolmanager.pools) for adapter in shared.adapters.values()]

    one._connection.close()

    assert [len(adapter.poolmanager.pools) for adapter in shared.adapters.values()] == pools != [0, 0]


def test_lists_of_versions_are_not_kept(clouds: Clouds, entry: dict[str, Any]) -> None:
    cloud = clouds.get(parsed(entry))

    used(cloud)

    assert not cloud._session._discovery_cache
    assert not cloud._auth._discovery_cache


def test_a_connection_starts_no_thread(entry: dict[str, Any]) -> None:
    before = set(threading.enumerate())

    used(unobserved(entry))

    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    "modules",
    ["capo.webhooks.application, capo.webhooks.server, capo.webhooks.supervisor", "capo.openstack.clouds, controllers"],
    ids=["webhooks", "manager before its first cloud"],
)
def test_the_sdk_is_imported_for_the_first_cloud(modules: str) -> None:
    code = f"import sys, {modules}; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"openstack", "openstack.connection", "dogpile.cache"} & set(loaded)
    assert "controllers" in modules or not {"keystoneauth1", "kubernetes"} & set(loaded)


def _answer(status: int) -> Any:
    import requests

    response = requests.Response()
    response.status_code, response.url = status, "http://nova.example/servers/1"
    response.request = requests.Request("GET", response.url).prepare()
    response._content = json.dumps(
        {"itemNotFound": {"code": 404, "message": "Instance 1 could not be found."}}
    ).encode()
    return response


@pytest.mark.parametrize(
    ("error", "method", "expected"),
    [
        (openstack_exceptions.NotFoundException("no", response=_answer(404)), "GET", NotFoundError),
        (openstack_exceptions.SDKException("no"), "GET", CloudUnavailableError),
        (openstack_exceptions.SDKException("no"), "POST", AmbiguousAnswerError),
        (sdk.ConnectFailure("no"), "GET", CloudUnavailableError),
    ],
)
def test_the_sdk_s_exceptions_become_ours(error: Exception, method: str, expected: type[CapoError]) -> None:
    found = faults.error_from_exception(error, method=method, service="compute")

    assert type(found) is expected


def test_a_proxy_knows_region_and_interface_of_its_cloud(clouds: Clouds, entry: dict[str, Any]) -> None:
    proxy = clouds.get(parsed(entry | {"interface": "internal"}))._endpoint("compute").proxy

    assert (proxy.interface, proxy.region_name, proxy.service_type) == ("internal", entry["region_name"], "compute")
