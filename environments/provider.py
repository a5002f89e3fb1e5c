"""A whole provider in virtual time, for hundreds of faults: controllers, Cluster API's part, a simulated cloud.

Engine, OpenStack layer and HTTP are the real ones; Kubernetes is in memory, and time jumps to the next timer.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from capo.engine.tests.fake_kube import FakeKube
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Kind
from capo.openstack.connections import Limits
from capo.openstack.transport import HttpSessions
from controllers.openstackcluster.controller import ClusterController
from controllers.openstackfloatingippool.controller import FloatingIPPoolController
from controllers.openstackmachine.controller import MachineController
from controllers.openstackserver.controller import ServerController
from environments.in_memory import Factory, InMemoryEnvironment

Counts = Mapping[str, int]

NAME: Final = "faulty"
OURS: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER)
PATIENCE_S: Final = 60.0
"""The manager's timeout of an answer, in real time, where none is to hang: slow machines answer within it."""


class ProviderEnvironment(InMemoryEnvironment):
    """One manager with all controllers; a context manager.

    Args:
        patience_s: the manager's timeout of an answer, in real time.
    """

    factories: ClassVar[tuple[Factory, ...]] = (
        ClusterController,
        MachineController,
        ServerController,
        FloatingIPPoolController,
    )

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        super().__init__(*self.factories)
        self.apply_secret()
        self.before: dict[str, dict[str, Json]] = {}

    def start(self) -> None:
        """Start the manager."""
        super().start()
        self.clouds._http = HttpSessions(Limits(self._patience_s, self._patience_s, self._patience_s))

    def another_management_cluster(self) -> None:
        """Create a management cluster without knowledge of the project's resources, and its manager."""
        self.kube = FakeKube()
        self.apply_secret()
        self.start()

    def play(self, *, for_s: float, until: Callable[[], bool] | None = None) -> bool:
        """Advance time until a condition holds; return whether it does. Cluster API's managers reconcile, too."""
        ends_s = self.clock.now() + for_s

        def is_over() -> bool:
            return self._is_cluster_news() or self._is_machine_over() or bool(until and until())

        while True:
            self.settle(for_s=max(0.0, ends_s - self.clock.now()), until=is_over)
            if self._is_cluster_news():
                self.patch(CLUSTER, NAME, {"status": {"initialization": {"infrastructureProvisioned": True}}})
            elif self._is_machine_over():
                self.delete(MACHINE, NAME)
            elif (until and until()) or self.clock.now() >= ends_s:
                return bool(until and until())

    def _is_machine_over(self) -> bool:
        return self.exists(MACHINE, NAME) and not self.exists(OPENSTACK_MACHINE, NAME)

    def _is_cluster_news(self) -> bool:
        """Return whether Cluster API has an update to write."""
        if not self.exists(CLUSTER, NAME) or not self.exists(OPENSTACK_CLUSTER, NAME):
            return False
        known = (self.get(CLUSTER, NAME).get("status") or {}).get("initialization")
        made = (self.get(OPENSTACK_CLUSTER, NAME).get("status") or {}).get("initialization") or {}
        return bool(made.get("provisioned")) and not known

    def ours(self) -> list[Json]:
        """Return all objects of ours."""
        return [obj for key, obj in self.kube.objects.items() if key.kind in OURS]

    def messages(self) -> list[str]:
        """Return the messages of our objects' conditions that are not True."""
        shown = [c for obj in self.ours() for c in (obj.get("status") or {}).get("conditions") or ()]
        return [c.get("message", "") for c in shown if c["status"] != "True" and c["type"] != "Paused"]

    def counts(self) -> Counts:
        """Count the added resources by kind and role."""
        found: collections.Counter[str] = collections.Counter()
        for kind, items in self.inventory().items():
            defaults = {i for i, item in items.items() if item.get("name") == "default"}
            for id_, item in items.items():
                is_new = id_ not in self.before.get(kind, {}) and id_ not in defaults
                if is_new and not self._is_of_default_group(item):
                    found[f"{kind} {_role(item)}"] += 1
        return found

    def _is_of_default_group(self, item: Json) -> bool:
        groups = self.inventory().get("security_groups", {})
        return bool(groups.get(item.get("security_group_id", ""), {}).get("name") == "default")

    def is_ready(self, kind: Kind, name: str = NAME) -> bool:
        """Return whether an object exists and is ready."""
        return self.exists(kind, name) and self.condition(kind, name, "Ready").get("status") == "True"

    def is_settled(self) -> bool:
        """Return whether no create is pending."""
        statuses = [obj.get("status") or {} for obj in self.ours()]
        return not any((status.get("resources") or {}).get("pending") for status in statuses)


def _role(item: Json) -> str:
    found = re.search(r"capo:[a-z0-9]{13}:([a-z0-9-]+)", str(item))
    return found[1] if found else ""
