"""A simulated cloud whose clock tests advance, with a member, an admin and a network for most tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from capo.simulator.cloud import Cloud
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client, Clock, Refused

NOVA = "/compute/v2.1"
NEUTRON = "/network/v2.0"
OCTAVIA = "/load-balancer/v2.0/lbaas"
CINDER = "/volume/v3"
GLANCE = "/image/v2"
NOBODY = "11111111-1111-1111-1111-111111111111"
LATEST = {"OpenStack-API-Version": "compute 2.104"}


@dataclass
class SimulatorEnvironment:
    """The environment of a test; requests to Nova have its latest version."""

    clock: Clock
    simulator: Simulator
    member: Client
    admin: Client

    def nova(self, method: str, path: str, json: Any = None, **more: Any) -> Any:
        return self.member.ask(method, NOVA + path, json, **{"headers": LATEST, **more})

    def refused(self, method: str, path: str, json: Any = None, **more: Any) -> tuple[int, Any]:
        """Return status and body of an answer that must be a refusal."""
        with pytest.raises(Refused) as refusal:
            self.member.ask(method, path, json, **{"headers": LATEST, **more})
        return refusal.value.status, refusal.value.answer.json()

    def flavor(self, name: str = "m1.small") -> str:
        flavors = self.nova("GET", "/flavors")["flavors"]
        return next(str(flavor["id"]) for flavor in flavors if flavor["name"] == name)

    def image(self) -> str:
        return str(self.member.ask("GET", f"{GLANCE}/images?name=tiny-image")["images"][0]["id"])

    def network(self) -> tuple[str, str]:
        """Create a network with a subnet and return both ids."""
        network = self.member.make(f"{NEUTRON}/networks", "network", name="net")["id"]
        subnet = self.member.make(f"{NEUTRON}/subnets", "subnet", network_id=network, ip_version=4, cidr="10.6.0.0/24")[
            "id"
        ]
        return network, subnet

    def port(self, network: str) -> str:
        return str(self.member.make(f"{NEUTRON}/ports", "port", network_id=network)["id"])

    def port_of(self, port: str) -> Any:
        return self.member.ask("GET", f"{NEUTRON}/ports/{port}")["port"]

    def body(self, **values: Any) -> Any:
        """Return the body of a POST of a server, without the values that are None."""
        wanted = {"name": "s", "flavorRef": self.flavor(), "imageRef": self.image(), "networks": "none", **values}
        return {"server": {key: value for key, value in wanted.items() if value is not None}}

    def server(self, **values: Any) -> str:
        return str(self.nova("POST", "/servers", self.body(**values))["server"]["id"])

    def server_of(self, server: str) -> Any:
        return self.nova("GET", f"/servers/{server}")["server"]

    def built(self, **values: Any) -> str:
        """Create a server and wait until it is built."""
        server = self.server(**values)
        self.clock.move(5)
        return server

    def volume(self, **values: Any) -> str:
        """Create a volume and wait until it is available."""
        made = self.member.make(f"{CINDER}/volumes", "volume", **{"size": 1, **values})
        self.clock.move(5)
        return str(made["id"])

    def volume_of(self, volume: str) -> Any:
        return self.member.ask("GET", f"{CINDER}/volumes/{volume}")["volume"]

    def tweak(self, what: str, /, **order: Any) -> Any:
        return self.member.ask("POST", f"/_simulator/tweaks/{what}", order)


@pytest.fixture
def stage() -> Iterator[SimulatorEnvironment]:
    clock = Clock()
    with Simulator.start(Cloud(clock=clock)) as simulator:
        member, admin = Client(simulator), Client(simulator, "sim-admin")
        with member.session, admin.session:
            yield SimulatorEnvironment(clock, simulator, member, admin)
