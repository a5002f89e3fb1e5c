"""A stand-in for cloud-provider-openstack: it leaves in a cloud what the cloud controller and the CSI driver create.

Names, descriptions, tags and metadata are those of its source (``pkg/openstack/loadbalancer.go``,
``loadbalancer_sg.go``, ``pkg/csi/cinder/controllerserver.go``): the load balancer is one request with listeners, pools
and members, then the floating IP of its VIP and the group follow.

The volumes were compared with those of the real ``cinder-csi-plugin`` 1.36 (commit c453fb7c), which a gRPC client asked
for a volume and a snapshot on the real Cinder. The name is the one in the request; the description and the four keys of
the metadata are the same, also the value of a plugin without ``--cluster``, which is empty. A snapshot has the same
description, the same key with the cluster, and three of its own; Cinder refuses to delete its volume with status 400.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Member(Protocol):
    """A user of a project."""

    project_id: str

    def make(self, path: str, kind: str, **values: Any) -> Any:
        """Create a resource and return it."""


@dataclass
class WorkloadStandIn:
    """The cloud controller and the CSI driver of one workload cluster.

    Args:
        member: the user whose credentials are in their cloud.conf.
        cluster: ``--cluster-name`` and ``--cluster``.
    """

    member: Member
    cluster: str = "kubernetes"
    namespace: str = "web"
    uids: dict[str, str] = field(default_factory=dict)

    def load_balancer(self, service: str, subnet_id: str, **values: Any) -> Any:
        """Create the load balancer of a Service with the VIP in a subnet."""
        name = f"kube_service_{self.cluster}_{self.namespace}_{service}"[:255]
        wanted = {
            "name": name,
            "description": f"Kubernetes external service {self.namespace}/{service} from cluster {self.cluster}",
            "tags": [name],
            "vip_subnet_id": subnet_id,
            "listeners": [self._listener(name)],
            **values,
        }
        return self.member.make("/load-balancer/v2.0/lbaas/loadbalancers", "loadbalancer", **wanted)

    def _listener(self, name: str) -> Mapping[str, Any]:
        pool = {"name": f"pool_0_{name}", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
        return {
            "name": f"listener_0_{name}",
            "protocol": "TCP",
            "protocol_port": 80,
            "tags": [name],
            "default_pool": pool,
        }

    def floating_ip(self, service: str, network_id: str, port_id: str | None) -> Any:
        """Create the floating IP of a Service."""
        where = f"{self.namespace}/{service} from cluster {self.cluster}"
        values = {"description": f"Floating IP for Kubernetes external service {where}", "port_id": port_id}
        return self.member.make("/network/v2.0/floatingips", "floatingip", floating_network_id=network_id, **values)

    def security_group(self, service: str) -> Any:
        """Create the security group of a Service."""
        uid = self.uids.setdefault(service, str(uuid.uuid4()))
        where = f"{self.namespace}/{service} Service LoadBalancer in cluster {self.cluster}"
        values = {"name": f"lb-sg-{uid}-{self.namespace}-{service}", "description": f"Security Group for {where}"}
        return self.member.make("/network/v2.0/security-groups", "security_group", **values)

    def volume(self, claim: str) -> Any:
        """Create the volume of a claim."""
        name = f"pvc-{uuid.uuid4()}"
        metadata = {
            "cinder.csi.openstack.org/cluster": self.cluster,
            "csi.storage.k8s.io/pv/name": name,
            "csi.storage.k8s.io/pvc/name": claim,
            "csi.storage.k8s.io/pvc/namespace": self.namespace,
        }
        description = "Created by OpenStack Cinder CSI driver"
        path = f"/volume/v3/{self.member.project_id}/volumes"
        return self.member.make(path, "volume", name=name, size=1, description=description, metadata=metadata)
