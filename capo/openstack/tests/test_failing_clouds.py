"""Clouds whose lists fail, as the metric counts them: by namespace and host, so that none hides another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.metrics import CLOUDS_FAILING
from capo.simulator.simulator import Simulator


class Named(NamedTuple):
    """The key of an object."""

    namespace: str


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


@pytest.fixture
def cloud(simulator: Simulator, clouds: Clouds) -> Cloud:
    return clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim"))


def break_lists(simulator: Simulator) -> None:
    fault = {"match": {"service": "network"}, "effect": {"status": 503}}
    simulator.call(lambda: simulator.cloud.faults.add(fault))


def list_ports(cloud: Cloud) -> None:
    cloud.poller.demand("port", "key")
    cloud.poller.run("port")


def failing() -> dict[tuple[str, str], float]:
    """Return how many clouds fail, by namespace and host."""
    (metric,) = CLOUDS_FAILING.collect()
    return {(each.labels["namespace"], each.labels["host"]): each.value for each in metric.samples}


def test_a_cloud_whose_lists_fail_repeatedly_is_counted_until_one_succeeds(
    clouds: Clouds, cloud: Cloud, simulator: Simulator
) -> None:
    assert clouds.peek(cloud.credentials) is cloud
    break_lists(simulator)
    list_ports(cloud)
    assert sum(failing().values()) == 0
    cloud.poller.run("port")
    assert sum(failing().values()) == 1

    simulator.call(simulator.cloud.faults.clear)
    cloud.poller.run("port")
    assert sum(failing().values()) == 0


def test_a_cloud_that_a_tenant_invents_hides_no_other_that_fails_and_counts_for_no_other_namespace(
    clouds: Clouds, cloud: Cloud, simulator: Simulator
) -> None:
    text = simulator.clouds_yaml.read_bytes().replace(b"127.0.0.1", b"localhost")
    invented = clouds.get(identity.parse(text, "sim"), "tenant")
    for each, namespace in ((invented, "tenant"), (cloud, "team-a"), (cloud, "team-b")):
        each.poller.owners.register(f"owner-in-{namespace}", Named(namespace))
    break_lists(simulator)
    host, invented_host = cloud.credentials.auth_host, invented.credentials.auth_host

    list_ports(invented)
    list_ports(invented)
    assert failing() == {("tenant", invented_host): 1}

    list_ports(cloud)
    list_ports(cloud)
    assert failing() == {("tenant", invented_host): 1, ("team-a", host): 1, ("team-b", host): 1}
