"""A test environment with one cluster, and short queries of its state."""

from __future__ import annotations

import collections
from typing import Any

import requests

from capo import names
from capo.engine.conditions import timestamp
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_SERVER
from capo.simulator.testing import Client
from controllers.openstackcluster.controller import ClusterController
from controllers.openstackcluster.dns import Answer
from controllers.openstackcluster.tests.objects import CLUSTER_NAME, OWNER
from controllers.openstackmachine.controller import MachineController
from controllers.openstackserver.controller import ServerController
from environments.in_memory import InMemoryEnvironment

MANAGED: dict[str, Any] = {"managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"]}]}
BALANCER: dict[str, Any] = {"apiServer": {"managedLoadBalancer": {"enabled": True}}}
GROUPS: dict[str, Any] = {"managedSecurityGroups": {"allowAllInClusterTraffic": True}}
SERVER: dict[str, Any] = {
    "flavor": {"filter": {"name": "m1.small"}},
    "image": {"filter": {"name": "tiny-image"}},
    "sshKeyName": "lab",
}
BASTION: dict[str, Any] = {"bastion": {"enabled": True, "spec": SERVER}}
FULL: dict[str, Any] = {**MANAGED, **BALANCER, **GROUPS, **BASTION}
COUNTS_OF_FULL = {
    "networks": 1,
    "subnets": 1,
    "routers": 1,
    "loadbalancers": 1,
    "listeners": 1,
    "pools": 1,
    "healthmonitors": 1,
    "security_groups": 4,  # one of them is Octavia's own, for the VIP
    "floatingips": 2,
    "servers": 1,
}
"""Number of resources of each kind in a cluster that uses all features."""
BASTION_NAME = names.bastion(CLUSTER_NAME)
BALANCER_PATH = "/load-balancer/v2.0/lbaas"


class ClusterEnvironment(InMemoryEnvironment):
    """One manager with the controllers of clusters and servers.

    Args:
        more: further controllers.

    Attributes:
        dns: the answer of DNS for every name; by default that the name does not exist.
    """

    def __init__(self, *more: type[MachineController]) -> None:
        super().__init__(ClusterController, ServerController, *more)
        self.before: dict[str, dict[str, Any]] = {}
        self._sessions: list[requests.Session] = []
        self.dns = Answer()
        self.apply_secret()

    def __exit__(self, *_: object) -> None:
        for session in self._sessions:
            session.close()
        super().__exit__()

    def place(self, *, owner: dict[str, Any] | None = None, **spec: Any) -> None:
        """Create a Cluster and its OpenStackCluster as Cluster API does."""
        self.before = self.inventory()
        ref = {"apiGroup": names.GROUP, "kind": "OpenStackCluster", "name": CLUSTER_NAME}
        self.apply(
            CLUSTER,
            {
                "metadata": {"name": CLUSTER_NAME, "uid": OWNER["uid"]},
                "spec": {"infrastructureRef": ref, **(owner or {})},
            },
        )
        self.apply(
            OPENSTACK_CLUSTER,
            {
                "metadata": {
                    "name": CLUSTER_NAME,
                    "creationTimestamp": timestamp(self.clock.now()),
                    "ownerReferences": [OWNER],
                    "labels": {names.CLUSTER_NAME_LABEL: CLUSTER_NAME},
                },
                "spec": {"identityRef": {"name": "cloud", "cloudName": "sim"}, **spec},
            },
        )

    def place_another(self, name: str, *, cloud_name: str = "sim", **spec: Any) -> None:
        """Create one more Cluster and its OpenStackCluster.

        Args:
            cloud_name: the credentials: those of the first cluster, or others of the same project.
        """
        uid = f"{name}-uid"
        ref = {"apiGroup": names.GROUP, "kind": "OpenStackCluster", "name": name}
        self.apply(CLUSTER, {"metadata": {"name": name, "uid": uid}, "spec": {"infrastructureRef": ref}})
        metadata = {
            "name": name,
            "creationTimestamp": timestamp(self.clock.now()),
            "ownerReferences": [{**OWNER, "name": name, "uid": uid}],
            "labels": {names.CLUSTER_NAME_LABEL: name},
        }
        identity = {"name": "cloud", "cloudName": cloud_name}
        self.apply(OPENSTACK_CLUSTER, {"metadata": metadata, "spec": {"identityRef": identity, **spec}})

    def up(self, *, for_s: float = 60.0, **spec: Any) -> None:
        """Create a cluster and run its reconciles for ``for_s``."""
        self.place(**spec)
        self.settle(for_s=for_s)

    # -- the object ---------------------------------------------------------------------------------------------

    def osc(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get(OPENSTACK_CLUSTER, CLUSTER_NAME)
        return found

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.osc().get("status", {})
        return found

    def change(self, **spec: Any) -> None:
        """Edit the spec."""
        self.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": spec})

    def remove(self) -> None:
        """Request the deletion."""
        self.delete(OPENSTACK_CLUSTER, CLUSTER_NAME)

    def shown(self, type_: str) -> tuple[str, str]:
        """Return status and reason of a condition; empty when there is none."""
        found = self.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, type_)
        return found.get("status", ""), found.get("reason", "")

    def message(self, type_: str) -> str:
        return str(self.condition(OPENSTACK_CLUSTER, CLUSTER_NAME, type_).get("message", ""))

    def condition_types(self) -> set[str]:
        return {c["type"] for c in self.status().get("conditions", ())}

    def is_ready(self) -> bool:
        return self.exists(OPENSTACK_CLUSTER, CLUSTER_NAME) and self.shown("Ready") == ("True", "Ready")

    def is_provisioned(self) -> bool:
        return bool(self.status().get("initialization", {}).get("provisioned"))

    def is_gone(self) -> bool:
        return not self.exists(OPENSTACK_CLUSTER, CLUSTER_NAME)

    def has_bastion(self) -> bool:
        return self.exists(OPENSTACK_SERVER, BASTION_NAME)

    def record(self, role: str) -> str | None:
        """Return the recorded id of a role."""
        records = self.status().get("resources", {}).get("records", [])
        return next((r["id"] for r in records if r["role"] == role), None)

    # -- the cloud ----------------------------------------------------------------------------------------------

    def created(self) -> dict[str, dict[str, Any]]:
        """Return the resources created since the start, by kind and id, without Neutron's default group."""
        now = self.inventory()
        defaults = {id_ for id_, group in now.get("security_groups", {}).items() if group["name"] == "default"}
        found = {
            kind: {
                id_: item
                for id_, item in items.items()
                if id_ not in self.before.get(kind, {}) and not defaults & {id_, item.get("security_group_id")}
            }
            for kind, items in now.items()
        }
        return {kind: items for kind, items in found.items() if items}

    def external(self) -> dict[str, Any]:
        (found,) = (network for network in self.inventory()["networks"].values() if network["name"] == "public")
        return dict(found)

    def show_external(self, *, is_visible: bool) -> None:
        """Show an external network to the project, or hide it."""
        body = {"network": {"router:external": is_visible}}
        self.admin().ask("PUT", f"/network/v2.0/networks/{self.external()['id']}", body)

    def admin(self) -> Client:
        """Return the cloud's admin, whose client is closed after the test."""
        client = Client(self.simulator, "sim-admin")
        self._sessions.append(client.session)
        return client

    def resync(self) -> None:
        """Requeue every object, as the periodic resync does."""
        for key in self.kube.objects:
            if any(controller.kind == key.kind for controller in self.controllers):
                self._wake(key)

    def set_state(self, kind: str, id_: str, **fields: Any) -> None:
        """Change a resource externally."""
        self.simulator.call(lambda: self.cloud.table("load-balancer", kind)[id_].update(fields))

    def counts(self) -> dict[str, int]:
        """Count the resources created since the start, without rules and ports, which follow from the rest."""
        return {k: len(v) for k, v in self.created().items() if k not in ("security_group_rules", "ports")}

    def one(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Return the one created resource that has these fields."""
        (found,) = (b for b in self.created().get(kind, {}).values() if all(b.get(k) == v for k, v in fields.items()))
        return dict(found)

    def rules(self, suffix: str) -> collections.Counter[tuple[Any, ...]]:
        """Return direction, description, protocol, first port and remote of each rule of a managed group."""
        name = f"k8s-cluster-default-kube-secgroup-{suffix}"
        group = self.one("security_groups", name=name)["id"]
        fields = ("direction", "protocol", "port_range_min", "remote_ip_prefix")
        return collections.Counter(
            tuple(rule.get(f) for f in fields)
            for rule in self.created()["security_group_rules"].values()
            if rule["security_group_id"] == group
        )
