"""Builds every name, tag, stamp and description that we write to OpenStack or Kubernetes.

Names and the beginning of descriptions are the Go provider's (docs/explanation/go-provider.md, G-1); the owner stamp is
ours (ADR 0001).
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

GROUP: Final = "infrastructure.cluster.x-k8s.io"
OWNER_ID_ANNOTATION: Final = f"{GROUP}/owner-id"
BASTION_HASH_ANNOTATION: Final = f"{GROUP}/bastion-hash"
TAKEN_OVER_ANNOTATION: Final = f"{GROUP}/taken-over"
"""On an object that another provider created, until all its resources are recorded."""
BY_NAME: Final = "by-name"
"""Its value with which a user confirms that resources with the names of a cluster being deleted belong to that cluster.
"""
ADOPTED_ANNOTATION: Final = f"{GROUP}/adopted"
"""On an object of which another provider created resources, permanently: they carry no stamp, and status can be lost.
"""
ABANDON_ANNOTATION: Final = f"{GROUP}/abandon-resources"
"""On an object that is being deleted, with its owner id: the finalizer is removed, whatever is left in the cloud."""
ACCEPT_LOCATION_ANNOTATION: Final = f"{GROUP}/accept-location"
"""Names the location to which an object's resources were moved, according to an admin."""
ADDRESS_PAIRS_ANNOTATION: Final = f"{GROUP}/address-pairs"
"""On the OpenStackServer of a machine: the allowed address pairs of the machine, and edits that its ports lack yet."""
TEMPLATE_PAIRS_ANNOTATION: Final = f"{GROUP}/osmt-allowed-address-pairs"
"""On an OpenStackMachine: the pairs of its template that were last passed on; the Go provider's name and format."""
BUILD_TIMEOUT_ANNOTATION: Final = f"{GROUP}/server-build-timeout"
"""On a machine, its template or its OpenStackServer: for how long the server may be in BUILD, in place of the flag."""
REBUILD_LOAD_BALANCER_ANNOTATION: Final = f"{GROUP}/rebuild-load-balancer"
"""On an OpenStackCluster, with the id of its load balancer: if that is in ERROR, it is deleted and created again."""
LEFTOVER_VOLUMES_ANNOTATION: Final = f"{GROUP}/delete-leftover-volumes"
"""On an OpenStackCluster: ids of volumes of its workloads that are deleted with it, or ``review`` to wait for them."""
REVIEW: Final = "review"
"""Its value with which a deletion shows the volumes and waits until a user decides on them."""
SERVER_GROUPS_ANNOTATION: Final = f"{GROUP}/server-groups"
"""On an OpenStackCluster since before its first server group was created: without it and a record, the groups of the
project are not listed."""
CLAIM_UID_ANNOTATION: Final = f"{GROUP}/claim-uid"
"""On an IPAddress: the uid of the claim that it was created for, which a move or a restore changes."""
CLONED_FROM_NAME_ANNOTATION: Final = "cluster.x-k8s.io/cloned-from-name"
CLONED_FROM_KIND_ANNOTATION: Final = "cluster.x-k8s.io/cloned-from-groupkind"
CLUSTER_NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"
WATCH_FILTER_LABEL: Final = "cluster.x-k8s.io/watch-filter"
PAUSED_ANNOTATION: Final = "cluster.x-k8s.io/paused"
MANAGED_BY_ANNOTATION: Final = "cluster.x-k8s.io/managed-by"
DELETE_FOR_MOVE_ANNOTATION: Final = "clusterctl.cluster.x-k8s.io/delete-for-move"
LEASE: Final = "controller-leader-election-capo"
"""That of the Go provider."""
FIELD_MANAGER: Final = "capo"
VOLUME_STAMP_KEY: Final = "capo-owner"

_STAMP = re.compile(r"\[?(capo:([a-z2-7]{13}):([a-z0-9-]{1,37}))\]?$")


@dataclass(frozen=True)
class Stamp:
    """Owner and role of a resource: ``capo:<owner id>:<role>``, at most 60 characters."""

    owner: str
    role: str

    def __str__(self) -> str:
        """Return the stamp as it is written to OpenStack."""
        return f"capo:{self.owner}:{self.role}"


def finalizer(kind: str) -> str:
    """Return the finalizer of one of our kinds (C-48)."""
    return f"{kind.lower()}.{GROUP}"


def new_owner_id(kind: str, namespace: str, name: str) -> str:
    """Return a new value for the owner-id annotation, bound to this object."""
    random = base64.b32encode(secrets.token_bytes(9)).decode().lower()[:13]
    return f"{random}.{_check(kind, namespace, name)}"


def owner_of(annotation: str, *, kind: str, namespace: str, name: str) -> str | None:
    """Return the 13 characters of the owner id, or None if the annotation was created for another object."""
    owner, _, check = annotation.partition(".")
    return owner if check == _check(kind, namespace, name) and re.fullmatch("[a-z2-7]{13}", owner) else None


def owner_in(obj: Mapping[str, Any], *, kind: str) -> str | None:
    """Return the owner id in the annotation of an object, None if it has none of its own."""
    metadata = obj["metadata"]
    annotation = (metadata.get("annotations") or {}).get(OWNER_ID_ANNOTATION, "")
    return owner_of(annotation, kind=kind, namespace=metadata["namespace"], name=metadata["name"])


def restored_owner_id(owner: str, kind: str, namespace: str, name: str) -> str:
    """Return the annotation's value for an owner that was found in a stamp in the cloud."""
    return f"{owner}.{_check(kind, namespace, name)}"


def _check(kind: str, namespace: str, name: str) -> str:
    return hashlib.sha256(f"{kind}/{namespace}/{name}".encode()).hexdigest()[:8]


def stamped(description: str, stamp: Stamp) -> str:
    """Return a description, or a name, that ends in the stamp; the text comes first.

    Neutron and Nova accept 255 characters: the text is cut so that the stamp always fits.
    """
    tail = f"[{stamp}]"
    head = description[: 255 - len(tail) - 1].rstrip()
    return f"{head} {tail}" if head else tail


def stamp_in(text: str) -> Stamp | None:
    """Return the stamp at the end of a description, or of a tag or metadata value; None if there is none."""
    found = _STAMP.search(text)
    return Stamp(found[2], found[3]) if found else None


def cluster_resource_name(namespace: str, cluster: str) -> str:
    """Return ``<Cluster namespace>-<Cluster name>``."""
    return f"{namespace}-{cluster}"


def may_name_workloads(name: str, namespace: str) -> bool:
    """Return whether clusters of a namespace may have a name in their cloud controller and CSI driver.

    The default is ``<namespace>.<Cluster>``: otherwise a namespace could use the default name of another one's cluster.
    """
    beginning, dot, _ = name.partition(".")
    return not dot or beginning == namespace


def created_by(cluster: str) -> str:
    """Return the description of every resource that is created for a cluster."""
    return f"Created by cluster-api-provider-openstack cluster {cluster}"


def network(crn: str) -> str:
    """Return the name of a cluster's network, subnet and router."""
    return f"k8s-clusterapi-cluster-{crn}"


def security_group(crn: str, suffix: str) -> str:
    """Return the name of a security group; suffix is ``controlplane``, ``worker`` or ``bastion``."""
    return f"k8s-cluster-{crn}-secgroup-{suffix}"


SECURITY_GROUP_DESCRIPTION: Final = "Cluster API managed group"


def additional_subnet(crn: str) -> str:
    """Return the name of a cluster's second managed subnet; the first has the name of the network."""
    return f"{network(crn)}-additional"


def load_balancer(crn: str) -> str:
    """Return the name of the API load balancer."""
    return f"k8s-clusterapi-cluster-{crn}-kubeapi"


def load_balancer_child(crn: str, port: int) -> str:
    """Return the name of listener, pool and health monitor of one port."""
    return f"{load_balancer(crn)}-{port}"


def member(crn: str, port: int, machine: str) -> str:
    """Return the name of a control plane machine's pool member."""
    return f"{load_balancer_child(crn, port)}-{machine}"


def server_group(crn: str, template: str, stamp: Stamp) -> str:
    """Return the name of a server group, which ends in the stamp: Nova's groups have no other field for it.

    Nova accepts 255 characters: the template's name is cut so that the stamp always fits.
    """
    return stamped(f"k8s-clusterapi-cluster-{crn}-{template}" if template else f"k8s-clusterapi-cluster-{crn}", stamp)


def bastion(cluster: str) -> str:
    """Return the name of the bastion's OpenStackServer."""
    return f"{cluster}-bastion"


def port(server: str, index: int, suffix: str | None) -> str:
    """Return the name of a server's port."""
    return f"{server}-{suffix or index}"


def volume(server: str, device: str) -> str:
    """Return the name of a server's volume; device is ``root`` for the root volume."""
    return f"{server}-{device}"


def volume_description(server: str, device: str) -> str:
    """Return the description of a server's volume."""
    return f"Root volume for {server}" if device == "root" else f"Additional block device for {server}"


def floating_ip_claim(server: str) -> str:
    """Return the name of the IPAddressClaim of a server."""
    return f"{server}-floating-ip-address"


def floating_ip_description(pool: str) -> str:
    """Return the description of a pool's floating IPs, as the Go provider spells it."""
    return f"Created by cluster-api-provider-openstack OpenStackFloatingIPPool {pool}"


def floating_ip_tag(pool: str) -> str:
    """Return the Go provider's tag of a pool's floating IPs: it has no namespace, so it proves nothing (W-08)."""
    return f"cluster-api-provider-openstack-fip-pool-{pool}"


def provider_id(server_id: str, region: str | None = None) -> str:
    """Return the provider ID (C-14)."""
    return f"openstack://{region or ''}/{server_id}"
