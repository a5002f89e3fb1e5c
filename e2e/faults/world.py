"""One namespace with one cloud of its own, on a rig and a manager that all stories share.

Since each story has a whole simulated cloud to itself, every request in the cloud's counter is one that the story's
objects cost: tokens, version discovery and shared lists included.
"""

from __future__ import annotations

import base64
import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from capo.local.apiclient import Api
from capo.local.rig import Rig
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from e2e.crash.world import inventory
from e2e.faults import objects
from e2e.manager import Manager, wait_until

Object = dict[str, Any]

WATCH_FILTER: Final = "faults"
"""The manager of this folder leaves alone what other tests left on the rig."""
PER_MINUTE: Final = 6
"""Requests that a failing object may cost."""
MINUTE_S: Final = 60.0
SOON_S: Final = 30.0
_BASES: Final[Mapping[str, str]] = {
    "clusters": "/apis/cluster.x-k8s.io/v1beta2",
    "machines": "/apis/cluster.x-k8s.io/v1beta2",
    "openstackclusters": "/apis/infrastructure.cluster.x-k8s.io/v1beta2",
    "openstackmachines": "/apis/infrastructure.cluster.x-k8s.io/v1beta2",
    "openstackservers": "/apis/infrastructure.cluster.x-k8s.io/v1alpha1",
    "secrets": "/api/v1",
    "events": "/apis/events.k8s.io/v1",
}


@dataclass
class World:
    """What one story works with.

    Args:
        before: what is in the cloud from the start, by kind and id.
        users: ids of what the story itself made, as a user of the cloud.
        counts_since_s: when the minute of watching began.
    """

    api: Api
    simulator: Simulator
    manager: Manager
    namespace: str
    before: Mapping[str, Mapping[str, Any]]
    users: set[str] = field(default_factory=set)
    counts_since_s: float = 0.0

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def apply(self, *wanted: Object) -> None:
        """Have objects in the namespace."""
        self.api.apply([objects.placed(obj, self.namespace, WATCH_FILTER) for obj in wanted])

    def get(self, plural: str, name: str) -> Object | None:
        """Return an object, None when it is gone."""
        return self.api.find(self._path(plural, name))

    def patch(self, plural: str, name: str, patch: Object) -> None:
        """Apply a merge patch."""
        self.api.patch(self._path(plural, name), patch)

    def delete(self, plural: str, name: str) -> None:
        """Ask for an object's deletion."""
        self.api.delete(self._path(plural, name))

    def condition(self, plural: str, name: str, type_: str) -> Object:
        """Return a condition of an object, empty without one."""
        shown = ((self.get(plural, name) or {}).get("status") or {}).get("conditions") or ()
        return next((c for c in shown if c["type"] == type_), {})

    def _warnings(self, name: str, word: str) -> list[str]:
        """Return what Events of the provider on objects of a name warn of with a word."""
        items = self.api.get(f"{_BASES['events']}/namespaces/{self.namespace}/events")["items"]
        ours = [event for event in items if event["regarding"]["name"] == name and event["type"] == "Warning"]
        return [event["note"] for event in ours if word in event["note"]]

    def _path(self, plural: str, name: str) -> str:
        return f"{_BASES[plural]}/namespaces/{self.namespace}/{plural}/{name}"

    # -- credentials ------------------------------------------------------------------------------------------------

    def secret(self, name: str = "cloud", **auth: str) -> Object:
        """Return the Secret with the credentials of the cloud; ``auth`` replaces some of them."""
        clouds = yaml.safe_load(self.simulator.clouds_yaml.read_bytes())
        clouds["clouds"]["sim"]["auth"] |= auth
        data = base64.b64encode(yaml.safe_dump(clouds).encode()).decode()
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"clouds.yaml": data}}

    # -- OpenStack --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def client(self, cloud: str = "sim") -> Iterator[Client]:
        """Yield a user of the cloud, whose requests count, too."""
        client = Client(self.simulator, cloud)
        with client.session:
            yield client

    def network(self, name: str = "own") -> str:
        """Make a network with a subnet, as a user would, and return its id; it is none of the story's leftovers."""
        with self.client() as client:
            made = client.make("/network/v2.0/networks", "network", name=name)
            values = {"network_id": made["id"], "cidr": "10.9.0.0/24", "ip_version": 4}
            subnet = client.make("/network/v2.0/subnets", "subnet", **values)
        self.users |= {made["id"], subnet["id"]}
        return str(made["id"])

    def rename(self, service: str, kind: str, old: str, new: str) -> None:
        """Give a resource that was there from the start another name."""

        def change() -> None:
            table = self.simulator.cloud.table(service, kind)
            next(item for item in table.values() if item["name"] == old)["name"] = new

        self.simulator.call(change)

    def fault(self, **document: Any) -> None:
        """Order a fault."""
        self.simulator.call(lambda: self.simulator.cloud.faults.add(document))

    def mend(self) -> None:
        """Take all faults back."""
        self.simulator.call(self.simulator.cloud.faults.clear)

    def left(self) -> dict[str, list[str]]:
        """Return the ids of what is in the cloud and was not before the story's objects came, by kind."""
        found = inventory(self.simulator)
        known = {kind: items.keys() | self.users for kind, items in self.before.items()}
        ids = {kind: sorted(items.keys() - known.get(kind, self.users)) for kind, items in found.items()}
        return {kind: new for kind, new in ids.items() if new}

    # -- what a story waits for ---------------------------------------------------------------------------------------

    def until(self, what: str, reached: Any, *, limit_s: float = SOON_S) -> float:
        """Wait for something; return how long it took."""
        began_s = time.monotonic()
        try:
            wait_until(f"{self.namespace}: {what}", reached, limit_s=limit_s, every_s=0.25)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()}") from error
        return time.monotonic() - began_s

    def log(self) -> str:
        """Return the end of what the manager said of this namespace."""
        lines = self.manager.log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if self.namespace in line][-20:])

    def ready(self, plural: str, name: str, *, limit_s: float = SOON_S) -> float:
        """Wait until Cluster API shows the infrastructure of a Cluster or Machine ready; return how long it took."""

        def is_ready() -> bool:
            return bool(self.condition(plural, name, "InfrastructureReady").get("status") == "True")

        try:
            return self.until(f"{plural} {name} has its infrastructure", is_ready, limit_s=limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.condition(plural, name, 'InfrastructureReady')}") from error

    def told(self, plural: str, name: str, *words: str, limit_s: float = SOON_S) -> str:
        """Wait until Cluster API shows these words as the reason why there is no infrastructure; return the message.

        Our own object says the same in its ``Ready`` condition, and an Event tells of it.
        """
        shown: Object = {}

        def is_told() -> bool:
            shown.clear()
            shown.update(self.condition(plural, name, "InfrastructureReady"))
            return shown.get("status") == "False" and all(word in shown["message"] for word in words)

        try:
            self.until(f"{plural} {name} tells {words}", is_told, limit_s=limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\nshown: {shown}") from error
        assert self.condition(f"openstack{plural}", name, "Ready")["message"] == shown["message"]
        print(f"{plural} {name}: {shown['message']}")
        self.until("an Event tells, too", lambda: self._warnings(name, words[0]))
        return str(shown["message"])

    def count_anew(self) -> None:
        """Let a minute of watching begin."""
        self.simulator.call(self.simulator.cloud.counter.reset)
        self.counts_since_s = time.monotonic()

    def quiet_minute(self) -> None:
        """Watch until a minute has passed: what fails made few requests in it, and its objects are not written.

        The first minute of a failure is the busiest.
        """
        shown = self._shown()
        time.sleep(max(0.0, self.counts_since_s + MINUTE_S - time.monotonic()))
        calls = [f"{c['at']} {c['method']} {c['path']}" for c in self.simulator.cloud.counter.log()]
        assert len(calls) <= PER_MINUTE, "\n".join(calls)
        for name, status in self._shown().items():
            assert status == shown[name], f"{name} was {shown[name]}, is {status}"

    def _shown(self) -> dict[str, Object]:
        """Return the status of our objects."""
        plurals = ("openstackclusters", "openstackmachines", "openstackservers")
        lists = {p: self.api.get(f"{_BASES[p]}/namespaces/{self.namespace}/{p}")["items"] for p in plurals}
        return {f"{p}/{o['metadata']['name']}": o.get("status", {}) for p, items in lists.items() for o in items}

    def gone(self, plural: str, name: str, *, limit_s: float = SOON_S) -> None:
        """Delete a Cluster or Machine, and wait until it is gone with all that it had in the cloud."""
        self.delete(plural, name)
        ours = f"openstack{plural}"
        what = f"{plural} {name} and its {ours} are gone"
        self.until(what, lambda: self.get(plural, name) is None and self.get(ours, name) is None, limit_s=limit_s)


@contextlib.contextmanager
def world(rig: Rig, manager: Manager) -> Iterator[World]:
    """Run a story in a fresh namespace with a fresh cloud; nothing is left in the cloud at its end."""
    namespace = f"faults-{uuid.uuid4().hex[:8]}"
    api = Api(rig.url, pki=rig.layout.pki)
    with contextlib.closing(api), Simulator.start() as simulator:
        api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
        made = World(api, simulator, manager, namespace, inventory(simulator))
        yield made
        assert made.left() == {}
        api.delete(f"/api/v1/namespaces/{namespace}")
