"""Calls over HTTP, against the simulator."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from prometheus_client import REGISTRY

from capo.errors import (
    AmbiguousAnswerError,
    CapoError,
    CloudUnavailableError,
    IdentityError,
    NotAuthorizedError,
    NotFoundError,
    RateLimitedError,
)
from capo.openstack import identity, kinds, server_group
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.connections import MIB, Limits
from capo.openstack.resource_cache import everything
from capo.openstack.tests.builders import FakeClock
from capo.simulator.keystone.service import change_password
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client

NETWORK = {"network": {"name": "n", "admin_state_up": True}}
CALLS = [
    pytest.param(lambda c: c.post("network", "/networks", json=NETWORK), AmbiguousAnswerError, id="write"),
    pytest.param(lambda c: c.get("network", "/networks"), CloudUnavailableError, id="read"),
]


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


@pytest.fixture
def order(simulator: Simulator) -> Iterator[Callable[..., None]]:
    """Inject a fault for one test."""
    admin = Client(simulator)

    def give(match: dict[str, Any], effect: dict[str, Any]) -> None:
        admin.order(match=match, effect=effect)

    yield give
    admin.ask("DELETE", "/_simulator/faults")
    admin.session.close()


@pytest.fixture
def cloud(simulator: Simulator, clouds: Clouds) -> Cloud:
    return clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))


def counted(name: str, request: str) -> float:
    return REGISTRY.get_sample_value(f"capo_openstack_api_{name}_total", {"request": request}) or 0.0


def changed(text: bytes, old: str, new: str) -> bytes:
    assert old in text.decode()
    return text.replace(old.encode(), new.encode())


def test_the_project_of_the_credentials_is_told(cloud: Cloud) -> None:
    assert cloud.project_id
    assert cloud.region == "RegionOne"


def test_an_application_credential_opens_the_same_project(simulator: Simulator, clouds: Clouds, cloud: Cloud) -> None:
    other = clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim-appcred"))

    assert other.project_id == cloud.project_id


def test_one_call_of_a_cold_cloud_is_a_token_and_the_call(simulator: Simulator, cloud: Cloud) -> None:
    simulator.call(simulator.cloud.counter.reset)

    cloud.get("network", "/networks")
    cloud.get("compute", "/servers/detail")

    assert simulator.call(lambda: simulator.cloud.counter.total) == 3


def test_wrong_credentials_are_refused(simulator: Simulator, clouds: Clouds) -> None:
    text = simulator.clouds_yaml.read_bytes()
    password = identity.parse(text, "sim").entry["auth"]["password"]
    wrong = clouds.get(identity.parse(changed(text, password, "wrong"), "sim"))

    with pytest.raises(NotAuthorizedError):
        wrong.authenticate()


def test_credentials_that_were_refused_are_not_tried_again_at_once(simulator: Simulator, clouds: Clouds) -> None:
    text = simulator.clouds_yaml.read_bytes()
    password = identity.parse(text, "sim").entry["auth"]["password"]
    wrong = clouds.get(identity.parse(changed(text, password, "also wrong"), "sim"))
    simulator.call(simulator.cloud.counter.reset)

    def tries(after_s: float) -> int:
        wrong.clock.advance(after_s)  # type: ignore[attr-defined]
        for _ in range(3):
            with pytest.raises(NotAuthorizedError, match="requires authentication"):
                wrong.get("network", "/networks")
        return simulator.call(lambda: simulator.cloud.counter.total)

    assert [tries(after_s) for after_s in (0, 29, 2, 58, 3)] == [1, 1, 2, 2, 3]


def test_a_password_that_was_changed_is_tried_once(simulator: Simulator, clouds: Clouds) -> None:
    text = simulator.clouds_yaml.read_bytes()
    password = identity.parse(text, "sim").entry["auth"]["password"]
    stale = clouds.get(identity.parse(text, "sim", region="RegionOne"))
    stale.get("network", "/networks")
    simulator.call(lambda: change_password(simulator.cloud, {"user": "capi", "password": "another"}))
    simulator.call(simulator.cloud.counter.reset)

    for _ in range(3):
        with pytest.raises(NotAuthorizedError, match="requires authentication"):
            stale.get("network", "/networks")

    simulator.call(lambda: change_password(simulator.cloud, {"user": "capi", "password": password}))
    asked = [f"{call['service']} {call['status']}" for call in simulator.call(simulator.cloud.counter.log)]
    assert asked == ["network 401", "identity 401"]


def test_those_who_wait_for_a_login_that_fails_do_not_try_it_themselves_w_78(
    simulator: Simulator, clouds: Clouds, order: Callable[..., None]
) -> None:
    order({"service": "identity"}, {"status": 500, "delay_s": 0.1})
    cold = clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))
    simulator.call(simulator.cloud.counter.reset)
    failures: list[CapoError] = []

    def ask() -> None:
        with pytest.raises(CloudUnavailableError) as caught:
            cold.authenticate()
        failures.append(caught.value)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(failures) == 5
    assert simulator.call(lambda: simulator.cloud.counter.total) == 1


def test_a_service_that_refuses_a_good_token_holds_up_no_other(cloud: Cloud, order: Callable[..., None]) -> None:
    order({"service": "network"}, {"status": 401})
    with pytest.raises(NotAuthorizedError):
        cloud.get("network", "/networks")

    assert "servers" in cloud.get("compute", "/servers/detail")
    with pytest.raises(NotAuthorizedError):
        cloud.get("network", "/networks")


def test_a_read_that_is_admitted_does_not_hasten_writes_that_are_refused(
    simulator: Simulator, cloud: Cloud, order: Callable[..., None]
) -> None:
    order({"service": "network", "method": "POST"}, {"status": 401})
    with pytest.raises(NotAuthorizedError):
        cloud.post("network", "/networks", json={"network": {}})
    cloud.get("network", "/networks")
    simulator.call(simulator.cloud.counter.reset)

    with pytest.raises(NotAuthorizedError):
        cloud.post("network", "/networks", json={"network": {}})

    assert simulator.cloud.counter.total == 0


def test_a_deletion_answered_by_404_counts_only_if_a_read_says_so_too(cloud: Cloud, order: Callable[..., None]) -> None:
    made = cloud.post("network", "/networks", json={"network": {"name": "there"}})["network"]
    gone = {"NeutronError": {"type": "NetworkNotFound", "message": "no such network", "detail": ""}}
    order({"method": "DELETE", "nth": 1}, {"status": 404, "body": gone})

    with pytest.raises(CloudUnavailableError, match=r"yet it is there: .*no such network"):
        cloud.remove("network", f"/networks/{made['id']}")
    cloud.remove("network", f"/networks/{made['id']}")

    cloud.remove("network", f"/networks/{made['id']}")


def test_an_unknown_region_is_named(simulator: Simulator, clouds: Clouds) -> None:
    elsewhere = clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim", None, "Mars"))

    with pytest.raises(IdentityError, match="no public end point of the network service in region Mars"):
        elsewhere.get("network", "/networks")


def test_an_address_where_nobody_listens_is_unavailable(simulator: Simulator, clouds: Clouds) -> None:
    text = changed(simulator.clouds_yaml.read_bytes(), simulator.url, "http://127.0.0.1:1")

    with pytest.raises(CloudUnavailableError):
        clouds.get(identity.parse(text, "sim")).authenticate()


def test_a_token_that_was_revoked_is_renewed_unseen(cloud: Cloud, order: Callable[..., None]) -> None:
    cloud.get("network", "/networks")
    order({"service": "network", "nth": 1}, {"status": 401})

    assert "networks" in cloud.get("network", "/networks")


def test_credentials_that_are_refused_for_good_are_reported(cloud: Cloud, order: Callable[..., None]) -> None:
    order({"service": "network"}, {"status": 401})

    with pytest.raises(NotAuthorizedError):
        cloud.get("network", "/networks")


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 503}, id="503"),
        pytest.param({"cut": "before"}, id="cut before"),
        pytest.param({"cut": "after"}, id="cut after"),
    ],
)
@pytest.mark.parametrize(("call", "kind"), CALLS)
def test_without_answer_a_write_is_unclear_and_a_read_failed(
    cloud: Cloud, order: Callable[..., None], effect: dict[str, Any], call: Any, kind: type[CapoError]
) -> None:
    cloud.authenticate()
    order({"service": "network"}, effect)

    with pytest.raises(kind):
        call(cloud)


@pytest.mark.parametrize(("call", "kind"), CALLS)
def test_an_answer_that_takes_too_long_is_none(
    simulator: Simulator, order: Callable[..., None], call: Any, kind: type[CapoError]
) -> None:
    impatient = Clouds(FakeClock(), lambda _key: None, limits=Limits(connect_s=5.0, read_s=0.9, write_s=0.9))
    cloud = impatient.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))
    cloud.authenticate()
    order({"service": "network"}, {"hang": 2.0})

    with pytest.raises(kind):
        call(cloud)
    impatient.close()


def test_a_write_is_not_unclear_when_no_token_could_be_had(
    simulator: Simulator, clouds: Clouds, order: Callable[..., None]
) -> None:
    order({"service": "identity"}, {"status": 500})
    cold = clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))

    with pytest.raises(CloudUnavailableError):
        cold.post("network", "/networks", json=NETWORK)


def test_a_service_that_is_busy_names_a_time(cloud: Cloud, order: Callable[..., None]) -> None:
    order({"service": "network"}, {"status": 429, "headers": {"Retry-After": "9"}})

    before = counted("rate_limited", "network_create")
    with pytest.raises(RateLimitedError) as caught:
        cloud.post("network", "/networks", json=NETWORK)

    assert caught.value.retry_after_s == 9
    assert counted("rate_limited", "network_create") == before + 1


def test_nothing_is_tried_again(simulator: Simulator, cloud: Cloud, order: Callable[..., None]) -> None:
    cloud.authenticate()
    order({"service": "network"}, {"status": 503})
    simulator.call(simulator.cloud.counter.reset)

    with pytest.raises(CloudUnavailableError):
        cloud.get("network", "/networks")

    assert simulator.call(lambda: simulator.cloud.counter.total) == 1


def test_a_lost_lease_stops_writes_and_lets_reads_pass(cloud: Cloud) -> None:
    def fence() -> None:
        raise RuntimeError("the lease is lost")

    cloud.fence = fence

    with pytest.raises(RuntimeError, match="lease"):
        cloud.post("network", "/networks", json=NETWORK)
    assert cloud.get("network", "/networks")["networks"] is not None


def test_requests_are_counted_by_resource_and_verb(cloud: Cloud, order: Callable[..., None]) -> None:
    before = counted("requests", "network_create"), counted("request_errors", "network_get")

    made = cloud.post("network", "/networks", json=NETWORK)["network"]
    cloud.delete("network", f"/networks/{made['id']}")
    with pytest.raises(NotFoundError):
        cloud.get("network", f"/networks/{made['id']}")

    assert (counted("requests", "network_create"), counted("request_errors", "network_get")) == (
        before[0] + 1,
        before[1],
    )


def test_all_pages_of_a_list_are_followed(cloud: Cloud) -> None:
    ids = {cloud.post("network", "/networks", json={"network": {"name": "page"}})["network"]["id"] for _ in range(5)}

    pages = cloud.list_all("network", "/networks", "networks", params={"limit": 2, "name": "page"})

    assert {body["id"] for body in pages} == ids
    assert len(pages) == 5


def test_of_a_page_of_a_list_only_what_is_kept_is_left_when_the_next_one_is_requested(
    cloud: Cloud, simulator: Simulator
) -> None:
    for _ in range(3):
        cloud.post("network", "/networks", json={"network": {"name": "kept"}})
    pages: list[int] = []
    began = len(simulator.call(simulator.cloud.counter.log))

    def keep(body: Mapping[str, Any]) -> Mapping[str, Any]:
        pages.append(len(simulator.call(simulator.cloud.counter.log)) - began)
        return {"id": body["id"], "name": body["name"]}

    params = {"limit": 2, "name": "kept"}
    found = cloud.listing("network", "/networks", "networks", params=params, keep=keep).items

    assert [set(body) for body in found] == [{"id", "name"}] * 3
    assert pages == [1, 1, 2]


def test_a_list_that_does_not_end_is_given_up_before_it_fills_the_memory(
    simulator: Simulator, order: Callable[..., None]
) -> None:
    clouds = Clouds(FakeClock(), lambda _key: None, limits=Limits(max_bytes=2 * MIB))
    cloud = clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))
    links = [{"rel": "next", "href": f"{simulator.url}/network/v2.0/networks?marker=again"}]
    page = {"networks": [{"id": "a", "description": "x" * MIB}], "networks_links": links}
    order({"service": "network", "method": "GET"}, {"status": 200, "body": page})

    with pytest.raises(CloudUnavailableError, match="larger than 8 MiB, 4 times --openstack-max-response-size"):
        cloud.list_all("network", "/networks", "networks")

    clouds.close()


def test_a_list_without_one_of_its_pages_is_no_list(cloud: Cloud, order: Callable[..., None]) -> None:
    for _ in range(3):
        cloud.post("network", "/networks", json={"network": {"name": "half"}})
    order({"service": "network", "method": "GET", "nth": 2}, {"status": 500})

    with pytest.raises(CloudUnavailableError):
        cloud.list_all("network", "/networks", "networks", params={"limit": 1, "name": "half"})


def new_groups(cloud: Cloud, count: int) -> list[str]:
    """Create server groups; return their ids in the order of their creation."""
    wanted = server_group.WantedServerGroup("page", "anti-affinity")
    return [server_group.create(cloud, wanted)["id"] for _ in range(count)]


def listed_groups(cloud: Cloud) -> list[str]:
    found = cloud.list_all("compute", "/os-server-groups", "server_groups", microversion=kinds.NOVA)
    return [body["id"] for body in found]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 9])
def test_pages_without_links_are_followed(
    cloud: Cloud, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(simulator.cloud, "config", dataclasses.replace(simulator.cloud.config, max_limit=4))
    monkeypatch.setitem(kinds.UNLINKED_PAGES, ("compute", "/os-server-groups"), 4)
    made = new_groups(cloud, count)

    try:
        assert listed_groups(cloud) == made
    finally:
        for id_ in made:
            server_group.delete(cloud, id_)


def test_pages_without_links_of_a_list_that_changes_are_no_list(
    cloud: Cloud, order: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of the first page is deleted before the second page is read: one would be missing."""
    monkeypatch.setitem(kinds.UNLINKED_PAGES, ("compute", "/os-server-groups"), 2)
    moved = {"server_groups": [{"id": "3", "name": "page"}, {"id": "4", "name": "page"}]}
    first = {"server_groups": [{"id": "1", "name": "page"}, {"id": "2", "name": "page"}]}
    order({"service": "compute", "path": "*/os-server-groups", "nth": 1}, {"status": 200, "body": first})
    order({"service": "compute", "path": "*/os-server-groups", "nth": 2}, {"status": 200, "body": moved})

    with pytest.raises(CloudUnavailableError, match="changed while its pages were read"):
        listed_groups(cloud)


def test_one_cloud_per_credentials(simulator: Simulator, clouds: Clouds) -> None:
    text = simulator.clouds_yaml.read_bytes()
    first = clouds.get(identity.parse(text, "sim"))

    assert clouds.get(identity.parse(text, "sim")) is first
    assert clouds.get(identity.parse(text, "sim-appcred")) is not first
    clouds.drop(first.fingerprint)
    assert clouds.get(identity.parse(text, "sim")) is not first


def test_a_dropped_cloud_wakes_those_who_wait_for_it(simulator: Simulator) -> None:
    woken: list[Any] = []
    clouds = Clouds(FakeClock(), woken.append)
    cloud = clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))
    cloud.poller.owners.register("owner", "key")

    clouds.drop(cloud.fingerprint)

    assert woken == ["key"]
    clouds.close()


def test_idle_clouds_are_forgotten_and_those_in_use_are_not(simulator: Simulator) -> None:
    clock = FakeClock()
    clouds = Clouds(clock, lambda _key: None, max_idle=1)
    text = simulator.clouds_yaml.read_bytes()
    regions = [identity.parse(text, "sim", None, f"R{i}") for i in range(4)]
    used = clouds.get(regions[0])
    used.poller.owners.register("owner", "key", credential=used.fingerprint)
    idle = [clouds.get(region) for region in regions[1:]]
    assert clouds.get(regions[1]) is idle[0], "it was asked for a moment ago"
    clock.advance(301)
    clouds.get(regions[3])

    assert clouds.get(regions[0]) is used
    assert clouds.get(regions[3]) is idle[2]
    assert clouds.get(regions[2]) is not idle[1]
    clouds.close()


def test_a_cloud_observes_by_itself(simulator: Simulator) -> None:
    class RealClock:
        def now(self) -> float:
            return time.time()

    woken = threading.Event()
    clouds = Clouds(RealClock(), lambda _key: woken.set())
    cloud = clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))

    cloud.post("network", "/networks", json={"network": {"name": "observed"}})
    cloud.poller.demand("network", "key")

    assert woken.wait(60)
    assert cloud.poller.select("network", everything)
    clouds.close()
