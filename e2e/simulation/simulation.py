"""One simulated world: clouds, management clusters, managers, and the truth about them."""

from __future__ import annotations

import functools
import uuid
from typing import Any, Final

from capo.kube.kinds import NAMESPACE, SECRET, Key
from capo.settings import Settings
from capo.simulator import services
from capo.simulator.cloud import Cloud
from capo.simulator.clouds import clouds_document
from capo.simulator.server import Reply
from e2e.simulation import apiclient, network, objects, primitives, replica
from e2e.simulation.admission import Admission
from e2e.simulation.apiclient import Endpoint, KubeNetwork
from e2e.simulation.apiserver import ApiServer
from e2e.simulation.core import Core
from e2e.simulation.network import Network, Sent
from e2e.simulation.replica import Replica
from e2e.simulation.scheduler import Scheduler
from e2e.simulation.truth import Truth
from e2e.simulation.user import CloudUser

MAIN: Final = "cloud.example"
"""The host of the cloud in which all resources are created."""
SETTINGS: Final = Settings(skip_crd_migration_phases=("StorageVersionMigration", "CleanupManagedFields"))


class Simulation:
    """Everything that a seed simulates.

    Args:
        seed: determines the schedule, latencies and all ids.
    """

    def __init__(self, seed: str, *, switch_rate: float = 0.3) -> None:
        self.scheduler = Scheduler(seed, switch_rate=switch_rate)
        primitives.begin(self.scheduler, seed)
        self.seed = seed
        self.truth = Truth()
        self.network = Network(self.scheduler, seed)
        self.network.watch = self._requested
        self.kube = KubeNetwork(self.scheduler, seed)
        self.kube.own_writes.broken = functools.partial(self.truth.broken, "stale-reconcile")
        network.begin(self.network)
        apiclient.begin(self.kube)
        self.cloud = self.add_cloud(MAIN)
        self.user = CloudUser(self, MAIN)
        self.replicas: list[Replica] = []
        self.cores: dict[str, Core] = {}

    # -- the world --------------------------------------------------------------------------------------------------

    def add_cloud(self, host: str) -> Cloud:
        """Add a cloud, with the resources of a new one."""
        cloud = services.new_cloud(Cloud(clock=self._now))
        self.network.add(host, cloud)
        self.truth.register_all(cloud, self.scheduler.now_s)
        return cloud

    def add_management(self, name: str) -> Endpoint:
        """Add a management cluster with Cluster API and the credentials of the main cloud, and no manager."""
        server = ApiServer(now=self.scheduler.true_wall_s, new_uid=lambda: str(uuid.uuid4()), admit=Admission())
        endpoint = self.kube.add(name, server)
        server.on_change.append(functools.partial(self.truth.changed, endpoint))
        self.cores[name] = Core(self.scheduler, endpoint, self.seed)
        server.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": replica.NAMESPACE}})
        server.create(SECRET, objects.secret("cloud", self.clouds_yaml()))
        server.create(SECRET, objects.bootstrap())
        return endpoint

    def add_manager(self, endpoint: Endpoint, *, settings: Settings = SETTINGS) -> Replica:
        """Add a manager to a management cluster, and start it."""
        made = Replica(self.scheduler, endpoint, f"{endpoint.name}-{len(self.replicas)}", settings)
        self.replicas.append(made)
        made.start()
        return made

    def clouds_yaml(self, host: str = MAIN) -> dict[str, Any]:
        """Return the clouds of a host as clouds.yaml has them."""
        found: dict[str, Any] = clouds_document(self.network.sites[host].cloud, f"http://{host}")["clouds"]
        return found

    def get(self, endpoint: Endpoint, key: Key) -> dict[str, Any] | None:
        """Return an object as its API server has it."""
        return endpoint.server.get(*key)

    # -- time -------------------------------------------------------------------------------------------------------

    def run(self, for_s: float, until: Any = lambda: False) -> bool:
        """Advance time until a condition holds or an invariant is broken."""
        self.scheduler.run(lambda: self.truth.violation is not None or until(), for_s=for_s)
        for fault in self.scheduler.faults:
            self.truth.broken("thread-died", fault)
        return self.truth.violation is None and bool(until())

    def _now(self) -> float:
        return self.scheduler.now_s

    def _requested(self, sent: Sent, reply: Reply) -> None:
        cloud = self.network.sites[sent.host].cloud
        self.truth.observe(cloud, sent, reply, self.scheduler.now_s, is_repeat=sent.is_repeat)
