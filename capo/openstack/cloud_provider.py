"""What cloud-provider-openstack writes to the resources of a workload cluster; pure.

Its cloud controller creates load balancers of Services with floating IPs and security groups, its Cinder CSI driver
volumes of claims. All carry the name of a cluster, which is an option of both programs and ``kubernetes`` by default,
so it identifies a cluster only where somebody chose it.

Source: kubernetes/cloud-provider-openstack, ``pkg/openstack/loadbalancer.go``, ``loadbalancer_sg.go`` and
``loadbalancer_rename.go``, ``pkg/csi/cinder/controllerserver.go``; kubernetes/kubernetes 1.25,
``pkg/volume/util/util.go`` for the driver that was a part of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from capo.json_types import Body
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.resource_cache import Index, Selection, found_by
from capo.openstack.security_group import SecurityGroup
from capo.openstack.volume import Volume

SHARED_NAMES: Final = ("", "kubernetes")
"""Names of clusters that both programs use if none is configured."""
PREFIX: Final = "kube_service_"
"""How names and tags of load balancers begin."""
MAX_NAME: Final = 255
"""The cloud controller cuts names after so many characters."""
VOLUME_CLUSTER: Final = "cinder.csi.openstack.org/cluster"
_CLAIM: Final = ("csi.storage.k8s.io/pvc/namespace", "csi.storage.k8s.io/pvc/name")
_IN_TREE_CLAIM: Final = ("kubernetes.io/created-for/pvc/namespace", "kubernetes.io/created-for/pvc/name")
_BALANCER = re.compile(r"Kubernetes external service ([^/ ]+)/([^/ ]+) from cluster (.*)")
_FLOATING_IP = re.compile(r"Floating IP for Kubernetes external service ([^/ ]+)/([^/ ]+) from cluster (.*)")
_GROUP = re.compile(r"Security Group for ([^/ ]+)/([^/ ]+) Service LoadBalancer in cluster (.*)")


@dataclass(frozen=True, order=True)
class Service:
    """A Service of a workload cluster, as the description of a resource names it."""

    cluster: str
    namespace: str
    name: str


def of_load_balancer(found: LoadBalancer) -> Service | None:
    """Return the Service for which a load balancer was created; None if the cloud controller did not create it.

    The cluster is that of the creation: the controller renames load balancers and keeps their descriptions.
    """
    return _service(_BALANCER, found.description)


def of_floating_ip(found: FloatingIP) -> Service | None:
    """Return the Service for which a floating IP was created; None if the cloud controller did not create it."""
    return _service(_FLOATING_IP, found.description)


def of_security_group(found: SecurityGroup) -> Service | None:
    """Return the Service for which a security group was created; None if the cloud controller did not create it."""
    service = _service(_GROUP, found.description)
    if service is None or not found.name.startswith("lb-sg-"):
        return None
    return service if found.name.endswith(f"-{service.namespace}-{service.name}") else None


def _service(pattern: re.Pattern[str], description: str) -> Service | None:
    found = pattern.fullmatch(description)
    return Service(found[3], found[1], found[2]) if found else None


def load_balancer_name(service: Service, cluster: str) -> str | None:
    """Return the name of the load balancer of a Service of a cluster; None if it would be cut.

    A name that was cut may lack a part of the Service or of the cluster, so that it proves nothing.
    """
    name = f"{PREFIX}{cluster}_{service.namespace}_{service.name}"
    return name if len(name) <= MAX_NAME else None


def is_shared_with_others(tags: Iterable[str], cluster: str) -> bool:
    """Return whether tags of a load balancer name a Service of another cluster."""
    return any(tag.startswith(PREFIX) and not tag.startswith(f"{PREFIX}{cluster}_") for tag in tags)


def cluster_of_volume(found: Volume) -> str | None:
    """Return the name of the cluster whose driver created a volume, may be empty; None if no driver did."""
    metadata = found.metadata
    if VOLUME_CLUSTER in metadata:
        return str(metadata[VOLUME_CLUSTER])
    return "" if all(key in metadata for key in _IN_TREE_CLAIM) else None


def claim_of_volume(found: Volume) -> str:
    """Return ``namespace/name`` of the claim for which a volume was created; empty if its metadata does not say."""
    for keys in (_CLAIM, _IN_TREE_CLAIM):
        if all(found.metadata.get(key) for key in keys):
            return "/".join(str(found.metadata[key]) for key in keys)
    return ""


def balancers_of(cluster: str) -> Selection:
    """Return the selection of the load balancers whose names begin with that of a cluster, and an underscore."""
    start = f"{PREFIX}{cluster}_"
    among = found_by(BALANCERS_BY_FIRST_PART, _first_part(start))
    return lambda cache: [item for item in among(cache) if LoadBalancer(item.body).name.startswith(start)]


def _first_part(name: str) -> str | None:
    """Return the name of a load balancer up to the first underscore after the prefix; None if it has none.

    The names of clusters have underscores, too, so where that of the cluster ends is open.
    """
    part, underscore, _ = name.removeprefix(PREFIX).partition("_")
    return part if name.startswith(PREFIX) and underscore else None


def _first_parts(body: Body) -> list[str]:
    part = _first_part(LoadBalancer(body).name)
    return [] if part is None else [part]


def _clusters_of(service: Service | None) -> list[str]:
    return [service.cluster] if service else []


def _clusters_of_volume(body: Body) -> list[str]:
    cluster = cluster_of_volume(Volume(body))
    return [] if cluster is None else [cluster]


BALANCERS_BY_FIRST_PART: Final = Index(_first_parts)
FLOATING_IPS_BY_CLUSTER: Final = Index(lambda body: _clusters_of(of_floating_ip(FloatingIP(body))))
GROUPS_BY_CLUSTER: Final = Index(lambda body: _clusters_of(of_security_group(SecurityGroup(body))))
"""Both find what was created for a Service."""
VOLUMES_BY_CLUSTER: Final = Index(_clusters_of_volume)


def unique_name(namespace: str, cluster: str) -> str:
    """Return the name by which both programs are to know a cluster, ``<namespace>.<Cluster>``.

    A namespace has no dot, so no two clusters of a management cluster have the same. With a dash, ``a-b`` and ``c``
    would have that of ``a`` and ``b-c``.
    """
    return f"{namespace}.{cluster}"
