"""A cluster in a simulated cloud whose management cluster is lost, and the command that adopts it.

Controllers, engine and OpenStack layer are the real ones, Kubernetes is in memory; Cluster API's part is played.
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from capo.cli import adopt
from capo.engine.tests.fake_kube import FakeKube
from capo.json_types import Json
from capo.kube import kinds
from capo.kube.client import Kube, Snapshot
from capo.kube.connection import Connection
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Kind
from capo.operations.access import CloudAccess, Management, Mode
from capo.operations.adoption import applying, plan
from capo.operations.adoption.plan import Plan
from controllers.openstackcluster.controller import ClusterController
from controllers.openstackmachine.controller import MachineController
from controllers.openstackserver.controller import ServerController
from environments import objects
from environments.in_memory import NAMESPACE, InMemoryEnvironment

NAME: Final = "prod"
LBAAS: Final = "/load-balancer/v2.0/lbaas"
OURS: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER)
SECRET: Final = "prod-cloud"
"""Name of the Secret with the credentials in the new management cluster."""
FULL: Final[Json] = {
    "apiServer": {"managedLoadBalancer": {"enabled": True, "additionalPorts": [9443]}},
    "managedSecurityGroups": {},
    "bastion": {"enabled": True, "spec": objects.MACHINE_SPEC},
}


class OperatorsKube(FakeKube):
    """The API server as an operator's client sees it."""

    def __init__(self, server: str, uid: str = "") -> None:
        super().__init__()
        self.connection = Connection(server)
        self.put(kinds.NAMESPACE, {"metadata": {"name": "kube-system", "uid": uid or server}})

    def snapshot(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Snapshot:
        """Return all objects of a kind."""
        assert field_selector is None, "no command of an adoption selects by fields"
        return Snapshot(list(self.list(kind, namespace, label_selector=label_selector)), "1")

    def served(self, group: str, kind: str) -> Kind | None:
        """Return Cluster API's kinds in their newest version."""
        return next((each for each in (CLUSTER, MACHINE) if (each.group, each.kind) == (group, kind)), None)


class AdoptionEnvironment(InMemoryEnvironment):
    """One project, one management cluster at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._plans = 0
        super().__init__(ClusterController, MachineController, ServerController)
        self.kube: OperatorsKube
        self.former = self.lose_management_cluster()

    # -- Cluster API ------------------------------------------------------------------------------------------------

    def put(self, *wanted: Json) -> None:
        """Create objects as a user."""
        known = {each.kind: each for each in (*OURS, CLUSTER, MACHINE, kinds.SECRET)}
        for each in wanted:
            self.apply(known[each["kind"]], objects.in_namespace(each, NAMESPACE))

    def build(self, name: str = NAME, **spec: Any) -> None:
        """Create a cluster with two machines of the control plane and a worker with volumes, and wait for it."""
        self.apply_secret()
        self.put(*objects.cluster_objects(name, **{**FULL, **spec}))
        for index in range(2):
            self.put(*objects.machine_objects(f"{name}-cp-{index}", name, is_control_plane=True))
        volume = {"name": "data", "sizeGiB": 2, "storage": {"type": "Volume"}}
        disks: Json = {"rootVolume": {"sizeGiB": 5}, "additionalBlockDevices": [volume]}
        self.put(*objects.machine_objects(f"{name}-w-0", name, **disks))
        self.converge()
        assert self.unready() == []

    def converge(self, for_s: float = 600.0) -> None:
        """Run the controllers and Cluster API's part until nothing more is due."""
        ends_s = self.clock.now() + for_s
        while self.clock.now() < ends_s:
            self.settle(for_s=10)
            self._play_core()

    def _play_core(self) -> None:
        for owner_kind, kind in ((CLUSTER, OPENSTACK_CLUSTER), (MACHINE, OPENSTACK_MACHINE)):
            for owner in self.kube.list(owner_kind):
                self._play_owner(owner_kind, owner, kind)

    def _play_owner(self, owner_kind: Kind, owner: Json, kind: Kind) -> None:
        name = owner["metadata"]["name"]
        infra = self.kube.get(kind, NAMESPACE, owner["spec"]["infrastructureRef"]["name"])
        if infra is None:
            return
        if not infra["metadata"].get("ownerReferences"):
            labels = {"cluster.x-k8s.io/cluster-name": owner["spec"].get("clusterName", name)}
            metadata = {"ownerReferences": [objects.owner_reference(owner)], "labels": labels}
            self.kube.edit(kind, NAMESPACE, infra["metadata"]["name"], {"metadata": metadata})
        if (infra.get("status") or {}).get("initialization", {}).get("provisioned"):
            status = {"initialization": {"infrastructureProvisioned": True}}
            self.kube.edit(owner_kind, NAMESPACE, name, {"status": status})

    def delete_all(self) -> None:
        """Delete the cluster as Cluster API does: its machines first."""
        for owner_kind, kind in ((MACHINE, OPENSTACK_MACHINE), (CLUSTER, OPENSTACK_CLUSTER)):
            for owner in list(self.kube.list(owner_kind)):
                self.delete(kind, owner["metadata"]["name"])
            self.settle(for_s=900)
            assert list(self.kube.list(kind)) == []
            for owner in list(self.kube.list(owner_kind)):
                self.delete(owner_kind, owner["metadata"]["name"])

    def unready(self) -> list[str]:
        """Return our objects that are not ready, with their conditions."""
        found = [obj for kind in OURS for obj in self.kube.list(kind)]
        assert found
        shown = [(obj, self._ready(obj)) for obj in found]
        return [f"{obj['kind']} {obj['metadata']['name']}: {ready}" for obj, ready in shown if ready != "True"]

    @staticmethod
    def _ready(obj: Json) -> str:
        conditions = (obj.get("status") or {}).get("conditions") or ()
        ready = next((each for each in conditions if each["type"] == "Ready"), {"status": "", "message": "no status"})
        return "True" if ready["status"] == "True" else str(conditions)

    # -- loss and adoption ------------------------------------------------------------------------------------------

    def lose_management_cluster(self) -> OperatorsKube:
        """Start a management cluster without any object, and its manager; return the former one."""
        former, self._plans = self.kube, self._plans + 1
        self.kube = OperatorsKube(f"https://management-{self._plans}.example.org")
        self.start()
        return former

    def management(self, kube: OperatorsKube | None = None, mode: Mode = Mode.READ) -> Management:
        """Return a management cluster as an operator with all rights reaches it.

        Args:
            mode: of requests to the cloud.
        """
        kube = kube or self.kube
        return Management(cast(Kube, kube), kube.connection.server, CloudAccess.of(mode))

    def write(self, *more: str, name: str = NAME) -> tuple[int, Plan]:
        """Run ``capo adopt cluster``; return its exit status and the plan."""
        self._plans += 1
        path = self.folder / f"{self._plans}.yaml"
        clouds = str(self.simulator.clouds_yaml)
        given = ["--clouds", clouds, "--cloud", "sim", "--identity", SECRET, "--output", str(path)]
        status = adopt.write_cluster(parsed("cluster", name, *given, *more))
        return status, plan.read(path)

    def write_bastion(self, server: str) -> tuple[int, Plan]:
        """Run ``capo adopt bastion``; return its exit status and the plan."""
        self._plans += 1
        path = self.folder / f"{self._plans}.yaml"
        arguments = parsed("bastion", server, "--cluster", NAME, "--namespace", NAMESPACE, "--output", str(path))
        status = adopt.write_bastion_in(self.management(), arguments)
        return status, plan.read(path)

    def write_network(self, network: str, *more: str) -> tuple[int, Plan]:
        """Run ``capo adopt network``; return its exit status and the plan."""
        self._plans += 1
        path = self.folder / f"{self._plans}.yaml"
        given = ["--clouds", str(self.simulator.clouds_yaml), "--cloud", "sim", "--identity", SECRET]
        arguments = parsed("network", network, "--cluster", NAME, *given, "--output", str(path), *more)
        return adopt.write_network(arguments), plan.read(path)

    def adopt(
        self,
        wanted: Plan,
        *others: OperatorsKube,
        into: OperatorsKube | None = None,
        report: Callable[[str], object] = lambda _line: None,
    ) -> list[str]:
        """Apply a plan in a management cluster, by default the present one; return what it reports.

        Args:
            report: called with each line.
        """
        kube = into or self.kube
        content = base64.b64encode(self.simulator.clouds_yaml.read_bytes()).decode()
        kube.put(kinds.SECRET, {"metadata": {"name": SECRET}, "data": {"clouds.yaml": content}})
        lines: list[str] = []
        managements = [self.management(each) for each in others]
        mode = Mode.WRITE if any(each.is_to_stamp for each in wanted.resources) else Mode.READ

        def add(line: str) -> None:
            lines.append(line)
            report(line)

        applying.apply(wanted, self.management(kube, mode), managements, report=add, pause=self.clock.advance)
        return lines


class HandmadeEnvironment(AdoptionEnvironment):
    """A cluster without a bastion, and a server beside it that was created by hand."""

    server: Json
    port: Json
    address: str

    def prepare(self, server: str = "Jump Host", **spec: Any) -> None:
        """Create both.

        Args:
            server: name of the server.
            spec: of the OpenStackCluster.
        """
        self.build(**{"bastion": None, "managedSecurityGroups": None, **spec})
        network = self.status["network"]["id"]
        flavor = next(f["id"] for f in self.inventory()["flavors"].values() if f["name"] == "m1.tiny")
        image = next(i["id"] for i in self.inventory()["images"].values() if i["name"] == "tiny-image")
        self.port = self.member.make("/network/v2.0/ports", "port", network_id=network, description="by hand")
        values = {"flavorRef": flavor, "imageRef": image, "networks": [{"port": self.port["id"]}]}
        made = self.member.make("/compute/v2.1/servers", "server", name=server, **values)
        external = self.status["externalNetwork"]["id"]
        pinned = {"floating_network_id": external, "port_id": self.port["id"]}
        self.address = self.member.make("/network/v2.0/floatingips", "floatingip", **pinned)["floating_ip_address"]
        self.clock.advance(60)
        self.converge(60)
        self.server = self.inventory()["servers"][made["id"]]
        self.cloud.counter.reset()

    @property
    def status(self) -> Json:
        """Status of the OpenStackCluster."""
        found: Json = self.get(OPENSTACK_CLUSTER, NAME)["status"]
        return found


class NetworkEnvironment(HandmadeEnvironment):
    """A project with a network, a subnet, and a router to the external network, created by hand."""

    lan: Json
    subnet: Json
    router: Json

    def make_lan(self) -> None:
        """Create all of it."""
        self.make_network()
        self.make_balancer()

    def make_network(self) -> None:
        """Create network, subnet and router."""
        self.lan, self.subnet = self.member.make_network("lan")
        external = next(n["id"] for n in self.inventory()["networks"].values() if n["router:external"])
        gateway = {"external_gateway_info": {"network_id": external}}
        self.router = self.member.make("/network/v2.0/routers", "router", name="mine", **gateway)
        path = f"/network/v2.0/routers/{self.router['id']}/add_router_interface"
        self.member.ask("PUT", path, {"subnet_id": self.subnet["id"]})
        self.cloud.counter.reset()

    def make_balancer(self, **listener: Any) -> Json:
        """Create a load balancer for an API, with a pool and a monitor."""
        monitor = {"type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}
        pool = {"name": "api", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "healthmonitor": monitor}
        listeners = [{"protocol": "TCP", "protocol_port": 6443, "default_pool": pool, **listener}]
        values = {"name": "api", "vip_subnet_id": self.subnet["id"], "listeners": listeners}
        made: Json = self.member.make(f"{LBAAS}/loadbalancers", "loadbalancer", **values)
        self.clock.advance(60)
        assert self.inventory()["loadbalancers"][made["id"]]["provisioning_status"] == "ACTIVE"
        self.cloud.counter.reset()
        return made

    def ids(self) -> dict[str, set[str]]:
        """Return the ids of all resources by kind, without rules: Octavia writes those of its own group again."""
        return {kind: set(items) for kind, items in self.inventory().items() if kind != "security_group_rules"}

    def spec(self) -> Json:
        """Spec of the OpenStackCluster."""
        found: Json = self.get(OPENSTACK_CLUSTER, NAME)["spec"]
        return found


def parsed(*arguments: str) -> argparse.Namespace:
    """Return the arguments of ``capo adopt``."""
    parser = argparse.ArgumentParser()
    adopt.add_parser(parser.add_subparsers())
    return parser.parse_args(["adopt", *arguments])
