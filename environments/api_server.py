"""The common part of test environments: a namespace, and mostly a simulated cloud without other users."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeVar

from capo.json_types import Json
from capo.local.apiclient import Api
from capo.local.demo import objects
from capo.local.demo.objects import Objects
from capo.local.rig import Rig
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client, Inventory, inventory, more_than
from environments.manager_process import ManagerProcess, NotReachedError, wait_until
from environments.objects import in_namespace

LOOK_S: Final = 0.25
LINES: Final = 40
"""Number of lines of the manager's log in an error."""


_BASES: Final[Mapping[str, str]] = {
    "images": "/apis/openstack.k-orc.cloud/v1alpha1",
    "kamajicontrolplanes": "/apis/controlplane.cluster.x-k8s.io/v1alpha2",
    "k0smotroncontrolplanes": "/apis/controlplane.cluster.x-k8s.io/v1beta2",
    "machinehealthchecks": "/apis/cluster.x-k8s.io/v1beta2",
    "openstackmachinetemplates": "/apis/infrastructure.cluster.x-k8s.io/v1beta2",
}
"""Kinds that the demo does not use."""


class NamespaceEnvironment(Objects):
    """A namespace of a real API server in which a test acts as a user."""

    def apply(self, *wanted: Json) -> None:
        """Apply objects in the namespace."""
        self.api.apply([in_namespace(obj, self.namespace) for obj in wanted])

    def patch_status(self, plural: str, name: str, status: Json) -> None:
        """Merge patch the status of an object, as its controller does."""
        self.api.patch(f"{self._path(plural, name)}/status", {"status": status})

    def status(self, plural: str, name: str) -> Json:
        """Return the status of an object, empty without one."""
        found: Json = (self.find(plural, name) or {}).get("status") or {}
        return found

    def condition(self, plural: str, name: str, type_: str) -> Json:
        """Return a condition of an object, empty without one."""
        return objects.condition(self.find(plural, name) or {}, type_)

    def _path(self, plural: str, name: str = "") -> str:
        if plural not in _BASES:
            return super()._path(plural, name)
        return f"{_BASES[plural]}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")


@dataclass
class SimulatedCloudEnvironment(NamespaceEnvironment):
    """A namespace with a cloud of its own, on a shared rig and manager.

    Args:
        before: initial resources of the cloud.
        users: ids of resources that the test itself created, as a user of the cloud.
    """

    simulator: Simulator
    manager: ManagerProcess
    before: Inventory
    users: set[str] = field(default_factory=set)
    soon_s: ClassVar[float] = 180.0
    """Time limit on a busy machine, unless a test sets another."""

    @contextlib.contextmanager
    def client(self, cloud: str = "sim") -> Iterator[Client]:
        """Yield a client of a user of the cloud, whose requests count, too."""
        client = Client(self.simulator, cloud)
        with client.session:
            yield client

    def requests(self) -> list[Json]:
        """Return all requests to the cloud, as its counter has them."""
        return self.simulator.call(self.simulator.cloud.counter.log)

    def created(self) -> Inventory:
        """Return the resources that were added to the cloud, except those that the test created as a user."""
        now = inventory(self.simulator)
        return more_than({kind: self.before.get(kind, {}).keys() | self.users for kind in now}, now)

    def remaining(self) -> dict[str, list[str]]:
        """Return the ids of added resources that still exist, by kind."""
        return {kind: sorted(items) for kind, items in self.created().items()}

    def wait_until(self, what: str, reached: Callable[[], Any], *, limit_s: float | None = None) -> None:
        """Poll for a state; an error has the end of the manager's log.

        Raises:
            NotReachedError: time is over, and the manager runs.
            AssertionError: time is over, and the manager has ended.
        """
        try:
            wait_until(f"{self.namespace}: {what}", reached, limit_s=limit_s or self.soon_s, every_s=LOOK_S)
        except NotReachedError as error:
            kind = NotReachedError if self.manager.is_alive() else AssertionError
            raise kind(f"{error}\n{self._log()}") from error

    def _log(self) -> str:
        """Return the end of the log: lines about this namespace; all if there are none, or the manager has ended."""
        lines = self.manager.log.read_text(errors="replace").splitlines()
        ours = [line for line in lines if self.namespace in line] if self.manager.is_alive() else []
        return "\n".join((ours or lines)[-LINES:])


Kind = TypeVar("Kind", bound=SimulatedCloudEnvironment)


@contextlib.contextmanager
def fresh_environment(kind: type[Kind], name: str, rig: Rig, manager: ManagerProcess) -> Iterator[Kind]:
    """Yield a world in a fresh namespace with a fresh cloud; require at its end that nothing is left in the cloud.

    Args:
        name: prefix of the namespace's name.
    """
    namespace = f"{name}-{uuid.uuid4().hex[:8]}"
    api = Api(rig.url, pki=rig.layout.pki)
    with contextlib.closing(api), Simulator.start() as simulator:
        api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}])
        made = kind(api, namespace, simulator, manager, inventory(simulator))
        yield made
        assert made.remaining() == {}
        api.delete(f"/api/v1/namespaces/{namespace}")
