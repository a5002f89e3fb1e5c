"""A namespace with a simulated cloud of its own, on a rig and a manager that the tests of this folder share."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.local.apiclient import Api
from capo.local.rig import Rig
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from e2e.machines import objects
from e2e.manager import Manager, wait_until

Object = dict[str, Any]

_OURS: Final = "/apis/infrastructure.cluster.x-k8s.io"
_BASES: Final[Mapping[str, str]] = {
    "clusters": "/apis/cluster.x-k8s.io/v1beta2",
    "machines": "/apis/cluster.x-k8s.io/v1beta2",
    "machinehealthchecks": "/apis/cluster.x-k8s.io/v1beta2",
    "openstackclusters": f"{_OURS}/v1beta2",
    "openstackmachines": f"{_OURS}/v1beta2",
    "openstackservers": f"{_OURS}/v1alpha1",
}


@dataclass
class World:
    """What a test works with.

    Args:
        before: what was in the cloud from the start.
    """

    api: Api
    simulator: Simulator
    manager: Manager
    namespace: str
    before: Mapping[str, Mapping[str, Any]]

    # -- Kubernetes -------------------------------------------------------------------------------------------------

    def apply(self, *wanted: Object) -> None:
        """Have objects in the namespace."""
        self.api.apply([{**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}} for obj in wanted])

    def get(self, plural: str, name: str) -> Object | None:
        """Return an object, None when it is gone."""
        return self.api.find(self._path(plural, name))

    def all(self, plural: str) -> list[Object]:
        """Return all objects of a kind in the namespace."""
        return list(self.api.get(self._path(plural))["items"])

    def patch(self, plural: str, name: str, patch: Object) -> None:
        """Apply a merge patch as a user would."""
        self.api.patch(self._path(plural, name), patch)

    def delete(self, plural: str, name: str) -> None:
        """Ask for a deletion."""
        self.api.delete(self._path(plural, name))

    def _path(self, plural: str, name: str = "") -> str:
        path = f"{_BASES[plural]}/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    def until(self, what: str, reached: Callable[[], Any], *, limit_s: float = 60.0) -> None:
        """Wait for something; the end of the manager's log goes with what is raised when it does not come."""
        try:
            wait_until(f"{self.namespace}: {what}", reached, limit_s=limit_s, every_s=0.5)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.manager.tail()}") from error

    def machines(self) -> dict[str, Object]:
        """Return the Machines that are not going away, by name."""
        found = self.all("machines")
        return {m["metadata"]["name"]: m for m in found if not m["metadata"].get("deletionTimestamp")}

    # -- OpenStack --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a user of the cloud."""
        client = Client(self.simulator)
        with client.session:
            yield client

    def cloud(self, kind: str) -> dict[str, Any]:
        """Return what there is more than at the start, by id."""
        found = inventory(self.simulator).get(kind, {})
        return {id_: body for id_, body in found.items() if id_ not in self.before.get(kind, {})}

    def left(self) -> dict[str, list[str]]:
        """Return the ids of all that there is more than at the start, by kind."""
        found = {kind: sorted(self.cloud(kind)) for kind in inventory(self.simulator)}
        return {kind: ids for kind, ids in found.items() if ids}


def condition(obj: Object | None, type_: str) -> Object:
    """Return a condition of an object, empty without one."""
    shown = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((c for c in shown if c["type"] == type_), {})


@contextlib.contextmanager
def world(rig: Rig, manager: Manager) -> Iterator[World]:
    """Have a fresh namespace with a fresh cloud; at the end the cluster is deleted and nothing is left of it."""
    namespace = f"machines-{uuid.uuid4().hex[:8]}"
    api = Api(rig.url, pki=rig.layout.pki)
    with contextlib.closing(api), Simulator.start() as simulator:
        api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
        made = World(api, simulator, manager, namespace, inventory(simulator))
        yield made
        made.delete("clusters", objects.CLUSTER)
        made.until("the cluster is gone", lambda: made.get("clusters", objects.CLUSTER) is None, limit_s=180)
        assert made.left() == {}
        api.delete(f"/api/v1/namespaces/{namespace}")


def inventory(simulator: Simulator) -> dict[str, dict[str, Any]]:
    """Return everything in the cloud by kind and id, identities and the projects' default groups aside."""

    def look() -> Mapping[str, Mapping[str, list[Object]]]:
        simulator.cloud.run_due()
        return simulator.cloud.inventory()

    return {
        f"{service}/{kind}": {item.get("id") or item["name"]: item for item in items if not _is_default(kind, item)}
        for service, kinds in simulator.call(look).items()
        if service != "identity"
        for kind, items in kinds.items()
        if kind != "security_group_rules"
    }


def _is_default(kind: str, item: Object) -> bool:
    return kind == "security_groups" and item["name"] == "default"
