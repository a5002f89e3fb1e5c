"""A test environment with a cluster for control plane machines; the tests write its OpenStackCluster themselves."""

from __future__ import annotations

from typing import Any

from capo import names
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, SECRET, Key, Kind
from controllers.openstackmachine.tests import environment
from environments.in_memory import InMemoryEnvironment

LABELS = {names.CLUSTER_NAME_LABEL: "demo", names.CONTROL_PLANE_LABEL: ""}
LBAAS = "/load-balancer/v2.0/lbaas"
INGRESS = "APIServerIngressReady"


class ControlPlaneEnvironment:
    """A stage with a cluster whose OpenStackCluster no controller reconciles."""

    def __init__(self, stage: InMemoryEnvironment) -> None:
        self.stage = stage
        self.network = stage.network()
        stage.apply_secret()
        stage.apply(CLUSTER, environment.cluster())
        infra = environment.openstack_cluster()
        infra["spec"] |= {"identityRef": {"name": "cloud", "cloudName": "sim"}, "managedSecurityGroups": None}
        infra["status"]["network"] = {"id": self.network["id"], "name": "own"}
        stage.apply(OPENSTACK_CLUSTER, infra)

    def record(self, **records: str) -> None:
        """Write ids by role into the records of the OpenStackCluster."""
        entries = [
            {"kind": role.partition("_")[0], "role": role.replace("_", "-"), "id": id_} for role, id_ in records.items()
        ]
        self.stage.patch(OPENSTACK_CLUSTER, "infra", {"status": {"resources": {"records": entries}}})

    def balance(self, *more_ports: int, **of_pools: Any) -> None:
        """Create a load balancer with pools for the API port and others."""
        wanted = {"managedLoadBalancer": {"enabled": True, "additionalPorts": list(more_ports)}}
        self.stage.patch(OPENSTACK_CLUSTER, "infra", {"spec": {"apiServer": wanted}})
        pool = {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", **of_pools}
        listeners = [
            {"protocol": "TCP", "protocol_port": port, "default_pool": {**pool, "name": f"pool-{port}"}}
            for port in (6443, *more_ports)
        ]
        made = self.stage.member.make(
            f"{LBAAS}/loadbalancers", "loadbalancer", vip_network_id=self.network["id"], listeners=listeners
        )
        self.stage.clock.advance(60)
        pools = {listener["protocol_port"]: listener["default_pool_id"] for listener in self.all("listeners")}
        self.record(lb_api=made["id"], **{f"pool_{port}": pool_id for port, pool_id in pools.items()})
        self.stage.cloud.counter.reset()

    def float(self) -> None:
        """Create a floating IP for the cluster, and a router by which it reaches machines."""
        member, external = self.stage.member, next(n["id"] for n in self.all("networks") if n["router:external"])
        made = member.make("/network/v2.0/floatingips", "floatingip", floating_network_id=external)
        self.record(fip_api=made["id"])
        gateway = {"network_id": external}
        router = member.make("/network/v2.0/routers", "router", external_gateway_info=gateway)
        (subnet,) = (s for s in self.all("subnets") if s["network_id"] == self.network["id"])
        path = f"/network/v2.0/routers/{router['id']}/add_router_interface"
        member.ask("PUT", path, {"subnet_id": subnet["id"]})

    def add(self, name: str) -> None:
        """Create a control plane machine with its bootstrap data."""
        self.stage.apply(SECRET, {"metadata": {"name": f"{name}-boot"}, "data": {"value": "I2Nsb3VkLWNvbmZpZw=="}})
        machine = environment.machine(name, LABELS)
        machine["spec"]["failureDomain"] = "az1"
        self.stage.apply(MACHINE, machine)
        obj = environment.openstack_machine(name, LABELS)
        obj["spec"] |= {"image": {"filter": {"name": "tiny-image"}}, "sshKeyName": "lab"}
        self.stage.apply(OPENSTACK_MACHINE, obj)

    def all(self, kind: str) -> list[dict[str, Any]]:
        return list(self.stage.inventory().get(kind, {}).values())

    def addresses(self, port: int = 6443) -> list[str]:
        """Return the addresses of the members behind a port."""
        return sorted(m["address"] for m in self.all("members") if m["protocol_port"] == port)

    def address_of(self, name: str) -> str:
        (port,) = (p for p in self.all("ports") if p["name"] == f"{name}-0")
        return str(port["fixed_ips"][0]["ip_address"])

    def delete(self, name: str) -> None:
        """Request the deletion of a machine as Cluster API does."""
        self.stage.delete(OPENSTACK_MACHINE, name)

    def vanish(self, kind: Kind, name: str) -> None:
        """Remove an object at once, whatever its finalizers."""
        del self.stage.kube.objects[Key(kind, environment.NAMESPACE, name)]

    def message(self, name: str) -> str:
        """Return the message of the ingress condition."""
        return str(self.stage.condition(OPENSTACK_MACHINE, name, INGRESS).get("message", ""))

    def ingress(self, name: str) -> tuple[str, str]:
        """Return status and reason of the ingress condition."""
        found = self.stage.condition(OPENSTACK_MACHINE, name, INGRESS)
        return found.get("status", ""), found.get("reason", "")
