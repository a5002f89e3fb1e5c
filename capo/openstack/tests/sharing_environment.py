"""A simulated cloud in which application credentials share lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from capo.ledger import Ledger
from capo.openstack import identity
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.identity import Credentials
from capo.openstack.tests.builders import FakeClock
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from environments.in_memory import ManualClouds


class SharingEnvironment:
    """A simulated cloud, and application credentials of one user in one project."""

    def __init__(self) -> None:
        self.simulator = Simulator.start()
        self.clock = FakeClock()
        self.woken: list[object] = []
        self.clouds = ManualClouds(self.clock, self.woken.append)
        self.user = Client(self.simulator)
        self.ids: list[str] = []

    @property
    def _path(self) -> str:
        return f"/identity/v3/users/{self.user.token['user']['id']}/application_credentials"

    def credentials(self) -> Credentials:
        made = self.user.make(self._path, "application_credential", name=f"cluster-{len(self.ids)}")
        self.ids.append(made["id"])
        secret = {"application_credential_id": made["id"], "application_credential_secret": made["secret"]}
        entry = {"auth": {"auth_url": f"{self.simulator.url}/identity/v3", **secret}}
        return identity.parse(yaml.safe_dump({"clouds": {"c": entry}}).encode(), "c")

    def opened(self, count: int) -> list[Cloud]:
        clouds = [self.clouds.get(self.credentials()) for _ in range(count)]
        for cloud in clouds:
            cloud.authenticate()
        self.simulator.call(self.simulator.cloud.counter.reset)
        return clouds

    def revoke(self, number: int) -> None:
        self.user.ask("DELETE", f"{self._path}/{self.ids[number]}")
        self.simulator.call(self.simulator.cloud.counter.reset)

    def requests(self, part: str) -> int:
        return sum(part in call["path"] for call in self.simulator.call(self.simulator.cloud.counter.log))

    def logins(self) -> int:
        calls = self.simulator.call(self.simulator.cloud.counter.log)
        return sum(call["method"] == "POST" and call["path"].endswith("/auth/tokens") for call in calls)

    def run(self, seconds: float = 0.2) -> None:
        """Run the lists that are due then."""
        self.clock.advance(seconds)
        for poller in self.clouds.pollers:
            for kind in poller.due():
                poller.run(kind)

    def view(self, cloud: Cloud, owner: str, ledger: Ledger | None = None) -> CloudView:
        return CloudView(cloud, ledger or Ledger(), owner_id=owner, key=f"key of {owner}", clock=self.clock)


@pytest.fixture
def world() -> Iterator[SharingEnvironment]:
    made = SharingEnvironment()
    yield made
    made.user.session.close()
    made.clouds.close()
    made.simulator.stop()
