"""Stands in for Cluster API in the benchmark: its objects, owner references and the event of ready infrastructure.

The real managers are omitted on purpose: a hundred of their Machines need control planes, bootstrap data and nodes, and
cost more of this machine than what is measured. Their changes to our objects are made here in the same order; the demo
(``docs/measurements.md``) runs the real ones.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import requests
import yaml

from capo.json_types import Json
from capo.local.errors import RigError
from capo.local.rig import Rig
from e2e.faults import objects as scenarios
from environments import objects

CORE: Final = "/apis/cluster.x-k8s.io/v1beta2"
INFRA: Final = "/apis/infrastructure.cluster.x-k8s.io/v1beta2"
CLUSTER: Final = scenarios.CLUSTER
CHECK_S: Final = 2.0
"""After this long without news the processes are checked."""
PAUSE_S: Final = 1e-5
"""Pause before all objects are checked again, for each of them: checks of many must not slow down what is measured."""
VOLUMES: Final[Json] = {
    "rootVolume": {"sizeGiB": 1},
    "additionalBlockDevices": [{"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}],
}


class StuckError(AssertionError):
    """An awaited state was not reached in time."""


class Player:
    """The objects of one namespace."""

    def __init__(self, rig: Rig, namespace: str) -> None:
        self._rig, self._namespace = rig, namespace

    def cluster(self, network_id: str) -> None:
        """Create a Cluster on an existing network; its infrastructure is not ready yet, so machines wait."""
        cluster, infra = (self._placed(obj) for obj in scenarios.cluster_on(network_id))
        (made,) = self._rig.apply([cluster])
        self._rig.apply([objects.owned(infra, made)])

    def cluster_of(self, spec: Json) -> None:
        """Create a Cluster whose OpenStackCluster has this spec and creates its own network."""
        self._clusters([objects.cluster_objects(CLUSTER, **spec)])

    def delete_cluster(self) -> None:
        """Request the deletion of the OpenStackCluster."""
        self._rig.api.request("DELETE", f"{self.clusters_path}/{CLUSTER}")

    def machines(self, count: int, spec: Json) -> None:
        """Create Machines with bootstrap data, each with its OpenStackMachine."""
        self._machines([objects.machine_objects(f"machine-{number:03d}", CLUSTER, **spec) for number in range(count)])

    def _machines(self, parts: Sequence[tuple[Json, Json, Json]]) -> None:
        """Create the shared Secret with bootstrap data, the Machines, and their OpenStackMachines."""
        self._rig.apply([self._placed(parts[0][0])])
        made = self._rig.apply([self._placed(machine) for _, _, machine in parts])
        self._rig.apply(
            [objects.owned(self._placed(infra), machine) for (_, infra, _), machine in zip(parts, made, strict=True)]
        )

    def fleet(self, clusters: int, machines: int, network_id: str) -> None:
        """Create many clusters with ready infrastructure, and the machines spread over them."""
        names = [f"cluster-{number:03d}" for number in range(clusters)]
        self._clusters([scenarios.cluster_on(network_id, name=name) for name in names])
        for name in names:
            self.provisioned(name)
        owners = itertools.islice(itertools.cycle(names), machines)
        if machines:
            self.add_machines({f"machine-{number:04d}": name for number, name in enumerate(owners)})

    def add_machines(self, owners: Mapping[str, str], *, is_control_plane: bool = False) -> None:
        """Create Machines, each with its OpenStackMachine.

        Args:
            owners: the cluster of each, by the machine's name.
        """
        self._machines(
            [
                objects.machine_objects(name, cluster, is_control_plane=is_control_plane)
                for name, cluster in owners.items()
            ]
        )

    def clouds(self, entries: Mapping[str, Json], network_id: str) -> None:
        """Create a cluster with a Secret for each entry of a clouds.yaml.

        Args:
            entries: by the name that Secret, cloud and cluster get.
        """
        self.identities(entries)
        self.clusters_with({name: name for name in entries}, network_id)

    def identities(self, entries: Mapping[str, Json]) -> None:
        """Create a Secret for each entry of a clouds.yaml, by the name that Secret and cloud get."""
        self._rig.apply([self._placed(_secret(name, entry)) for name, entry in entries.items()])

    def clusters_with(self, identities: Mapping[str, str], network_id: str) -> None:
        """Create clusters on an existing network.

        Args:
            identities: the name of the Secret and the cloud of each, by the cluster's name.
        """
        pairs = [scenarios.cluster_on(network_id, name=name) for name in identities]
        for (_, infra), identity in zip(pairs, identities.values(), strict=True):
            infra["spec"] = {**infra["spec"], "identityRef": {"name": identity, "cloudName": identity}}
        self._clusters(pairs)

    def _clusters(self, pairs: Sequence[Sequence[Json]]) -> None:
        """Create Clusters, each with its OpenStackCluster of the same name."""
        made = self._rig.apply([self._placed(cluster) for cluster, _ in pairs])
        self._rig.apply([objects.owned(self._placed(infra), by) for (_, infra), by in zip(pairs, made, strict=True)])

    def provisioned(self, cluster: str = CLUSTER) -> None:
        """Report a cluster's infrastructure as ready, so that its machines proceed."""
        path = f"{CORE}/namespaces/{self._namespace}/clusters/{cluster}/status"
        patch = {"status": {"initialization": {"infrastructureProvisioned": True}}}
        self._rig.api.patch(path, patch)

    def delete_machines(self) -> None:
        """Request the deletion of every OpenStackMachine."""
        self._rig.api.request("DELETE", self.machines_path)

    def delete_core_machines(self) -> None:
        """Delete every Machine, as Cluster API does once the OpenStackMachines are gone."""
        self._rig.api.request("DELETE", f"{CORE}/namespaces/{self._namespace}/machines")

    def infrastructure(self) -> Json:
        """Return the OpenStackCluster."""
        return self._rig.api.get(f"{INFRA}/namespaces/{self._namespace}/openstackclusters/{CLUSTER}")

    @property
    def clusters_path(self) -> str:
        """The collection of OpenStackClusters."""
        return f"{INFRA}/namespaces/{self._namespace}/openstackclusters"

    @property
    def machines_path(self) -> str:
        """The collection of OpenStackMachines."""
        return f"{INFRA}/namespaces/{self._namespace}/openstackmachines"

    def _placed(self, obj: Json) -> Json:
        return objects.placed(obj, self._namespace, "bench")


def _secret(name: str, entry: Json) -> Json:
    """Return the Secret with a clouds.yaml of one cloud, which has the name of the Secret."""
    return objects.secret(name, {"clouds.yaml": yaml.safe_dump({"clouds": {name: entry}}).encode()})


class Watch:
    """The objects of a collection, as reported by the API server, with the time of the last event."""

    def __init__(self, rig: Rig, path: str) -> None:
        self._rig, self._path = rig, path
        self._objects: dict[str, Json] = {}
        self._news = threading.Condition()
        self._news_s = time.monotonic()
        self._version = self._listed()
        threading.Thread(target=self._follow, name="watch", daemon=True).start()

    def until(self, what: str, reached: Callable[[list[Json]], bool], *, limit_s: float) -> float:
        """Wait until a predicate of all objects holds; return the monotonic second of the event after which it did.

        Raises:
            StuckError: it did not in time.
            RigError: a process died.
        """
        ends_s = time.monotonic() + limit_s
        while time.monotonic() < ends_s:
            with self._news:
                known, news_s = list(self._objects.values()), self._news_s
            if reached(known):
                return news_s
            time.sleep(len(known) * PAUSE_S)
            with self._news:
                is_news = news_s != self._news_s or self._news.wait(CHECK_S)
            if not is_news:
                self._rig.check()
        raise StuckError(f"{what}: not within {limit_s:.0f} s; {self._told()}")

    def known(self) -> list[Json]:
        """Return all objects."""
        with self._news:
            return list(self._objects.values())

    def _told(self) -> str:
        shown = [condition(obj, "Ready").get("message", "") for obj in self._objects.values()]
        return f"{len(shown)} objects say {sorted(set(shown))}"

    def _listed(self) -> str:
        """Replace all objects by a list; return its resource version."""
        listed = self._rig.api.get(self._path)
        with self._news:
            self._objects = {item["metadata"]["name"]: item for item in listed["items"]}
            self._news_s = time.monotonic()
            self._news.notify_all()
        return str(listed["metadata"]["resourceVersion"])

    def _follow(self) -> None:
        """Apply watch events; relist when the API server ends the watch, return when the server is gone."""
        with contextlib.suppress(requests.RequestException, RigError):
            while True:
                with contextlib.suppress(requests.exceptions.ChunkedEncodingError):
                    for line in self._opened().iter_lines(chunk_size=None):
                        self._take(json.loads(line))
                self._version = self._listed()

    def _opened(self) -> requests.Response:
        pki = self._rig.layout.pki
        return requests.get(
            f"{self._rig.url}{self._path}",
            params={"watch": "1", "resourceVersion": self._version},
            verify=str(pki / "ca.crt"),
            cert=(str(pki / "admin.crt"), str(pki / "admin.key")),
            stream=True,
            timeout=(5, None),
        )

    def _take(self, event: Json) -> None:
        if event["type"] == "ERROR":
            return  # too old; the watch ends
        with self._news:
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                self._objects.pop(name, None)
            else:
                self._objects[name] = event["object"]
            self._news_s = time.monotonic()
            self._news.notify_all()


def condition(obj: Json, type_: str) -> Json:
    """Return a condition of an object, empty if it has none."""
    shown = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in shown if c["type"] == type_), {})


def is_ready(obj: Json) -> bool:
    """Return whether an OpenStackMachine is ready and has a provider ID."""
    return condition(obj, "Ready").get("status") == "True" and "providerID" in obj["spec"]


def are_ready(count: int) -> Callable[[list[Json]], bool]:
    """Return a predicate: ``count`` OpenStackMachines are ready and have a provider ID."""
    return lambda seen: sum(map(is_ready, seen)) == count


def are_provisioned(count: int) -> Callable[[list[Json]], bool]:
    """Return a predicate: ``count`` OpenStackClusters are ready."""
    return lambda seen: sum(condition(obj, "Ready").get("status") == "True" for obj in seen) == count


def are_waiting(count: int) -> Callable[[list[Json]], bool]:
    """Return a predicate: ``count`` OpenStackMachines report that they wait for the cluster's infrastructure."""
    reason = "WaitingForClusterInfrastructure"
    return lambda seen: sum(condition(obj, "InstanceReady").get("reason") == reason for obj in seen) == count
