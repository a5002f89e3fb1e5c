"""One object on a real kube-apiserver, a fresh simulated cloud, and a manager that dies where it is told to."""

from __future__ import annotations

import base64
import contextlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capo.local.errors import ApiError
from capo.local.rig import Rig
from capo.simulator.faults import Order
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from e2e.manager import Manager, wait_until

WINDOW_S: Final = 2
"""The window of an ambiguous create; 60 s in production."""
GROUP: Final = "infrastructure.cluster.x-k8s.io"
Object = dict[str, Any]


@dataclass
class World:
    """What one run works with; nothing of it is shared with other runs but the API server."""

    rig: Rig
    simulator: Simulator
    manager: Manager
    namespace: str

    def network(self) -> str:
        """Make a network with a subnet, as a user would, and return its id; the counters start after it."""
        client = Client(self.simulator)
        with client.session:
            made = client.make("/network/v2.0/networks", "network", name="own")
            values = {"network_id": made["id"], "cidr": "10.9.0.0/24", "ip_version": 4}
            client.make("/network/v2.0/subnets", "subnet", **values)
        self.simulator.call(self.simulator.cloud.counter.reset)
        return str(made["id"])

    def apply(self, *objects: Object) -> None:
        """Have objects in the namespace of this run."""
        self.rig.apply([{**o, "metadata": {**o["metadata"], "namespace": self.namespace}} for o in objects])

    def get(self, version: str, plural: str, name: str) -> Object | None:
        """Return an object, None when it is gone."""
        try:
            found: Object = self.rig.api.get(f"/apis/{GROUP}/{version}/namespaces/{self.namespace}/{plural}/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    def delete(self, version: str, plural: str, name: str) -> None:
        """Ask for an object's deletion."""
        self.rig.api.delete(f"/apis/{GROUP}/{version}/namespaces/{self.namespace}/{plural}/{name}")

    def kill_at(self, write: int, when: str) -> Order:
        """Have the simulator kill the manager at the n-th write to OpenStack; the order tells whether it did."""
        document = {"match": {"write": write}, "effect": {"kill": self.manager.pid, "when": when}}
        return self.simulator.call(lambda: self.simulator.cloud.faults.add(document))

    def writes(self) -> int:
        """Return how many writes OpenStack has seen."""
        return self.simulator.cloud.counter.writes

    def until(self, what: str, reached: Any, *, limit_s: float = 60.0) -> None:
        """Wait for something; a manager that was killed meanwhile is started again."""

        def look() -> Any:
            if not self.manager.is_alive():
                self.simulator.call(self.simulator.cloud.faults.clear)
                self.manager.start()
            return reached()

        try:
            wait_until(what, look, limit_s=limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.manager.tail()}") from error

    def secret(self) -> Object:
        """Return the Secret with the credentials."""
        clouds = base64.b64encode(self.simulator.clouds_yaml.read_bytes()).decode()
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cloud"}, "data": {"clouds.yaml": clouds}}


@contextlib.contextmanager
def world(rig: Rig, kubeconfig: Path, folder: Path, *flags: str) -> Iterator[World]:
    """Run a fresh cloud and a manager that looks at a fresh namespace alone."""
    namespace = f"crash-{uuid.uuid4().hex[:8]}"
    rig.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
    manager = Manager(
        kubeconfig,
        folder / f"{namespace}.log",
        (
            f"--namespace={namespace}",
            f"--ambiguous-create-window={WINDOW_S}s",
            "--health-addr=127.0.0.1:0",
            "--diagnostics-address=127.0.0.1:0",
            "--insecure-diagnostics=true",
            "--webhook-host=127.0.0.1",
            "--webhook-port=0",
            "--v=4",
            *flags,
        ),
    )
    with Simulator.start() as simulator:
        made = World(rig, simulator, manager, namespace)
        manager.start()
        try:
            made.apply(made.secret())
            yield made
        finally:
            if manager.is_alive():
                manager.kill()


def inventory(simulator: Simulator) -> Mapping[str, Mapping[str, Any]]:
    """Return everything in the cloud by kind and id, tokens aside."""

    def look() -> Mapping[str, Mapping[str, Any]]:
        simulator.cloud.run_due()
        return simulator.cloud.inventory()

    found = {
        f"{service}/{kind}": {item.get("id") or item["name"]: item for item in items}
        for service, kinds in simulator.call(look).items()
        if service != "identity"
        for kind, items in kinds.items()
    }
    groups = found.get("network/security_groups", {})
    # A project's default group comes with its first request, whoever makes it, and stays.
    default = {id_ for id_, group in groups.items() if group["name"] == "default"}
    return {
        kind: {
            i: item for i, item in items.items() if i not in default and item.get("security_group_id") not in default
        }
        for kind, items in found.items()
    }
