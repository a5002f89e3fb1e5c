"""For tests: a simulator per test, a client with plain HTTP, the inventory, a clock to advance.

Use the fixtures with `from capo.simulator.testing import member, simulator`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest
import requests

from capo.simulator.clouds import clouds_document
from capo.simulator.simulator import Simulator

TIME_LIMIT_S = 60.0

Inventory = dict[str, dict[str, Any]]
"""The resources of a cloud, by ``service/kind`` and id."""


class Clock:
    """Monotonic seconds that only tests advance."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def move(self, seconds: float) -> None:
        """Advance the clock."""
        self.seconds += seconds


class Refused(Exception):  # noqa: N818 - what a test expects, not what goes wrong
    """The simulator answered with a status of 400 or more."""

    def __init__(self, answer: requests.Response) -> None:
        super().__init__(f"{answer.status_code} {answer.text}")
        self.status = answer.status_code
        self.answer = answer


class Client:
    """A user of the simulated cloud with a token.

    Args:
        cloud: One of the clouds in clouds.yaml.
        auth: The `auth` of an entry for a user that was created later; instead of `cloud`.
    """

    def __init__(self, simulator: Simulator, cloud: str = "sim", *, auth: dict[str, str] | None = None) -> None:
        self.url = simulator.url
        self.session = requests.Session()
        self.session.trust_env = False
        entry = auth or clouds_document(simulator.cloud, simulator.url)["clouds"][cloud]["auth"]
        self.answer = self.session.post(
            f"{entry['auth_url']}/auth/tokens", json=credentials(entry), timeout=TIME_LIMIT_S
        )
        self.session.headers["X-Auth-Token"] = self.answer.headers["X-Subject-Token"]
        self.token = self.answer.json()["token"]
        self.project_id: str = self.token["project"]["id"]

    def request(self, method: str, path: str, json: Any = None, **more: Any) -> requests.Response:
        """Send a request and return the answer, whatever its status; the path begins with the service's prefix."""
        return self.session.request(method, self.url + path, json=json, timeout=TIME_LIMIT_S, **more)

    def ask(self, method: str, path: str, json: Any = None, **more: Any) -> Any:
        """Send a request and return the body of its answer.

        Raises:
            Refused: The status is 400 or more.
        """
        answer = self.request(method, path, json, **more)
        if answer.status_code >= 400:
            raise Refused(answer)
        return answer.json() if answer.content else None

    def make(self, path: str, kind: str, **values: Any) -> Any:
        """Create a resource and return it."""
        return self.ask("POST", path, {kind: values})[kind]

    def make_network(self, name: str = "own", cidr: str = "10.9.0.0/24") -> tuple[Any, Any]:
        """Create a network with one subnet; return both."""
        network = self.make("/network/v2.0/networks", "network", name=name)
        values = {"network_id": network["id"], "cidr": cidr, "ip_version": 4}
        return network, self.make("/network/v2.0/subnets", "subnet", **values)

    def order(self, **fault: Any) -> Any:
        """Add a fault and return it."""
        return self.ask("POST", "/_simulator/faults", fault)


def credentials(auth: dict[str, str]) -> dict[str, Any]:
    """Return the body of a request for a token, from the `auth` of a clouds.yaml entry."""
    if "application_credential_id" in auth:
        secret = {"id": auth["application_credential_id"], "secret": auth["application_credential_secret"]}
        return {"auth": {"identity": {"methods": ["application_credential"], "application_credential": secret}}}
    domain = {"name": auth["user_domain_name"]}
    user = {"name": auth["username"], "password": auth["password"], "domain": domain}
    scope = {"project": {"name": auth["project_name"], "domain": {"name": auth["project_domain_name"]}}}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}


def everything(simulator: Simulator) -> Inventory:
    """Return all resources of the cloud except identities, after all that was due has happened.

    Kinds without resources are included.
    """

    def look() -> dict[str, dict[str, list[Any]]]:
        simulator.cloud.run_due()
        return simulator.cloud.inventory()

    return {
        f"{service}/{kind}": {item.get("id") or item["name"]: item for item in items}
        for service, kinds in simulator.call(look).items()
        if service != "identity"
        for kind, items in kinds.items()
    }


def inventory(simulator: Simulator) -> Inventory:
    """Return all resources of the cloud except identities and each project's default group with its rules.

    A project's default group is created with its first request, by any client, and is kept.
    """
    return without_default_groups(everything(simulator))


def without_default_groups(found: Inventory) -> Inventory:
    """Return an inventory without each project's default group and its rules; pure."""
    groups = found.get("network/security_groups", {})
    default = {id_ for id_, group in groups.items() if group["name"] == "default"}
    return {
        kind: {id_: item for id_, item in items.items() if not default & {id_, item.get("security_group_id")}}
        for kind, items in found.items()
    }


def more_than(before: Mapping[str, Collection[str]], now: Inventory) -> Inventory:
    """Return the resources that are new since before; kinds without new ones are omitted."""
    new = {kind: {i: item for i, item in items.items() if i not in before.get(kind, ())} for kind, items in now.items()}
    return {kind: items for kind, items in new.items() if items}


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """A new simulator that serves until the test ends."""
    with Simulator.start() as running:
        yield running


@pytest.fixture
def member(simulator: Simulator) -> Iterator[Client]:
    """A plain member of the project capi."""
    client = Client(simulator)
    with client.session:
        yield client


@pytest.fixture
def admin(simulator: Simulator) -> Iterator[Client]:
    """The cloud's admin."""
    client = Client(simulator, "sim-admin")
    with client.session:
        yield client
