"""A simulated cloud that the tests of a module share, emptied after each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from capo.json_types import Body
from capo.names import Stamp
from capo.openstack import (
    identity,
    kinds,
    network,
    port,
    router,
    subnet,
)
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.tests.builders import OWNER, FakeClock
from capo.simulator.cloud import Cloud as SimulatedCloud
from capo.simulator.simulator import Simulator


class CloudEnvironment:
    """A cloud in a simulator with a manual clock."""

    def __init__(self) -> None:
        self.clock = FakeClock(float(int(time.time())))
        self.simulator = Simulator.start(SimulatedCloud(clock=self.clock.now))
        self.clouds = Clouds(self.clock, lambda _key: None)
        self.cloud = self.clouds.get(identity.parse(self.simulator.clouds_yaml.read_bytes(), "sim"))
        self.external_id = str((network.external(self.cloud, None) or {})["id"])

    def requests(self) -> int:
        return self.simulator.call(lambda: self.simulator.cloud.counter.total)

    def let_pass(self, seconds: float = 60.0) -> None:
        self.clock.advance(seconds)

    def found(self, kind: str) -> list[Body]:
        """Return the listed resources of a kind with our stamp."""
        self.let_pass()
        what = kinds.KINDS[kind]
        params = what.list_params(self.cloud.project_id)
        items = self.cloud.list_all(
            what.service, what.list_path, what.key, params=params, microversion=what.microversion
        )
        return [body for body in items if what.stamp_of(body)]

    def network(self) -> tuple[Body, Body]:
        net = network.create(self.cloud, network.WantedNetwork(stamp("network"), "n", mtu=1400))
        wanted = subnet.WantedSubnet(stamp("subnet"), "n", net["id"], "10.6.0.0/24")
        return net, subnet.create(self.cloud, wanted)

    def ports(self, count: int = 1) -> list[Body]:
        net, _ = self.network()
        return port.create_all(
            self.cloud, [port.WantedPort(stamp(f"port-{i}"), f"p{i}", net["id"]) for i in range(count)]
        )


@pytest.fixture(scope="module")
def running() -> Iterator[CloudEnvironment]:
    made = CloudEnvironment()
    yield made
    made.clouds.close()
    made.simulator.stop()


@pytest.fixture
def world(running: CloudEnvironment) -> Iterator[CloudEnvironment]:
    """The shared world; resources that a test leaves are deleted."""
    yield running
    for kind in ("server", "load_balancer", "volume", "trunk", "floating_ip"):
        for body in running.found(kind):
            _delete(running.cloud, kind, body["id"])
    for body in running.found("router"):
        for each in running.found("subnet"):
            router.remove_interface(running.cloud, body["id"], each["id"])
    for kind in ("port", "router", "subnet", "network", "security_group"):
        for body in running.found(kind):
            _delete(running.cloud, kind, body["id"])


def _delete(cloud: Cloud, kind: str, resource_id: str) -> None:
    what = kinds.KINDS[kind]
    cloud.delete(what.service, what.path(resource_id), params=what.delete_params, microversion=what.microversion)


def stamp(role: str) -> Stamp:
    return Stamp(OWNER, role)


def roles(bodies: list[Body], kind: str) -> list[str]:
    return sorted(found.role for body in bodies if (found := kinds.KINDS[kind].stamp_of(body)))
