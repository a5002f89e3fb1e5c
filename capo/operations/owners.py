"""The objects of management clusters that own resources in clouds, and what each has recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from capo import names
from capo.contract import references
from capo.json_types import Object
from capo.kube.kinds import (
    OPENSTACK_CLUSTER,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_SERVER,
    Kind,
)
from capo.ledger import Ledger
from capo.operations.access import Management
from capo.operations.errors import NotServedError
from controllers.openstackcluster import workload_leftovers

KINDS: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, OPENSTACK_FLOATING_IP_POOL)
"""The kinds whose objects own resources."""
_BETA: Final = (OPENSTACK_CLUSTER, OPENSTACK_MACHINE)
_OLDER: Final = "v1beta1"
_OWNER: Final = re.compile(r"[a-z2-7]{13}")
_SERVER_ID: Final = re.compile(r"openstack://[^/]*/([^/]+)")


@dataclass(frozen=True)
class ClusterName:
    """A Cluster API Cluster; the namespace is empty if only names in the cloud refer to it."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def resource_name(self) -> str:
        """The part of the names of its resources."""
        return names.cluster_resource_name(self.namespace, self.name) if self.namespace else self.name


@dataclass(frozen=True)
class Owner:
    """An object that can own resources.

    Args:
        management: name of its management cluster.
        owner: the id in the stamps of its resources; empty while it has none.
        cluster: None for an object that belongs to none.
        recorded: the role of each resource that its status names, by kind and id.
        workloads: the name by which workloads of its cluster mark what they create; only of an OpenStackCluster.
    """

    management: str
    kind: str
    namespace: str
    name: str
    owner: str
    cluster: ClusterName | None
    recorded: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)
    workloads: str = ""

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.kind} {self.namespace}/{self.name}"


def read(management: Management, namespace: str | None = None) -> list[tuple[Owner, Object]]:
    """Return the owners in a management cluster with their objects.

    Older releases of the Go provider serve their kinds in v1beta1 alone, and have not all of them.

    Args:
        namespace: None: all of them.

    Raises:
        OperatorError: the user may not list a kind, it is not served, or the API server fails.
    """
    is_older, found = False, list[tuple[Owner, Object]]()
    for kind in KINDS:
        try:
            objects = management.list(kind, namespace)
        except NotServedError:
            if kind in _BETA:
                objects, is_older = management.list(replace(kind, version=_OLDER), namespace), True
            elif is_older:
                continue
            else:
                raise
        found += [(of_object(management.name, kind, obj), obj) for obj in objects]
    return found


def of_object(management: str, kind: Kind, obj: Object) -> Owner:
    """Return the owner that an object is."""
    metadata = obj["metadata"]
    return Owner(
        management,
        kind.kind,
        metadata["namespace"],
        metadata["name"],
        names.owner_in(obj, kind=kind.kind) or "",
        _cluster(kind, obj),
        dict(_recorded(obj)),
        workload_leftovers.name_of(obj) if kind == OPENSTACK_CLUSTER else "",
    )


def annotated_ids(objects: Iterable[Object]) -> set[str]:
    """Return every owner id in the annotations of objects, also one that was written for another object."""
    annotations = ((each["metadata"].get("annotations") or {}) for each in objects)
    texts = (str(each.get(names.OWNER_ID_ANNOTATION) or "") for each in annotations)
    return {found for text in texts for found in _OWNER.findall(text)}


def of_clusters(owners: Sequence[Owner]) -> list[ClusterName]:
    """Return the clusters of owners, each once, in order."""
    return sorted({each.cluster for each in owners if each.cluster}, key=str)


def _cluster(kind: Kind, obj: Object) -> ClusterName | None:
    name = references.owner_cluster_name(obj) or references.cluster_name(obj)
    if name is None and kind == OPENSTACK_CLUSTER:
        name = obj["metadata"]["name"]
    return ClusterName(obj["metadata"]["namespace"], name) if name else None


def _recorded(obj: Object) -> Iterator[tuple[tuple[str, str], str]]:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    provider_id = _SERVER_ID.fullmatch(str(spec.get("providerID") or ""))
    servers = [status.get("instanceID"), provider_id[1] if provider_id else None]
    yield from ((("server", str(each)), "") for each in servers if each)
    yield from (((each.kind, each.id), each.role) for each in Ledger.read(status).records.values())
